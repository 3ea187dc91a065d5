//! The owners of pods: their scales, and the owner of a ReplicaSet.

use serde::Deserialize;
use shared::api::object::{Meta, Uid, null_as_default};
use shared::api::resource::{REPLICA_SETS, Resource};

pub const STATEFUL_SETS: Resource = Resource::namespaced("apps", "v1", "StatefulSet", "statefulsets");

pub const SCALE: &str = "scale";

/// The supported group versions of a scale.
///
/// Upstream: `NewScaleConverter`, `staging/src/k8s.io/client-go/scale/util.go`.
pub const SCALE_VERSIONS: [&str; 4] = ["autoscaling/v1", "apps/v1beta1", "apps/v1beta2", "extensions/v1beta1"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerScale {
    /// The scaled object: the Deployment if the owner is a ReplicaSet of one.
    pub uid: Uid,
    pub replicas: i32,
}

#[derive(Debug, PartialEq, Deserialize)]
pub struct ReplicaSet {
    pub metadata: Meta,
    #[serde(default)]
    pub spec: ScaleSpec,
}

shared::view!(ReplicaSet, REPLICA_SETS);

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Scale {
    #[serde(deserialize_with = "null_as_default")]
    pub metadata: ScaleMeta,
    #[serde(deserialize_with = "null_as_default")]
    pub spec: ScaleSpec,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ScaleMeta {
    #[serde(deserialize_with = "null_as_default")]
    pub uid: Uid,
}

/// `spec` of a scalable object, or of its scale.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ScaleSpec {
    #[serde(deserialize_with = "null_as_default")]
    pub replicas: i32,
}
