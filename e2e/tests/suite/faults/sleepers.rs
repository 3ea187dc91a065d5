//! Two replicas of an operator of StatefulSets or DaemonSets: the leader sleeps in the middle of an update, the other one
//! goes on although it sees pods late, and the first one wakes up with what it had in mind.
//!
//! Left out: leaders that die or are told to end, which `failover` is about.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::{DaemonSet, StatefulSet};
use serde_json::json;

use super::failover::{FLAGS, hold_third_write, leader_first, wakes_in_vain};
use super::on_quiet_cluster;
use super::sets::settled;
use crate::support::behind::Behind;
use crate::support::sampler::Seen;
use crate::support::{Scene, daemon_set, stateful_set};

/// How much later the successor sees pods.
const LATE: Duration = Duration::from_millis(300);

/// An update of `web` whose leader sleeps from its third write until another one has done the rest. Gives what was seen.
async fn sleep_through(
    scene: &Scene,
    operator: &str,
    update: impl Future<Output = Result<()>>,
    settled: impl AsyncFn() -> Result<()>,
) -> Result<Seen> {
    let first = Behind::start(scene, operator, "first", &FLAGS).await?;
    let mut replicas = [first, Behind::start(scene, operator, "second", &FLAGS).await?];
    settled().await?;
    let gates = hold_third_write(&replicas);
    let sampler = scene.sample("app=web").await?;
    update.await?;
    let [leader, successor] = leader_first(scene, &mut replicas, &gates).await?;
    leader.operator.process().suspend();
    successor.proxy.clear();
    ensure!(successor.proxy.delay_watches("**/pods", LATE) > 0, "the successor does not follow pods");
    settled().await?;
    wakes_in_vain(leader, &gates).await?;
    settled().await?;
    sampler.finish(scene).await
}

#[test]
fn a_stateful_set_whose_leader_sleeps_is_updated_one_pod_at_a_time() -> Result<()> {
    on_quiet_cluster(async |scene| {
        scene.apply(&stateful_set("web", 3, &json!({}))).await?;
        let template = json!({"metadata": {"annotations": {"step": "2"}}});
        let update =
            async { scene.patch::<StatefulSet>("web", &json!({"spec": {"template": template}})).await.map(drop) };
        let seen = sleep_through(scene, "statefulset-operator", update, async || settled(scene, "web").await).await?;
        ensure!((seen.pods.len(), seen.least_ready) == (6, 2), "three old pods and three new ones: {seen:?}");
        Ok(())
    })
}

#[test]
fn a_daemon_set_whose_leader_sleeps_has_one_pod_on_each_node() -> Result<()> {
    on_quiet_cluster(async |scene| {
        scene.apply(&daemon_set("web", &json!({}))).await?;
        let template = json!({"metadata": {"annotations": {"step": "2"}}});
        let update =
            async { scene.patch::<DaemonSet>("web", &json!({"spec": {"template": template}})).await.map(drop) };
        let covered = async || scene.covered("web", (2, 2)).await;
        let seen = sleep_through(scene, "daemonset-operator", update, covered).await?;
        let counts = (seen.pods.len(), seen.most_on_a_node, seen.least_ready);
        ensure!(counts == (4, 1, 1), "two old pods and two new ones: {seen:?}");
        Ok(())
    })
}
