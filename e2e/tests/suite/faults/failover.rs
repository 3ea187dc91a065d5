//! The leader is gone, only asleep, or busy; and the one who takes over has seen nothing for a while.
//! Left out: what becomes of the Lease of an idle leader, which the suite's `leader` is about.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::Method;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use serde_json::json;
use tokio::time::Instant;

use super::{
    DEPLOYMENT, PODS, REPLICA_SET, complete, complete_set, deploy, on_quiet_cluster, replica_set, roll_out, stays,
    stays_set,
};
use crate::support::behind::{Behind, Gate, nth_work};
use crate::support::{DEADLINE, Scene};

/// As upstream's, but seconds instead of a quarter of a minute.
pub(super) const FLAGS: [&str; 3] =
    ["--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms"];
const LEASE: Duration = Duration::from_secs(3);
/// The time that a takeover may cost besides waiting.
const GRACE: Duration = Duration::from_secs(1);

/// Runs a test with a Deployment that is rolled out under two replicas of the ReplicaSet operator.
fn with_two_replicas(test: impl AsyncFnOnce(&Scene, [Behind; 2]) -> Result<()>) -> Result<()> {
    on_quiet_cluster(async |scene| {
        let _deployment = Behind::start(scene, DEPLOYMENT, DEPLOYMENT, &[]).await?;
        let first = Behind::start(scene, REPLICA_SET, "first", &FLAGS).await?;
        let second = Behind::start(scene, REPLICA_SET, "second", &FLAGS).await?;
        deploy(scene).await?;
        test(scene, [first, second]).await
    })
}

/// Holds the answer to the leader's third write from now on.
pub(super) fn hold_third_write(replicas: &[Behind; 2]) -> [Gate; 2] {
    let gates = [Gate::new(), Gate::new()];
    for (replica, gate) in replicas.iter().zip(&gates) {
        replica.proxy.forget_requests();
        replica.proxy.add(nth_work(gate.after(), 3));
    }
    gates
}

/// The leader and the other one, once the leader is at its third write.
pub(super) async fn leader_first<'a>(
    scene: &Scene,
    [first, second]: &'a mut [Behind; 2],
    gates: &[Gate; 2],
) -> Result<[&'a mut Behind; 2]> {
    let leader = scene
        .wait_until("the leader makes its third write", DEADLINE, async || {
            gates.iter().position(Gate::is_reached).context("there is none")
        })
        .await?;
    Ok(if leader == 0 { [first, second] } else { [second, first] })
}

/// A leader that slept through its lease wakes up, writes nothing more, and ends.
pub(super) async fn wakes_in_vain(leader: &mut Behind, gates: &[Gate; 2]) -> Result<()> {
    let before = leader.work().len();
    leader.operator.process().resume();
    gates.iter().for_each(Gate::let_go);
    leader.operator.process().wait(DEADLINE).await?;
    let after = leader.work().len();
    ensure!(after == before, "{} writes of a leader without a lease", after - before);
    Ok(())
}

#[test]
fn another_replica_goes_on_with_the_rollout_of_a_leader_that_dies_or_ends() -> Result<()> {
    with_two_replicas(async |scene, mut replicas| {
        for (step, is_told, limit) in [(1, false, LEASE + GRACE), (2, true, GRACE)] {
            let gates = hold_third_write(&replicas);
            roll_out(scene, step, async || {
                let [leader, standby] = leader_first(scene, &mut replicas, &gates).await?;
                standby.proxy.clear();
                let gone = Instant::now();
                if is_told {
                    leader.operator.process().send_terminate();
                    gates.iter().for_each(Gate::let_go);
                } else {
                    leader.operator.kill();
                }
                complete(scene).await?;
                let first = standby.work().first().map(|write| write.at).context("the standby did nothing")?;
                let took = first.saturating_duration_since(gone);
                ensure!(took <= limit, "the standby was at work after {took:?}");
                if is_told {
                    let status = leader.operator.process().wait(DEADLINE).await?;
                    ensure!(status.success(), "{status}");
                }
                leader.proxy.clear();
                leader.operator.restart()?;
                leader.operator.wait_ready().await
            })
            .await?;
        }
        stays(scene).await
    })
}

#[test]
fn a_leader_that_slept_through_its_lease_writes_nothing_more() -> Result<()> {
    with_two_replicas(async |scene, mut replicas| {
        let gates = hold_third_write(&replicas);
        roll_out(scene, 1, async || {
            let [leader, standby] = leader_first(scene, &mut replicas, &gates).await?;
            leader.operator.process().suspend();
            standby.proxy.clear();
            complete(scene).await?;
            wakes_in_vain(leader, &gates).await
        })
        .await?;
        stays(scene).await
    })
}

#[test]
fn a_standby_that_lags_makes_no_pod_of_its_predecessor_twice() -> Result<()> {
    on_quiet_cluster(async |scene| {
        let mut first = Behind::start(scene, REPLICA_SET, "first", &FLAGS).await?;
        scene.apply(&replica_set(5)).await?;
        complete_set(scene).await?;
        let second = Behind::start(scene, REPLICA_SET, "second", &FLAGS).await?;
        second.proxy.freeze_watches(PODS);
        let lists = second.lists(PODS);
        let sampler = scene.sample("app=web").await?;
        scene.patch::<ReplicaSet>("web", &json!({"spec": {"replicas": 10}})).await?;
        complete_set(scene).await?;
        first.operator.process().send_terminate();
        let status = first.operator.process().wait(DEADLINE).await?;
        ensure!(status.success(), "{status}");
        scene
            .wait_until("the standby asks for all pods anew", DEADLINE, async || {
                ensure!(second.lists(PODS) > lists, "it does not");
                Ok(())
            })
            .await?;
        second.proxy.thaw_watches();
        stays_set(scene).await?;
        let seen = sampler.finish(scene).await?;
        ensure!((seen.most_excess, seen.pods.len()) == (0, 10), "{seen:?}");
        let creates = second.count(&Method::POST, "**/pods");
        ensure!(creates == 0, "{creates} creates where nothing was missing");
        Ok(())
    })
}

#[test]
fn a_leader_keeps_its_lease_while_hundreds_of_creates_wait_for_their_turn() -> Result<()> {
    on_quiet_cluster(async |scene| {
        let flags = [&FLAGS[..], &["--kube-api-qps=20", "--kube-api-burst=20"]].concat();
        let mut leader = Behind::start(scene, REPLICA_SET, REPLICA_SET, &flags).await?;
        scene.apply(&replica_set(500)).await?;
        // Ten seconds, in which the Lease would expire three times.
        scene
            .wait_until("200 pods", DEADLINE, async || {
                leader.operator.process().check_running()?;
                let pods = scene.list::<Pod>("app=web").await?.len();
                ensure!(pods >= 200, "{pods}");
                Ok(())
            })
            .await?;
        let leases: Api<Lease> = Api::namespaced(scene.client.clone(), "kube-system");
        let lease = leases.get(REPLICA_SET).await?.spec.context("a Lease without a spec")?;
        ensure!(lease.lease_transitions == Some(0), "{lease:?}");
        Ok(())
    })
}
