//! An operator's answer about an object, over the wire: its content, and the clients that may ask for it.
//!
//! Left out: the reasons of each controller, which its own tests show, and causes across operators.

use anyhow::{Context, Result, bail, ensure};
use e2e::cluster::ClusterOptions;
use e2e::operator::Installed;
use http::StatusCode;
use serde_json::{Value, json};
use shared::api::explain::{Explanation, KeyState, OperatorStatus, Role, STATUS_PATH};

use crate::support::clusters::spec;
use crate::support::{DEADLINE, Scene, deployment, operators, start_operators, with_cluster};

/// The token of an account that may get the scene's namespace and the Deployment `web` in it, and nothing else.
async fn tenant(scene: &Scene) -> Result<String> {
    let of = |kind: &str| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": "tenant"}});
    let (mut role, mut binding) = (of("Role"), of("RoleBinding"));
    role["rules"] = json!([
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"], "resourceNames": ["web"]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
    ]);
    binding["roleRef"] = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tenant"});
    binding["subjects"] = json!([{"kind": "ServiceAccount", "name": "tenant", "namespace": scene.namespace}]);
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tenant"}});
    for object in [account, role, binding] {
        scene.apply(&object).await?;
    }
    let account = Installed { namespace: scene.namespace.clone(), service_account: "tenant".to_owned() };
    scene.cluster.token(&account).await
}

fn path(scene: &Scene, name: &str) -> String {
    format!("/why/apis/apps/v1/namespaces/{}/deployments/{name}", scene.namespace)
}

#[test]
fn a_tenant_asks_about_their_own_object_and_no_other() -> Result<()> {
    with_cluster(ClusterOptions::default(), async |scene| {
        let all = start_operators(&scene.cluster, operators()).await?;
        let token = tenant(scene).await?;
        for name in ["web", "other"] {
            scene.apply(&deployment(name, 2)).await?;
            scene.rolled_out(name).await?;
        }
        let operator = all.iter().find(|operator| operator.name() == "deployment-operator").context("it runs")?;
        let (code, body) = operator.get(&path(scene, "web"), Some(&token)).await?;
        assert_eq!(code, StatusCode::OK, "{body}");
        let [why]: [Explanation; 1] = serde_json::from_str(&body)?;
        let [KeyState { now, last, .. }] = &why.keys[..] else { bail!("{why}") };
        assert!(!now.is_empty() && last.iter().any(|decision| !decision.wrote.is_empty()), "{why}");
        assert!(now.iter().all(|stage| !stage.reason.is_null()), "{body}");
        for (path, token, expected) in [
            (format!("/why/api/v1/namespaces/{}", scene.namespace), Some(token.as_str()), StatusCode::OK),
            ("/why/api/v1/namespaces/default".to_owned(), Some(token.as_str()), StatusCode::FORBIDDEN),
            (path(scene, "other"), Some(token.as_str()), StatusCode::FORBIDDEN),
            (path(scene, "web"), None, StatusCode::FORBIDDEN),
            (path(scene, "web"), Some("nonsense"), StatusCode::UNAUTHORIZED),
            (STATUS_PATH.to_owned(), Some(token.as_str()), StatusCode::FORBIDDEN),
        ] {
            assert_eq!(operator.get(&path, token).await?.0, expected, "{path}");
        }
        // Every operator answers; what it has nothing to do with has no key there.
        for operator in &all {
            let (code, body) = operator.get(&path(scene, "web"), Some(&token)).await?;
            assert_eq!(code, StatusCode::OK, "{} {body}", operator.name());
            let [Explanation { operator: name, .. }]: [Explanation; 1] = serde_json::from_str(&body)?;
            assert_eq!(name, operator.name());
        }
        Ok(())
    })
}

#[test]
fn a_standby_says_what_it_would_decide() -> Result<()> {
    with_cluster(ClusterOptions::default(), async |scene| {
        let of = spec(&scene.cluster, "deployment-operator").await?;
        let mut leader = scene.cluster.start_operator(&of).await?;
        leader.wait_ready().await?;
        let mut standby =
            scene.cluster.start_operator(&e2e::operator::OperatorSpec { name: "standby".to_owned(), ..of }).await?;
        standby.wait_ready().await?;
        let token = tenant(scene).await?;
        scene.apply(&deployment("web", 2)).await?;
        scene
            .wait_until("both know the Deployment", DEADLINE, async || {
                for (operator, role) in [(&leader, Role::Leader), (&standby, Role::Standby)] {
                    let (_, body) = operator.get(&path(scene, "web"), Some(&token)).await?;
                    let [why]: [Explanation; 1] = serde_json::from_str(&body)?;
                    ensure!(why.role == role, "{why}");
                    ensure!(why.keys.iter().any(|key| !key.now.is_empty()), "{why}");
                }
                Ok(())
            })
            .await
    })
}

#[test]
fn an_operator_says_how_it_fares() -> Result<()> {
    with_cluster(ClusterOptions::default(), async |scene| {
        let all = start_operators(&scene.cluster, operators()).await?;
        let viewer = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "viewer"}, "rules": [{"nonResourceURLs": ["/debug/*"], "verbs": ["get"]}]});
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "viewer"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "viewer"}, "subjects": [{"kind": "ServiceAccount", "name": "viewer", "namespace": scene.namespace}]});
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "viewer"}});
        for object in [viewer, binding, account] {
            scene.apply(&object).await?;
        }
        let account = Installed { namespace: scene.namespace.clone(), service_account: "viewer".to_owned() };
        let token = scene.cluster.token(&account).await?;
        for operator in &all {
            let [status]: [OperatorStatus; 1] = scene
                .wait_until("it answers", DEADLINE, async || {
                    let (code, body) = operator.get(STATUS_PATH, Some(&token)).await?;
                    ensure!(code == StatusCode::OK, "{code} {body}");
                    Ok(serde_json::from_str(&body)?)
                })
                .await?;
            assert_eq!((status.operator.as_str(), status.role), (operator.name(), Role::Leader));
            assert!(!status.queues.is_empty(), "{status:?}");
            assert!(status.caches.iter().all(|cache| cache.synced), "{status:?}");
            let written: Value = serde_json::to_value(&status)?;
            assert_eq!(serde_json::from_value::<OperatorStatus>(written)?, status);
        }
        Ok(())
    })
}
