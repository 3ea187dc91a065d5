//! Two replicas, of which one works.
//! Left out: two leaders at once, and leaders that go in the middle of work, which the tables of the shared crate and the
//! suite's `faults` are about.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::cluster::ClusterOptions;
use e2e::operator::{Operator, OperatorSpec};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;

use crate::support::clusters::spec;
use crate::support::{DEADLINE, Scene, template, with_cluster};

const OPERATOR: &str = "replicaset-operator";
const LEASE: Duration = Duration::from_secs(3);
/// The time that a takeover may cost besides waiting.
const GRACE: Duration = Duration::from_secs(1);

async fn holder(scene: &Scene) -> Result<String> {
    let leases: Api<Lease> = Api::namespaced(scene.client.clone(), "kube-system");
    let lease = leases.get(OPERATOR).await.context("get the Lease")?;
    lease
        .spec
        .and_then(|spec| spec.holder_identity)
        .filter(|holder| !holder.is_empty())
        .context("nobody holds the Lease")
}

async fn replica(scene: &Scene, of: &OperatorSpec, name: &str) -> Result<Operator> {
    let mut spec = of.clone();
    spec.name = name.to_owned();
    let flags =
        ["--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms"];
    spec.flags = flags.map(str::to_owned).to_vec();
    let mut operator = scene.cluster.start_operator(&spec).await?;
    operator.wait_ready().await?;
    Ok(operator)
}

/// Creates a ReplicaSet and waits for its pods; how long after `since` that was.
async fn work_is_done(scene: &Scene, name: &str, since: Instant) -> Result<Duration> {
    scene
        .apply(&json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template(name)},
        }))
        .await?;
    scene
        .wait_until("two replicas", DEADLINE, async || {
            let set: ReplicaSet = scene.fetch(name).await?;
            ensure!(set.status.is_some_and(|status| status.replicas == 2), "not yet");
            Ok(())
        })
        .await?;
    Ok(since.elapsed())
}

#[test]
fn a_standby_takes_over_from_a_leader_that_dies_or_goes() -> Result<()> {
    with_cluster(ClusterOptions::default(), async |scene| {
        let of = spec(&scene.cluster, OPERATOR).await?;
        let mut first = replica(scene, &of, "first").await?;
        let first_holder = scene.wait_until("a leader", DEADLINE, async || holder(scene).await).await?;
        let mut second = replica(scene, &of, "second").await?;
        work_is_done(scene, "before", Instant::now()).await?;
        assert_eq!(holder(scene).await?, first_holder, "the second replica stands by");

        let killed = Instant::now();
        first.kill();
        let took = work_is_done(scene, "after-kill", killed).await?;
        let second_holder = holder(scene).await?;
        assert_ne!(second_holder, first_holder);
        assert!(took <= LEASE + GRACE, "the standby was at work {took:?} after the leader had been killed");

        first.restart()?;
        first.wait_ready().await?;
        let ended = Instant::now();
        second.process().send_terminate();
        let took = work_is_done(scene, "after-end", ended).await?;
        assert_ne!(holder(scene).await?, second_holder);
        assert!(took <= GRACE, "the standby was at work {took:?} after the leader had been told to end");
        let status = second.process().wait(DEADLINE).await?;
        assert!(status.success(), "{status}");
        Ok(())
    })
}

#[test]
fn a_lease_that_cannot_be_written_is_reported() -> Result<()> {
    with_cluster(ClusterOptions::default(), async |scene| {
        let of = spec(&scene.cluster, OPERATOR).await?;
        let bindings: Api<RoleBinding> = Api::namespaced(scene.client.clone(), "kube-system");
        bindings.delete("replicaset-operator-leader-election", &DeleteParams::default()).await?;
        let mut operator = scene.cluster.start_operator(&of).await?;
        scene
            .wait_until("the log says what is wrong", DEADLINE, async || {
                operator.process().check_running()?;
                let log = operator.log()?;
                let says = log
                    .lines()
                    .any(|line| line.contains("kube-system/replicaset-operator") && line.contains("forbidden"));
                ensure!(says, "{log}");
                Ok(())
            })
            .await?;
        assert!(holder(scene).await.is_err(), "there is a Lease");

        scene.cluster.install(&crate::support::clusters::manifests(OPERATOR)).await?;
        work_is_done(scene, "allowed", Instant::now()).await.map(drop)
    })
}
