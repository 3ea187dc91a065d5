//! An Indexed Job handed over in its middle, from kube-controller-manager to the operator and back.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use e2e::cluster::{ClusterOptions, ControllerManager};
use e2e::operator::upstream_controller;
use serde_json::json;

use super::{behaving, completed, index, indexed, pods, status};
use crate::support::{DEADLINE, Scene, operators, start_operators, with_cluster};

const COMPLETIONS: i32 = 200;

/// Waits until so many have succeeded, and returns while it still runs.
async fn succeeded(scene: &Scene, job: &str, count: i32) -> Result<()> {
    scene
        .wait_until(&format!("{count} of {job} have succeeded"), DEADLINE, async || {
            let status = status(scene, job).await?;
            ensure!(status.succeeded >= Some(count), "{status:?}");
            ensure!(status.succeeded < Some(COMPLETIONS), "it is over already");
            Ok(())
        })
        .await
}

#[test]
fn no_index_runs_twice_when_a_job_changes_hands_and_back() -> Result<()> {
    with_cluster(ClusterOptions::with_controller_manager(), async |scene| {
        let becomes = json!({"pods.e2e/becomes": "exited", "pods.e2e/after": "1s"});
        scene.apply(&behaving(indexed("many", 20, COMPLETIONS), &becomes, "sleep 1")).await?;
        let noted = scene.sample("app=many").await?;
        succeeded(scene, "many", 40).await?;
        scene.cluster.stop_controller_manager().await?;
        scene
            .cluster
            .start_controller_manager(ControllerManager::without(operators().map(upstream_controller)))
            .await?;
        let mut operators = start_operators(&scene.cluster, operators()).await?;
        let taken = status(scene, "many").await?.succeeded.unwrap_or(0);
        succeeded(scene, "many", taken + 60).await?;

        for operator in &mut operators {
            operator.terminate().await?;
        }
        scene.cluster.stop_controller_manager().await?;
        scene.cluster.start_controller_manager(ControllerManager::all()).await?;
        let status = completed(scene, "many").await?;
        assert_eq!((status.succeeded, status.failed), (Some(COMPLETIONS), None));
        assert_eq!(status.completed_indexes.as_deref(), Some("0-199"));
        let mut runs: BTreeMap<i32, usize> = BTreeMap::new();
        for pod in pods(scene, "many").await? {
            *runs.entry(index(&pod)).or_default() += 1;
        }
        assert!(runs.values().all(|runs| *runs == 1) && runs.len() == 200, "{runs:?}");
        let seen = noted.finish(scene).await?;
        assert_eq!(seen.pods.len(), 200, "a pod was made that is not there any more");
        Ok(())
    })
}
