//! Trouble around an operator: clashing objects, a vanishing namespace, an absent apiserver, bad credentials.

use std::process::Output;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{ClusterOptions, Part};
use e2e::kubeconfig::{self, Credentials};
use e2e::operator::Installed;
use http::StatusCode;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use tokio::process::Command;

use crate::support::clusters::{metrics_token, program, spec};
use crate::support::{
    DEADLINE, deployment, on_shared_cluster, operators, start_operators, template, uid, with_cluster,
};

#[test]
fn deployments_with_the_same_selector_leave_each_other_alone() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&deployment("web", 2)).await?;
        scene.rolled_out("web").await?;
        let mut rival = deployment("web", 3);
        rival["metadata"]["name"] = json!("rival");
        scene.apply(&rival).await?;
        scene.rolled_out("rival").await?;
        let before: Vec<String> = scene.list::<ReplicaSet>("app=web").await?.iter().map(uid).collect();

        scene.kubectl("set env deployment/rival STEP=2").await?;
        scene.rolled_out("rival").await?;
        scene.rolled_out("web").await?;
        let sets: Vec<ReplicaSet> = scene.list("app=web").await?;
        let owned_by = |name: &str| {
            let owner = |set: &&ReplicaSet| {
                let owners = set.metadata.owner_references.as_deref().unwrap_or_default();
                owners.iter().any(|owner| owner.name == name)
            };
            sets.iter().filter(owner).count()
        };
        assert_eq!((owned_by("web"), owned_by("rival")), (1, 2));
        assert!(before.iter().all(|old| sets.iter().any(|set| uid(set) == *old)), "a ReplicaSet was replaced");
        let pods: Vec<Pod> = scene.list("app=web").await?;
        assert_eq!(pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).count(), 5);
        Ok(())
    })
}

#[test]
fn a_namespace_deleted_during_a_rollout_goes_and_takes_nothing_along() -> Result<()> {
    on_shared_cluster(async |scene| {
        let doomed = scene.beside("doomed").await?;
        let mut slow = deployment("slow", 10);
        slow["spec"]["template"]["metadata"]["annotations"] =
            json!({"pods.e2e/becomes": "ready-later", "pods.e2e/after": "500ms"});
        doomed.apply(&slow).await?;
        doomed.rolled_out("slow").await?;
        doomed.kubectl("set env deployment/slow STEP=2").await?;
        doomed.delete_namespace().await?;
        scene.apply(&deployment("web", 3)).await?;
        scene.rolled_out("web").await?;
        doomed.namespace_gone().await
    })
}

#[test]
fn an_operator_waits_for_an_apiserver_that_is_not_there_yet() -> Result<()> {
    with_cluster(ClusterOptions::default(), async |scene| {
        let mut of = spec(&scene.cluster, "replicaset-operator").await?;
        of.leader_elect = true;
        let mut operator = scene.cluster.start_operator(&of).await?;
        operator.kill();
        scene.cluster.kill(Part::Apiserver)?;
        let before = operator.log()?.len();
        operator.restart()?;
        scene
            .wait_until("it says that it cannot reach the apiserver", DEADLINE, async || {
                operator.process().check_running()?;
                let log = operator.log()?;
                ensure!(log[before..].contains("refused"), "{}", &log[before..]);
                let (alive, _) = operator.get("/livez", None).await?;
                ensure!(alive == StatusCode::OK, "/livez says {alive}");
                let (ready, _) = operator.get("/readyz", None).await?;
                ensure!(ready != StatusCode::OK, "it says that it is ready");
                Ok(())
            })
            .await?;
        scene.cluster.run(Part::Apiserver)?;
        operator.wait_ready().await?;
        scene
            .wait_until("it works", DEADLINE, async || {
                scene
                    .apply(&json!({
                        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "late"},
                        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "late"}}, "template": template("late")},
                    }))
                    .await?;
                let set: ReplicaSet = scene.fetch("late").await?;
                let replicas = set.status.map(|status| status.replicas);
                ensure!(replicas == Some(2), "{replicas:?} replicas");
                Ok(())
            })
            .await
    })
}

#[test]
fn metrics_are_for_those_who_may_read_them_and_health_is_for_all() -> Result<()> {
    with_cluster(ClusterOptions::default(), async |scene| {
        let operators = start_operators(&scene.cluster, operators()).await?;
        scene.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "stranger"}})).await?;
        let account = Installed { namespace: scene.namespace.clone(), service_account: "stranger".to_owned() };
        let (reader, stranger) = (metrics_token(scene).await?, scene.cluster.token(&account).await?);
        for operator in &operators {
            for path in ["/livez", "/readyz", "/healthz"] {
                assert_eq!(operator.get(path, None).await?.0, StatusCode::OK, "{path}");
            }
            for path in ["/metrics", "/debug/decisions"] {
                assert_ne!(operator.get(path, None).await?.0, StatusCode::OK, "{path}");
                assert_eq!(operator.get(path, Some("nonsense")).await?.0, StatusCode::UNAUTHORIZED, "{path}");
                assert_eq!(operator.get(path, Some(&stranger)).await?.0, StatusCode::FORBIDDEN, "{path}");
            }
            let (status, text) = operator.get("/metrics", Some(&reader)).await?;
            assert_eq!(status, StatusCode::OK);
            for metric in ["workqueue_depth", "rest_client_requests_total", "leader_election_master_status"] {
                assert!(text.contains(metric), "{} has no {metric}", operator.name());
            }
        }
        Ok(())
    })
}

async fn run(operator: &str, args: &[&str]) -> Result<Output> {
    let mut command = Command::new(program());
    command.arg(operator).args(args).kill_on_drop(true);
    tokio::time::timeout(DEADLINE, command.output()).await.context("it does not end")?.context("run an operator")
}

#[test]
fn what_cannot_work_is_said_at_once() -> Result<()> {
    let runtime = crate::support::scene::runtime()?;
    runtime.block_on(async {
        let dir = tempfile::tempdir()?;
        let broken = dir.path().join("broken.kubeconfig");
        std::fs::write(&broken, "clusters: [}")?;
        let broken = format!("--kubeconfig={}", broken.display());
        for operator in operators() {
            let is_of_cloud = facts::needs_cloud(operator);
            let cloud: &[&str] = if is_of_cloud { &["--cloud-provider-endpoint=unix:///nowhere"] } else { &[] };
            for (args, says) in [
                (vec!["--no-such-flag"], "--no-such-flag"),
                (vec!["--secure-port=many"], "--secure-port"),
                (vec!["--leader-elect-lease-duration=1s"], "--leader-elect-renew-deadline"),
                (vec!["--kubeconfig=/nowhere/kubeconfig"], "/nowhere/kubeconfig"),
                (vec![broken.as_str()], "broken.kubeconfig"),
            ] {
                let output = run(operator, &[cloud, &args].concat()).await?;
                let stderr = String::from_utf8_lossy(&output.stderr);
                assert_eq!(output.status.code(), Some(1), "{operator} {args:?}: {stderr}");
                assert!(stderr.contains(says), "{operator} {args:?}: {stderr}");
            }
            if is_of_cloud {
                let output = run(operator, &[]).await?;
                let stderr = String::from_utf8_lossy(&output.stderr);
                assert!(stderr.contains("--cloud-provider-endpoint"), "{operator}: {stderr}");
            }
            let output = run(operator, &["--version"]).await?;
            assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("v1.36.3"));
        }
        Ok(())
    })
}

#[test]
fn a_token_that_is_not_valid_is_reported() -> Result<()> {
    with_cluster(ClusterOptions::default(), async |scene| {
        let file = scene.cluster.run_dir()?.join("expired.kubeconfig");
        let (server, pki) = (scene.cluster.server()?, scene.cluster.pki()?);
        kubeconfig::write(&file, &server, pki.ca_pem(), &Credentials::Token("no.such.token"))?;
        let mut of = spec(&scene.cluster, "deployment-operator").await?;
        of.flags = vec![format!("--kubeconfig={}", file.display())];
        let mut operator = scene.cluster.start_operator(&of).await?;
        scene
            .wait_until("the log says so", DEADLINE, async || {
                operator.process().check_running()?;
                let log = operator.log()?;
                ensure!(log.contains("Unauthorized"), "{log}");
                let (ready, _) = operator.get("/readyz", None).await?;
                ensure!(ready != StatusCode::OK, "it says that it is ready");
                Ok(())
            })
            .await?;
        scene.apply(&deployment("web", 1)).await?;
        let untouched: Deployment = scene.fetch("web").await?;
        assert_eq!(untouched.status.unwrap_or_default().observed_generation, None);
        Ok(())
    })
}
