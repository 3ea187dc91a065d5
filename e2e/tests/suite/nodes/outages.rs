//! The operator cannot see, or does not look, for longer than a grace period: no node that is well is taken for lost, and
//! one that is lost meanwhile is found out.
//!
//! kwok's kubelets go on in all of these. Left out: upstream's doing, which takes nodes for lost after some of these
//! (kubernetes/kubernetes#24200 and #32510).

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::cluster::Part;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use tokio::time::Instant;

use super::{
    EVICTION, FLAGS, LIFECYCLE, all_nodes, judged, node, nodes, pods_on, set_kubelets, wait_evicted, wait_lost,
};
use crate::support::behind::Behind;
use crate::support::{DEADLINE, Scene, with_cluster};

pub(super) const NODES: u32 = 6;
/// As in [`FLAGS`].
const GRACE: Duration = Duration::from_secs(6);
/// Shorter than the Lease of a leader holds, and longer than a grace period.
const PAUSE: Duration = Duration::from_secs(9);

/// It goes on for so long: that is what the test is about.
async fn lasts(scene: &Scene, what: &str, long: Duration) -> Result<()> {
    let began = Instant::now();
    let is_over = async || {
        ensure!(began.elapsed() >= long, "{:?}", began.elapsed());
        Ok(())
    };
    scene.wait_until(what, long + DEADLINE, is_over).await
}

/// Exactly these are lost in the end, and the operator took no others for lost meanwhile.
async fn only_lost(scene: &Scene, lost: &[u32], (lifecycle, judges): (&Behind, &[u32])) -> Result<()> {
    wait_evicted(scene, NODES, lost.iter().copied()).await?;
    wait_lost(scene, lost.iter().copied()).await?;
    let (judged, expected) = (judged(lifecycle), judges.iter().copied().map(node).collect());
    ensure!(judged == expected, "{judged:?} were taken for lost");
    Ok(())
}

/// Longer than between two renewals of a Lease.
const SILENCE: Duration = Duration::from_secs(3);

/// Stops a kubelet, and waits until it renews its Lease no more: kwok must not have to learn of it during an outage.
async fn silence(scene: &Scene, number: u32) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(scene.client.clone(), "kube-node-lease");
    let name = node(number);
    set_kubelets(scene, [number], false).await?;
    let mut last = (None, Instant::now());
    scene
        .wait_until("its Lease is not renewed any more", DEADLINE, async || {
            let renewed = leases.get(&name).await?.spec.and_then(|spec| spec.renew_time);
            if renewed != last.0 {
                last = (renewed, Instant::now());
            }
            ensure!(last.1.elapsed() >= SILENCE, "{last:?}");
            Ok(())
        })
        .await
}

/// One kubelet stops, and the apiserver is away for so long.
pub(super) async fn apiserver_is_away(scene: &Scene, lifecycle: &Behind, long: Duration) -> Result<()> {
    silence(scene, 0).await?;
    scene.cluster.kill(Part::Apiserver)?;
    lasts(scene, "the apiserver is away", long).await?;
    scene.cluster.run(Part::Apiserver)?;
    only_lost(scene, &[0], (lifecycle, &[0])).await
}

/// One kubelet stops, and etcd stands still for so long, twice.
pub(super) async fn etcd_stands_still(scene: &Scene, lifecycle: &Behind, long: Duration) -> Result<()> {
    silence(scene, 0).await?;
    for _ in 0..2 {
        scene.cluster.suspend(Part::Etcd, true)?;
        lasts(scene, "etcd stands still", long).await?;
        scene.cluster.suspend(Part::Etcd, false)?;
        // It takes one step.
        scene.wait_until("etcd answers", DEADLINE, async || all_nodes(scene).await.map(drop)).await?;
    }
    only_lost(scene, &[0], (lifecycle, &[0])).await
}

/// As upstream's, but seconds.
const LEADER: [&str; 3] =
    ["--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms"];

#[test]
fn no_node_is_lost_because_the_operator_slept_or_another_took_over() -> Result<()> {
    with_cluster(nodes(NODES), async |scene| {
        let _eviction = Behind::start(scene, EVICTION, EVICTION, &[]).await?;
        pods_on(scene, 0..NODES, 0).await?;
        let mut alone = Behind::start(scene, LIFECYCLE, "alone", &FLAGS).await?;
        sees_all(scene, &alone).await?;
        alone.operator.process().suspend();
        set_kubelets(scene, [0], false).await?;
        lasts(scene, "the operator sleeps", PAUSE).await?;
        alone.operator.process().resume();
        only_lost(scene, &[0], (&alone, &[0])).await?;
        alone.operator.process().check_running()?;
        alone.operator.terminate().await?;

        let flags = [&FLAGS[..], &LEADER[..]].concat();
        let mut first = Behind::start(scene, LIFECYCLE, "first", &flags).await?;
        sees_all(scene, &first).await?;
        let second = Behind::start(scene, LIFECYCLE, "second", &flags).await?;
        set_kubelets(scene, [1], false).await?;
        lasts(scene, "most of a grace period passes", GRACE / 2).await?;
        first.operator.kill();
        sees_all(scene, &second).await?;
        let took_over = Instant::now();
        only_lost(scene, &[0, 1], (&second, &[1])).await?;
        let passed = took_over.elapsed();
        ensure!(passed + Duration::from_secs(1) >= GRACE, "the standby waited for no more than {passed:?}");
        let judged = judged(&first);
        ensure!(judged.is_empty(), "{judged:?} were taken for lost");
        Ok(())
    })
}

/// Waits until it has looked at all nodes.
async fn sees_all(scene: &Scene, lifecycle: &Behind) -> Result<()> {
    scene
        .wait_until("all nodes are registered", DEADLINE, async || {
            let told = lifecycle.proxy.writes("/api/v1/namespaces/default/events").len();
            ensure!(told >= usize::try_from(NODES)?, "{told} events");
            Ok(())
        })
        .await
}
