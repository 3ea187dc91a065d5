//! SIGKILL at each write of a StatefulSet's creation and of its update: one pod at a time, and none more than that takes.
//!
//! Left out: a pod's claims, which nobody binds here.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use serde_json::json;

use super::{kill_at, with_operators};
use crate::support::{DEADLINE, Scene, stateful_set};

const STATEFUL_SET: &str = "statefulset-operator";
const REPLICAS: i32 = 3;

#[test]
fn an_ordered_creation_survives_the_operator_killed_at_each_write() -> Result<()> {
    with_operators([STATEFUL_SET], async |scene, [mut victim]| {
        let create = async |name: &str| scene.apply(&stateful_set(name, REPLICAS, &json!({}))).await.map(drop);
        let (mut writes, mut is_reached) = (0, true);
        while is_reached {
            let name = format!("web{writes}");
            let complete = async || settled(scene, &name).await;
            let (reached, seen) = kill_at(scene, &mut victim, (&name, writes), create(&name), complete).await?;
            ensure!(seen.pods.len() == 3, "{} pods of three", seen.pods.len());
            is_reached = reached;
            writes += 1;
        }
        // A revision, three pods, and what the status says of them.
        ensure!(writes > 5, "a creation with less than {writes} writes");
        Ok(())
    })
}

#[test]
fn an_update_survives_the_operator_killed_at_each_write() -> Result<()> {
    with_operators([STATEFUL_SET], async |scene, [mut victim]| {
        scene.apply(&stateful_set("web", REPLICAS, &json!({"revisionHistoryLimit": 2}))).await?;
        settled(scene, "web").await?;
        let (mut writes, mut is_reached) = (0, true);
        while is_reached {
            let template = json!({"metadata": {"annotations": {"step": writes.to_string()}}});
            let update =
                async { scene.patch::<StatefulSet>("web", &json!({"spec": {"template": template}})).await.map(drop) };
            let complete = async || settled(scene, "web").await;
            let (reached, seen) = kill_at(scene, &mut victim, ("web", writes), update, complete).await?;
            ensure!(seen.pods.len() == 6, "{} pods for three old and three new ones", seen.pods.len());
            ensure!(seen.least_ready >= 2, "only {} pods were ready", seen.least_ready);
            is_reached = reached;
            writes += 1;
        }
        ensure!(writes > 8, "an update with less than {writes} writes");
        scene
            .wait_until("no revision is left but two of history", DEADLINE, async || {
                let revisions: Vec<ControllerRevision> = scene.list("app=web").await?;
                ensure!(revisions.len() == 3, "{} revisions", revisions.len());
                Ok(())
            })
            .await
    })
}

/// Waits until all pods are of the newest revision and ready.
async fn settled(scene: &Scene, name: &str) -> Result<()> {
    scene
        .wait_until(&format!("{name} is complete"), DEADLINE, async || {
            let set: StatefulSet = scene.fetch(name).await?;
            let status = set.status.unwrap_or_default();
            let is_seen = status.observed_generation == set.metadata.generation;
            let is_updated = status.current_revision == status.update_revision;
            let counts = (status.replicas, status.ready_replicas, status.updated_replicas);
            ensure!(is_seen && is_updated && counts == (REPLICAS, Some(REPLICAS), Some(REPLICAS)), "{status:?}");
            Ok(())
        })
        .await
}
