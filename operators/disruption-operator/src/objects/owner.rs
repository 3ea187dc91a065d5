//! The owners of pods: their scales, and the owner of a ReplicaSet.

use serde::Deserialize;
use shared::api::object::{Meta, Uid, null_as_default};
use shared::api::resource::{REPLICA_SETS, Resource};

/// `apps/v1` `StatefulSet`.
pub const STATEFUL_SETS: Resource = Resource::namespaced("apps", "v1", "StatefulSet", "statefulsets");

/// The name of the subresource.
pub const SCALE: &str = "scale";

/// The supported group versions of a scale.
///
/// Upstream: `NewScaleConverter`, `staging/src/k8s.io/client-go/scale/util.go`.
pub const SCALE_VERSIONS: [&str; 4] = ["autoscaling/v1", "apps/v1beta1", "apps/v1beta2", "extensions/v1beta1"];

/// The scale of one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerScale {
    /// The scaled object: the Deployment if the owner is a ReplicaSet of one.
    pub uid: Uid,
    /// The desired number of pods.
    pub replicas: i32,
}

/// A ReplicaSet.
#[derive(Debug, PartialEq, Deserialize)]
pub struct ReplicaSet {
    /// Its metadata.
    pub metadata: Meta,
    /// Its scale.
    #[serde(default)]
    pub spec: ScaleSpec,
}

shared::view!(ReplicaSet, REPLICA_SETS);

/// The scale of an object of any kind.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Scale {
    /// The metadata of the scaled object.
    #[serde(deserialize_with = "null_as_default")]
    pub metadata: ScaleMeta,
    /// The desired scale.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: ScaleSpec,
}

/// `metadata` of a scale.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ScaleMeta {
    /// The uid of the object.
    #[serde(deserialize_with = "null_as_default")]
    pub uid: Uid,
}

/// `spec` of a scalable object, or of its scale.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ScaleSpec {
    /// The desired number of pods.
    #[serde(deserialize_with = "null_as_default")]
    pub replicas: i32,
}
