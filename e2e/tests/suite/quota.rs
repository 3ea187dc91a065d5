//! Quotas: what counts under which limit, and kinds that are many or cannot be read.
//! Left out: who is refused what, which is the apiserver's.

pub(crate) mod counts;
mod kinds;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ResourceQuota;
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene};

/// A quota with these limits.
pub(crate) fn quota(name: &str, hard: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": hard}})
}

/// The usage of a quota, and its limits in force.
pub(crate) async fn status(scene: &Scene, name: &str) -> Result<[Value; 2]> {
    let status = scene.fetch::<ResourceQuota>(name).await?.status.unwrap_or_default();
    Ok([serde_json::to_value(status.used)?, serde_json::to_value(status.hard)?])
}

/// Waits until a quota has this usage, among other.
pub(crate) async fn uses(scene: &Scene, name: &str, expected: &Value) -> Result<()> {
    scene
        .wait_until(&format!("{name} has the usage {expected}"), DEADLINE, async || {
            let [used, _] = status(scene, name).await?;
            let is_so = expected.as_object().into_iter().flatten().all(|(limit, amount)| used[limit] == *amount);
            ensure!(is_so, "{used}");
            Ok(())
        })
        .await
}
