//! Endpoints, the usage of quotas, ServiceCIDRs and aggregated ClusterRoles, whose operators are killed at each write, get
//! no answers, or do not see what changes: usage is never below the truth, and no address stays that is gone.
//!
//! Left out: leaders that change, which is the same for all operators.

use anyhow::{Result, ensure};
use e2e::apply::apply;
use e2e::proxy::{Action, Rule};
use futures::future::try_join_all;
use http::{Method, StatusCode};
use k8s_openapi::api::core::v1::{Endpoints, ResourceQuota};
use k8s_openapi::api::networking::v1::ServiceCIDR;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::{kill_at, kill_at_each, with_operators};
use crate::endpoints::{listed, pod, service};
use crate::quota::{quota, status, uses};
use crate::support::behind::{Behind, each};
use crate::support::{DEADLINE, Scene};

const QUOTA: &str = "resourcequota-operator";
const ENDPOINTS: &str = "endpoints-operator";
const RANGES: &str = "service-cidr-operator";
const ROLES: &str = "clusterrole-aggregation-operator";

fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})
}

#[test]
fn usage_is_never_below_the_truth_whatever_fails() -> Result<()> {
    with_operators([QUOTA], async |scene, [mut victim]| {
        try_join_all(["a", "b"].map(|name| async move { scene.apply(&secret(name)).await })).await?;
        let hard = json!({"secrets": "9", "pods": "9"});
        let two = json!({"secrets": "2", "pods": "0"});
        let writes = kill_at_each(
            scene,
            &mut victim,
            async |at| scene.apply(&quota(&format!("q{at}"), &hard)).await.map(drop),
            async |at| uses(scene, &format!("q{at}"), &two).await,
        )
        .await?;
        ensure!(writes == 1, "{writes} writes for the status of a quota");

        // Every other status is written, and nobody is told.
        victim.proxy.forget_requests();
        let path = "**/resourcequotas/*/status";
        victim.proxy.add(Rule::new(Action::LoseResponse).method(Method::PATCH).path(path).when(each(2)).always());
        scene.kubectl("delete secret/a").await?;
        for name in ["q0", "q1", "q2"] {
            uses(scene, name, &json!({"secrets": "1"})).await?;
        }
        ensure!(victim.lost(path) > 0, "no answer was lost");
        victim.proxy.clear();
        unseen(scene, &victim).await
    })
}

/// Pods come, and are charged, while the operator does not see pods; each edit of a limit asks for a count.
async fn unseen(scene: &Scene, victim: &Behind) -> Result<()> {
    let pods = "/api/v1/namespaces/*/pods";
    victim.proxy.freeze_watches(pods);
    for (step, name) in ["one", "two", "three"].into_iter().enumerate() {
        scene.apply(&pod(name, "charged")).await?;
        let (limit, charged) = ((20 + step).to_string(), (step + 1).to_string());
        scene.patch::<ResourceQuota>("q0", &json!({"spec": {"hard": {"secrets": limit}}})).await?;
        scene
            .wait_until("the sync that the edit asks for has ended", DEADLINE, async || {
                let [used, hard] = status(scene, "q0").await?;
                ensure!(hard["secrets"] == limit, "{used} of {hard}");
                ensure!(used["pods"] == charged, "below the truth: {used}");
                Ok(())
            })
            .await?;
    }
    let [used, _] = status(scene, "q0").await?;
    ensure!(used["pods"] == "3", "{used}");
    scene.kubectl("delete pod/two --wait=false").await?;
    victim.proxy.thaw_watches();
    uses(scene, "q0", &json!({"pods": "2", "secrets": "1"})).await
}

async fn gone(scene: &Scene, service: &str) -> Result<()> {
    scene
        .wait_until(&format!("the Endpoints {service} are gone"), DEADLINE, async || {
            let left = scene.api::<Endpoints>().get_opt(service).await?;
            ensure!(left.is_none(), "{left:?}");
            Ok(())
        })
        .await
}

#[test]
fn endpoints_keep_no_address_that_is_gone_whatever_fails() -> Result<()> {
    with_operators([ENDPOINTS], async |scene, [mut victim]| {
        try_join_all(["a", "b"].map(|name| async move { scene.apply(&pod(name, "web")).await })).await?;
        let of = |at: u32| service(&format!("web-{at}"), &json!({"selector": {"app": "web"}}));
        let writes = kill_at_each(
            scene,
            &mut victim,
            async |at| scene.apply(&of(at)).await.map(drop),
            async |at| listed(scene, &format!("web-{at}"), [2, 0]).await.map(drop),
        )
        .await?;
        ensure!(writes == 1, "{writes} writes for the Endpoints of a Service");

        // What goes while nobody works is gone soon after the start; locks of elections stay.
        victim.operator.kill();
        scene.kubectl("delete pod/b service/web-0").await?;
        for (name, annotations) in
            [("web-0", json!({})), ("lock", json!({"control-plane.alpha.kubernetes.io/leader": "{}"}))]
        {
            let left = json!({"apiVersion": "v1", "kind": "Endpoints",
                "metadata": {"name": name, "annotations": annotations}});
            scene.apply(&left).await?;
        }
        victim.operator.restart()?;
        gone(scene, "web-0").await?;
        listed(scene, "web-1", [1, 0]).await?;
        scene.fetch::<Endpoints>("lock").await?;
        conflict(scene, &victim).await?;
        unseen_pods(scene, &victim).await
    })
}

/// The pods of the ready addresses.
fn names(endpoints: &Endpoints) -> Vec<String> {
    let addresses = endpoints.subsets.iter().flatten().flat_map(|subset| subset.addresses.iter().flatten());
    addresses.filter_map(|address| address.target_ref.as_ref()?.name.clone()).collect()
}

/// Somebody else writes Endpoints, which the operator does not see: it is refused again and again, and right once it
/// sees, without any further change. Upstream: k/k#127429.
async fn conflict(scene: &Scene, victim: &Behind) -> Result<()> {
    victim.proxy.freeze_watches("/api/v1/endpoints");
    let other = json!({"metadata": {"annotations": {"e2e.example/other": "yes"}}});
    scene.patch::<Endpoints>("web-1", &other).await?;
    victim.proxy.forget_requests();
    scene.apply(&pod("c", "web")).await?;
    scene
        .wait_until("it is refused for the third time", DEADLINE, async || {
            let writes = victim.proxy.writes("**/endpoints/web-1");
            let refused = writes.iter().filter(|write| write.status == Some(StatusCode::CONFLICT)).count();
            ensure!(refused >= 3, "{refused} times");
            Ok(())
        })
        .await?;
    scene.kubectl("delete pod/a").await?;
    victim.proxy.thaw_watches();
    let endpoints = scene
        .wait_until("the pod that came is listed, and the one that went is not", DEADLINE, async || {
            let endpoints: Endpoints = scene.fetch("web-1").await?;
            let names = names(&endpoints);
            ensure!(names == ["c"], "{names:?}");
            Ok(endpoints)
        })
        .await?;
    let annotations = endpoints.metadata.annotations.unwrap_or_default();
    ensure!(annotations.contains_key("e2e.example/other"), "what somebody else has written is lost: {annotations:?}");
    Ok(())
}

/// Pods come and go while the operator does not see pods, and answers about what it writes are lost.
async fn unseen_pods(scene: &Scene, victim: &Behind) -> Result<()> {
    victim.proxy.freeze_watches("**/pods");
    scene.apply(&pod("d", "web")).await?;
    scene.kubectl("delete pod/c").await?;
    victim
        .proxy
        .add(Rule::new(Action::LoseResponse).method(Method::PATCH).path("**/endpoints/*").when(each(2)).always());
    victim.proxy.thaw_watches();
    for name in ["web-1", "web-2"] {
        scene
            .wait_until("the pod that came is listed, and the one that went is not", DEADLINE, async || {
                let names = names(&scene.fetch(name).await?);
                ensure!(names == ["d"], "{names:?}");
                Ok(())
            })
            .await?;
    }
    ensure!(victim.lost("**/endpoints/*") > 0, "no answer was lost");
    victim.proxy.clear();
    scene.kubectl("delete pod/d").await?;
    listed(scene, "web-1", [0, 0]).await.map(drop)
}

#[test]
fn ranges_and_aggregated_roles_survive_their_operators_killed_at_each_write() -> Result<()> {
    with_operators([RANGES, ROLES], async |scene, [mut ranges, mut roles]| {
        let all: Api<ServiceCIDR> = Api::all(scene.client.clone());
        let writes = kill_at_each(
            scene,
            &mut ranges,
            async |at| {
                let range = json!({"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
                    "metadata": {"name": format!("r{at}")}, "spec": {"cidrs": [format!("10.240.{at}.0/24")]}});
                apply(&scene.client, "", &range).await.map(drop)
            },
            async |at| is_ready(scene, &all, &format!("r{at}")).await,
        )
        .await?;
        ensure!(writes == 2, "{writes} writes for a finalizer and a condition");
        let_go(scene, &mut ranges, &all).await?;
        aggregate(scene, &mut roles).await
    })
}

async fn is_ready(scene: &Scene, all: &Api<ServiceCIDR>, name: &str) -> Result<()> {
    scene
        .wait_until(&format!("{name} is ready"), DEADLINE, async || {
            let range = all.get(name).await?;
            let conditions = range.status.and_then(|status| status.conditions).unwrap_or_default();
            let is_ready = conditions.iter().any(|it| it.type_ == "Ready" && it.status == "True");
            ensure!(is_ready && range.metadata.finalizers.is_some(), "{conditions:?} {:?}", range.metadata);
            Ok(())
        })
        .await
}

/// Ranges go though the operator is killed before it lets the first one go, and after that.
async fn let_go(scene: &Scene, ranges: &mut Behind, all: &Api<ServiceCIDR>) -> Result<()> {
    const NAMES: [&str; 3] = ["r0", "r1", "r2"];
    let delete = async {
        try_join_all(NAMES.map(async |name| all.delete(name, &DeleteParams::default()).await.map(drop))).await?;
        Ok::<(), anyhow::Error>(())
    };
    let settled = async || {
        scene
            .wait_until("the ranges have gone", DEADLINE, async || {
                for name in NAMES {
                    let left = all.get_opt(name).await?;
                    ensure!(left.is_none(), "{left:?}");
                }
                Ok(())
            })
            .await
    };
    let (is_reached, _) = kill_at(scene, ranges, ("none", 1), delete, settled).await?;
    ensure!(is_reached, "no range was let go");
    Ok(())
}

async fn aggregate(scene: &Scene, roles: &mut Behind) -> Result<()> {
    let all: Api<ClusterRole> = Api::all(scene.client.clone());
    let role = |name: &str| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}});
    let mut part = role("part");
    part["metadata"]["labels"] = json!({"e2e.example/part": "yes"});
    part["rules"] = json!([{"apiGroups": ["e2e.example"], "resources": ["widgets"], "verbs": ["get"]}]);
    apply(&scene.client, "", &part).await?;
    let writes = kill_at_each(
        scene,
        roles,
        async |at| {
            let mut whole = role(&format!("whole-{at}"));
            let selector = json!({"matchLabels": {"e2e.example/part": "yes"}});
            whole["aggregationRule"] = json!({"clusterRoleSelectors": [selector]});
            apply(&scene.client, "", &whole).await.map(drop)
        },
        async |at| {
            let name = format!("whole-{at}");
            scene
                .wait_until(&format!("{name} has its rule"), DEADLINE, async || {
                    let rules = all.get(&name).await?.rules.unwrap_or_default();
                    ensure!(rules.len() == 1, "{rules:?}");
                    Ok(())
                })
                .await
        },
    )
    .await?;
    ensure!(writes == 1, "{writes} writes for the rules of a role");
    Ok(())
}
