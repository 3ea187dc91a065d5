//! DaemonSets whose operator is killed at each write, gets no answers, or does not see its pods: no node has two pods
//! of one, unless it surges, and then an old one and a new one.
//!
//! Left out: nodes that come, change and go meanwhile, but for those that come while pods are not seen.

use anyhow::{Result, ensure};
use e2e::proxy::{Action, Rule};
use http::Method;
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::{kill_at, with_operators};
use crate::support::behind::{Behind, each};
use crate::support::sampler::Seen;
use crate::support::{DEADLINE, Scene, daemon_set};

const DAEMON_SET: &str = "daemonset-operator";

/// Gives a DaemonSet another template.
async fn update(scene: &Scene, name: &str, step: u32) -> Result<()> {
    let template = json!({"metadata": {"annotations": {"step": step.to_string()}}});
    scene.patch::<DaemonSet>(name, &json!({"spec": {"template": template}})).await.map(drop)
}

#[test]
fn a_creation_and_updates_survive_the_operator_killed_at_each_write() -> Result<()> {
    with_operators([DAEMON_SET], async |scene, [mut victim]| {
        kill_at_each_creation(scene, &mut victim).await?;
        let at_a_time = json!({"revisionHistoryLimit": 2});
        scene.apply(&daemon_set("one", &at_a_time)).await?;
        kill_at_each_update(scene, &mut victim, "one", |seen| (seen.most_on_a_node, seen.least_ready) == (1, 1))
            .await?;
        let surge = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
        scene.apply(&daemon_set("two", &json!({"revisionHistoryLimit": 2, "updateStrategy": surge}))).await?;
        kill_at_each_update(scene, &mut victim, "two", |seen| (seen.most_on_a_node, seen.least_ready) == (2, 2)).await
    })
}

/// Creates one DaemonSet for each of the writes that a creation takes.
async fn kill_at_each_creation(scene: &Scene, victim: &mut Behind) -> Result<()> {
    let (mut writes, mut is_reached) = (0, true);
    while is_reached {
        let name = format!("web{writes}");
        let create = async { scene.apply(&daemon_set(&name, &json!({}))).await.map(drop) };
        let complete = async || scene.covered(&name, (2, 2)).await;
        let (reached, seen) = kill_at(scene, victim, (&name, writes), create, complete).await?;
        ensure!((seen.pods.len(), seen.most_on_a_node) == (2, 1), "for two nodes: {seen:?}");
        is_reached = reached;
        writes += 1;
    }
    // A revision, two pods, and what the status says of them.
    ensure!(writes > 5, "a creation with less than {writes} writes");
    Ok(())
}

/// Updates a DaemonSet once for each of the writes that an update takes. All that is seen must be `within` bounds.
async fn kill_at_each_update(
    scene: &Scene,
    victim: &mut Behind,
    name: &str,
    within: impl Fn(&Seen) -> bool,
) -> Result<()> {
    scene.covered(name, (2, 2)).await?;
    let (mut writes, mut is_reached) = (0, true);
    while is_reached {
        let complete = async || scene.covered(name, (2, 2)).await;
        let (reached, seen) = kill_at(scene, victim, (name, writes), update(scene, name, writes), complete).await?;
        ensure!(seen.pods.len() == 4, "{} pods for two old and two new ones", seen.pods.len());
        ensure!(within(&seen), "{seen:?}");
        is_reached = reached;
        writes += 1;
    }
    // A revision, and of each node the end of one pod and the beginning of another.
    ensure!(writes > 6, "an update with less than {writes} writes");
    scene
        .wait_until("no revision is left but two of history", DEADLINE, async || {
            let revisions: Vec<ControllerRevision> = scene.list(&format!("app={name}")).await?;
            ensure!(revisions.len() == 3, "{} revisions", revisions.len());
            Ok(())
        })
        .await
}

#[test]
fn no_node_gets_a_second_pod_when_answers_are_lost_or_pods_are_not_seen() -> Result<()> {
    with_operators([DAEMON_SET], async |scene, [behind]| {
        scene.cluster.add_nodes(4).await?;
        let lose = || Rule::new(Action::LoseResponse).always();
        // The creation of each revision, and some of the other writes.
        behind.proxy.add(lose().method(Method::POST).path("**/controllerrevisions"));
        behind.proxy.add(lose().method(Method::POST).path("**/pods").when(each(4)));
        behind.proxy.add(lose().method(Method::DELETE).path("**/pods/*").when(each(2)));
        behind.proxy.add(lose().method(Method::PATCH).path("**/daemonsets/*/status").when(each(2)));
        let sampler = scene.sample("app=web").await?;
        let two_at_a_time = json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}});
        scene.apply(&daemon_set("web", &two_at_a_time)).await?;
        scene.covered("web", (6, 6)).await?;
        let seen = sampler.finish(scene).await?;
        ensure!((seen.pods.len(), seen.most_on_a_node) == (6, 1), "for six nodes: {seen:?}");

        let sampler = scene.sample("app=web").await?;
        update(scene, "web", 1).await?;
        scene.covered("web", (6, 6)).await?;
        let seen = sampler.finish(scene).await?;
        ensure!((seen.pods.len(), seen.most_on_a_node) == (12, 1), "six old ones and six new ones: {seen:?}");
        ensure!(seen.least_ready >= 4, "only {} pods were ready", seen.least_ready);
        let (creates, lost) = (behind.count(&Method::POST, "**/pods"), behind.lost("**/pods"));
        ensure!((creates, lost) == (12, 3), "{creates} creates for 12 pods, of which {lost} were not answered");
        let revisions = scene.list::<ControllerRevision>("app=web").await?.len();
        ensure!(revisions == 2, "{revisions} revisions of two templates");
        let status = scene.fetch::<DaemonSet>("web").await?.status.unwrap_or_default();
        ensure!(status.collision_count.is_none(), "an own revision was taken for another's: {status:?}");
        ensure!(behind.lost("**/daemonsets/*/status") > 0, "no status was lost");
        ensure!(behind.lost("**/pods/*") > 0, "no deletion was lost");

        behind.proxy.clear();
        grow_unseen(scene, &behind).await
    })
}

/// Three nodes come to six while the operator does not see the pods that it makes.
async fn grow_unseen(scene: &Scene, behind: &Behind) -> Result<()> {
    let pods = format!("/api/v1/namespaces/{}/pods", scene.namespace);
    let looks = || (behind.lists(&pods), behind.rewatches(&pods));
    let (sampler, before) = (scene.sample("app=web").await?, looks());
    behind.proxy.freeze_watches(&pods);
    scene.cluster.add_nodes(3).await?;
    scene
        .wait_until("there is a pod more", DEADLINE, async || {
            let now = scene.list::<Pod>("app=web").await?.len();
            ensure!(now > 6, "{now}");
            Ok(())
        })
        .await?;
    // Each of these asks for a sync.
    for look in ["1", "2", "3"] {
        scene.patch::<DaemonSet>("web", &json!({"metadata": {"labels": {"look": look}}})).await?;
    }
    scene
        .wait_until("the silent watch is given up", DEADLINE, async || {
            ensure!(looks() > before, "{:?}", looks());
            Ok(())
        })
        .await?;
    behind.proxy.thaw_watches();
    scene.covered("web", (9, 9)).await?;
    let seen = sampler.finish(scene).await?;
    ensure!((seen.pods.len(), seen.most_on_a_node, seen.least_ready) == (9, 1, 6), "for nine nodes: {seen:?}");
    let creates = behind.count(&Method::POST, "**/pods");
    ensure!(creates == 15, "{creates} creates for 15 pods");
    Ok(())
}
