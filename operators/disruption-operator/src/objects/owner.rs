//! The owners of pods: how many pods each asks for, and the owner of a ReplicaSet itself.
//!
//! Left out: everything else. Owners of any kind are read, and all that they have in common is a scale.

use serde::Deserialize;
use shared::api::object::{Meta, Uid, null_as_default};
use shared::api::resource::{REPLICA_SETS, Resource};

/// `apps/v1` `StatefulSet`.
pub const STATEFUL_SETS: Resource = Resource::namespaced("apps", "v1", "StatefulSet", "statefulsets");

/// The subresource of objects that can be scaled.
pub const SCALE: &str = "scale";

/// The group versions in which a scale is understood.
///
/// Upstream: `NewScaleConverter`, `staging/src/k8s.io/client-go/scale/util.go`.
pub const SCALE_VERSIONS: [&str; 4] = ["autoscaling/v1", "apps/v1beta1", "apps/v1beta2", "extensions/v1beta1"];

/// A ReplicaSet.
#[derive(Debug, PartialEq, Deserialize)]
pub struct ReplicaSet {
    /// Its metadata.
    pub metadata: Meta,
    /// How many pods it asks for.
    #[serde(default)]
    pub spec: ScaleSpec,
}

shared::view!(ReplicaSet, REPLICA_SETS);

/// The scale of an object of any kind.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Scale {
    /// Whose scale it is.
    #[serde(deserialize_with = "null_as_default")]
    pub metadata: ScaleMeta,
    /// How many pods it asks for.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: ScaleSpec,
}

/// `metadata` of a scale.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ScaleMeta {
    /// The uid of the object.
    pub uid: Uid,
}

/// `spec` of an object that can be scaled, or of its scale.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ScaleSpec {
    /// How many pods it asks for.
    #[serde(deserialize_with = "null_as_default")]
    pub replicas: i32,
}
