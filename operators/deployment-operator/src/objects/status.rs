//! The status of a Deployment, and the smallest patch that writes it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::api::condition::Condition;
use shared::api::intern::Text;
use shared::api::object::null_as_default;

use super::annotations;

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentStatus {
    pub observed_generation: i64,
    /// Pods that are not terminating.
    pub replicas: i32,
    pub updated_replicas: i32,
    pub ready_replicas: i32,
    pub available_replicas: i32,
    /// Pods that are wanted and not available.
    pub unavailable_replicas: i32,
    /// Pods that are terminating, if every ReplicaSet says how many.
    pub terminating_replicas: Option<i32>,
    /// How often the name of a new ReplicaSet was taken.
    pub collision_count: Option<i32>,
    #[serde(deserialize_with = "null_as_default")]
    pub conditions: Vec<Condition>,
}

/// A strategic merge patch of the status: only what changes, with the revision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StatusPatch {
    metadata: PatchMetadata,
    status: BTreeMap<&'static str, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct PatchMetadata {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'static str, Text>,
}

impl StatusPatch {
    /// From one status to the next, and to this revision; none if nothing changes.
    pub fn new(before: &DeploymentStatus, next: DeploymentStatus, revision: Option<&Text>) -> Option<Self> {
        let annotations: BTreeMap<&'static str, Text> =
            revision.map(|revision| (annotations::REVISION, revision.clone())).into_iter().collect();
        let status = changes(before, next);
        if annotations.is_empty() && status.is_empty() {
            return None;
        }
        Some(Self { metadata: PatchMetadata { annotations }, status })
    }
}

/// The changed fields; `null` removes one.
fn changes(before: &DeploymentStatus, next: DeploymentStatus) -> BTreeMap<&'static str, Value> {
    fn change<T: PartialEq + Serialize>(name: &'static str, before: &T, next: &T) -> Option<(&'static str, Value)> {
        (before != next).then(|| (name, json!(next)))
    }
    let DeploymentStatus {
        observed_generation,
        replicas,
        updated_replicas,
        ready_replicas,
        available_replicas,
        unavailable_replicas,
        terminating_replicas,
        collision_count,
        conditions,
    } = next;
    let changes = [
        change("observedGeneration", &before.observed_generation, &observed_generation),
        change("replicas", &before.replicas, &replicas),
        change("updatedReplicas", &before.updated_replicas, &updated_replicas),
        change("readyReplicas", &before.ready_replicas, &ready_replicas),
        change("availableReplicas", &before.available_replicas, &available_replicas),
        change("unavailableReplicas", &before.unavailable_replicas, &unavailable_replicas),
        change("terminatingReplicas", &before.terminating_replicas, &terminating_replicas),
        change("collisionCount", &before.collision_count, &collision_count),
        change("conditions", &before.conditions, &conditions),
    ];
    changes.into_iter().flatten().collect()
}
