//! The scale of what is scaled, of whatever kind that is.
//!
//! Left out: scales older than `autoscaling/v1`, which no apiserver serves any more.

use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::object::{ResourceVersion, Uid, null_as_default};

/// The subresource of objects that can be scaled.
pub const SCALE: &str = "scale";

/// `autoscaling/v1` `Scale`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Scale {
    /// Whose scale it is.
    #[serde(deserialize_with = "null_as_default")]
    pub metadata: ScaleMeta,
    /// How many replicas are asked for.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: ScaleSpec,
    /// How many there are.
    #[serde(deserialize_with = "null_as_default")]
    pub status: ScaleStatus,
}

/// `metadata` of a scale.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaleMeta {
    /// The uid of the object.
    pub uid: Uid,
    /// The version of the object.
    pub resource_version: ResourceVersion,
}

/// `spec` of a scale.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ScaleSpec {
    /// How many replicas are asked for.
    #[serde(deserialize_with = "null_as_default")]
    pub replicas: i32,
}

/// `status` of a scale.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ScaleStatus {
    /// How many replicas there are.
    #[serde(deserialize_with = "null_as_default")]
    pub replicas: i32,
    /// The selector of the pods, as a text.
    #[serde(deserialize_with = "null_as_default")]
    pub selector: Text,
}
