//! Deployments as people use them, with kubectl.
//! Left out: which error text kubectl chooses; the words that are checked are the conditions' and the events'.

mod history;
mod rollout;
mod scaling;

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;

use crate::support::Scene;
use crate::support::objects::{replicas_of, revision};

/// The uids of a Deployment's pods that nobody has deleted, in order.
async fn pods(scene: &Scene, name: &str) -> Result<Vec<String>> {
    let mut pods: Vec<Pod> = scene.list(&format!("app={name}")).await?;
    pods.retain(|pod| pod.metadata.deletion_timestamp.is_none());
    let mut uids: Vec<String> = pods.iter().map(crate::support::uid).collect();
    uids.sort();
    Ok(uids)
}

/// Revision and specified replicas of a Deployment's ReplicaSets, in the order of revisions.
async fn sizes(scene: &Scene, name: &str) -> Result<Vec<(i64, i32)>> {
    let sets: Vec<ReplicaSet> = scene.list(&format!("app={name}")).await?;
    let mut sizes: Vec<(i64, i32)> =
        sets.iter().map(|set| (revision(set).parse().unwrap_or(0), replicas_of(set))).collect();
    sizes.sort_unstable();
    Ok(sizes)
}

/// Passes once the Deployment's last change has been seen.
async fn observed(scene: &Scene, name: &str) -> Result<Deployment> {
    let deployment: Deployment = scene.fetch(name).await?;
    let observed = deployment.status.as_ref().and_then(|status| status.observed_generation);
    ensure!(observed == deployment.metadata.generation, "generation {observed:?} was seen last");
    Ok(deployment)
}
