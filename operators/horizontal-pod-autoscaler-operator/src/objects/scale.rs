//! The subresource `scale` of a target of any kind.

use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::object::{ResourceVersion, Uid, null_as_default};

pub const SCALE: &str = "scale";

/// `autoscaling/v1` `Scale`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Scale {
    #[serde(deserialize_with = "null_as_default")]
    pub metadata: ScaleMeta,
    #[serde(deserialize_with = "null_as_default")]
    pub spec: ScaleSpec,
    #[serde(deserialize_with = "null_as_default")]
    pub status: ScaleStatus,
}

/// `metadata` of a scale.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaleMeta {
    pub uid: Uid,
    pub resource_version: ResourceVersion,
}

/// `spec` of a scale.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ScaleSpec {
    #[serde(deserialize_with = "null_as_default")]
    pub replicas: i32,
}

/// `status` of a scale.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ScaleStatus {
    #[serde(deserialize_with = "null_as_default")]
    pub replicas: i32,
    /// The selector of the pods, as text.
    #[serde(deserialize_with = "null_as_default")]
    pub selector: Text,
}
