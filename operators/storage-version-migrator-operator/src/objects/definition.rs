//! What is read of a CustomResourceDefinition: the version in which it stores objects, those in which it may have stored
//! some, and whether a migration was started, and for which generation.

use serde::Deserialize;
use shared::api::condition::TRUE;
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::Resource;

pub const CUSTOM_RESOURCE_DEFINITIONS: Resource =
    Resource::cluster_scoped("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");

/// The condition of a CustomResourceDefinition whose objects are migrated.
///
/// Upstream: `StorageMigrating`, `staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/types.go`.
pub const STORAGE_MIGRATING: &str = "StorageMigrating";

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "RawDefinition")]
pub struct Definition {
    pub metadata: Meta,
    /// The version in which objects are stored from now on.
    pub storage_version: Option<Text>,
    /// `status.storedVersions`.
    pub stored_versions: Vec<Text>,
    /// The condition [`STORAGE_MIGRATING`].
    pub migrating: Option<Migrating>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrating {
    /// Whether a migration runs; it has ended otherwise.
    pub is_true: bool,
    /// The generation for which the condition was set.
    pub generation: i64,
}

shared::view!(Definition, CUSTOM_RESOURCE_DEFINITIONS);

#[derive(Deserialize)]
struct RawDefinition {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawSpec {
    #[serde(deserialize_with = "null_as_default")]
    versions: Vec<RawVersion>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawVersion {
    name: Text,
    storage: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus {
    #[serde(deserialize_with = "null_as_default")]
    stored_versions: Vec<Text>,
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<RawCondition>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawCondition {
    #[serde(rename = "type")]
    type_: Text,
    status: Text,
    observed_generation: i64,
}

impl From<RawDefinition> for Definition {
    fn from(RawDefinition { metadata, spec, status }: RawDefinition) -> Self {
        let RawStatus { stored_versions, conditions } = status;
        let storage_version = spec.versions.into_iter().find(|version| version.storage).map(|version| version.name);
        let migrating = conditions.into_iter().find(|condition| condition.type_ == *STORAGE_MIGRATING);
        let migrating = migrating.map(|RawCondition { type_: _, status, observed_generation }| Migrating {
            is_true: status == *TRUE,
            generation: observed_generation,
        });
        Self { metadata, storage_version, stored_versions, migrating }
    }
}
