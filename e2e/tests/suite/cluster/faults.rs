//! The caches of the collectors are old, their requests are refused, answers get lost, and the operators are killed
//! between any two writes: even then only objects are deleted that, as they are, give a reason for it themselves.
//!
//! Each operator is behind a proxy of its own, on a cluster of its own. Left out: faults that concern every operator,
//! which are shown with Deployments.

mod collector;
mod kills;
mod namespaces;
mod pods;

use anyhow::{Result, ensure};
use e2e::cluster::ClusterOptions;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::Value;

use super::tree::{config_maps, reference, secrets};
use crate::support::behind::Behind;
use crate::support::{Scene, with_cluster};

const COLLECTOR: &str = "garbage-collector-operator";

fn with_behind(operator: &str, test: impl AsyncFnOnce(&Scene, Behind) -> Result<()>) -> Result<()> {
    with_cluster(ClusterOptions { nodes: 1, ..ClusterOptions::default() }, async |scene| {
        let behind = Behind::start(scene, operator, operator, &[]).await?;
        test(scene, behind).await
    })
}

/// A Secret that owns a ConfigMap of the same name.
async fn pair(scene: &Scene, name: &str) -> Result<Value> {
    let owner = reference(&scene.apply(&secrets().object(name, &[])).await?);
    scene.apply(&config_maps().object(name, std::slice::from_ref(&owner))).await?;
    Ok(owner)
}

async fn delete_owner(scene: &Scene, name: &str) -> Result<()> {
    scene.api::<Secret>().delete(name, &DeleteParams::background()).await?;
    Ok(())
}

async fn owners(scene: &Scene, name: &str) -> Result<Vec<String>> {
    let object: ConfigMap = scene.fetch(name).await?;
    ensure!(object.metadata.deletion_timestamp.is_none(), "{name} is being deleted");
    Ok(object.owner_references().iter().map(|owner| owner.name.clone()).collect())
}

/// Lets a pair go, by which all that has happened before in both kinds has been seen.
async fn seen(scene: &Scene, name: &str) -> Result<()> {
    pair(scene, name).await?;
    delete_owner(scene, name).await?;
    scene.gone::<ConfigMap>(name).await
}
