//! Two processes of one operator of StatefulSets or DaemonSets that elect no leader, so that both act at once; and one of
//! them sees pods late.
//!
//! Left out: leaders of whom one does not know yet that it is none any more, which `sleepers` is about.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet, StatefulSet};
use serde_json::{Value, json};

use super::on_quiet_cluster;
use super::sets::settled;
use crate::support::behind::Behind;
use crate::support::sampler::Seen;
use crate::support::scene::Namespaced;
use crate::support::{DEADLINE, Scene, daemon_set, stateful_set};

/// How much later one of them sees pods.
const LATE: Duration = Duration::from_millis(300);

/// A process that has written nothing for as long has nothing more to do.
const AT_REST: Duration = Duration::from_secs(2);

/// A creation of `web` and an update of it under both. Gives what was seen of each.
async fn live<K: Namespaced>(
    scene: &Scene,
    operator: &str,
    set: &Value,
    settled: impl AsyncFn() -> Result<()>,
) -> Result<[Seen; 2]> {
    let twins =
        [Behind::start(scene, operator, "first", &[]).await?, Behind::start(scene, operator, "late", &[]).await?];
    let sampler = scene.sample("app=web").await?;
    scene.apply(set).await?;
    settled().await?;
    let created = sampler.finish(scene).await?;

    ensure!(twins[1].proxy.delay_watches("**/pods", LATE) > 0, "the late one does not follow pods");
    let sampler = scene.sample("app=web").await?;
    let template = json!({"metadata": {"annotations": {"step": "2"}}});
    scene.patch::<K>("web", &json!({"spec": {"template": template}})).await?;
    settled().await?;
    let updated = sampler.finish(scene).await?;
    rest(scene, &twins).await?;
    settled().await?;
    let revisions = scene.list::<ControllerRevision>("app=web").await?.len();
    ensure!(revisions == 2, "{revisions} revisions of two templates");
    Ok([created, updated])
}

/// Waits until neither has anything to do any more about what the other one does.
async fn rest(scene: &Scene, twins: &[Behind; 2]) -> Result<()> {
    scene
        .wait_until("both are at rest", DEADLINE, async || {
            for twin in twins {
                let name = twin.operator.name();
                let last = twin.work().last().with_context(|| format!("{name} has done nothing"))?.at;
                ensure!(last.elapsed() >= AT_REST, "{name} wrote {:?} ago", last.elapsed());
            }
            Ok(())
        })
        .await
}

#[test]
fn a_stateful_set_of_two_processes_is_updated_one_pod_at_a_time() -> Result<()> {
    on_quiet_cluster(async |scene| {
        let set = stateful_set("web", 3, &json!({}));
        let complete = async || settled(scene, "web").await;
        let [created, updated] = live::<StatefulSet>(scene, "statefulset-operator", &set, complete).await?;
        ensure!(created.pods.len() == 3, "three pods: {created:?}");
        ensure!((updated.pods.len(), updated.least_ready) == (6, 2), "three old pods and three new ones: {updated:?}");
        Ok(())
    })
}

/// Names of its pods are random: what both find missing both create, and what is too many goes again.
#[test]
fn a_daemon_set_of_two_processes_ends_with_one_pod_on_each_node() -> Result<()> {
    on_quiet_cluster(async |scene| {
        let covered = async || scene.covered("web", (2, 2)).await;
        let set = daemon_set("web", &json!({}));
        let [created, updated] = live::<DaemonSet>(scene, "daemonset-operator", &set, covered).await?;
        ensure!(created.most_on_a_node <= 2, "one of each process: {created:?}");
        ensure!(updated.most_on_a_node <= 2, "one of each process: {updated:?}");
        Ok(())
    })
}
