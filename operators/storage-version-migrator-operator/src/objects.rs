//! The view of a StorageVersionMigration, and what is read of a CustomResourceDefinition: see [`definition`].

pub mod condition;
pub mod definition;
pub mod progress;

use std::fmt;

use serde::{Deserialize, Serialize};
use shared::api::condition::{FALSE, TRUE};
use shared::api::intern::Text;
use shared::api::object::{Key, Meta, ResourceVersion, null_as_default};
use shared::api::resource::Resource;

use progress::{Progress, ProgressAnnotation};

/// `storagemigration.k8s.io/v1beta1` `StorageVersionMigration`, the version that upstream uses.
pub const STORAGE_VERSION_MIGRATIONS: Resource = Resource::cluster_scoped(
    "storagemigration.k8s.io",
    "v1beta1",
    "StorageVersionMigration",
    "storageversionmigrations",
);

/// The types of a migration's conditions.
///
/// Upstream: `MigrationConditionType`, `staging/src/k8s.io/api/storagemigration/v1beta1/types.go`.
pub const RUNNING: &str = "Running";
pub const SUCCEEDED: &str = "Succeeded";
pub const FAILED: &str = "Failed";

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "RawMigration")]
pub struct Migration {
    pub metadata: Meta<ProgressAnnotation>,
    pub target: GroupResource,
    /// `status.resourceVersion`: objects of a later version are in the current storage version. Empty until it is known.
    pub version: Box<str>,
    pub running: State,
    pub succeeded: State,
    pub failed: State,
}

shared::view!(Migration, STORAGE_VERSION_MIGRATIONS, ProgressAnnotation);

/// The state of a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It is neither true nor false.
    #[default]
    Unknown,
    True,
    False,
}

/// The migrated resource, such as `widgets` of `example.com`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupResource {
    pub group: Text,
    pub resource: Text,
}

impl Migration {
    /// Upstream: `isRunning`, `pkg/controller/storageversionmigrator/migrationrunner.go`.
    pub fn is_running(&self) -> bool {
        self.running == State::True
    }

    /// Upstream: `isTerminal`, `pkg/controller/storageversionmigrator/migrationrunner.go`.
    pub fn is_finished(&self) -> bool {
        self.succeeded == State::True || self.failed == State::True
    }

    /// How far it has come. What belongs to another migration counts for nothing: annotations may be copied.
    pub fn progress(&self) -> Progress {
        let ProgressAnnotation { progress } = &self.metadata.annotations;
        progress
            .clone()
            .filter(|progress| progress.uid == self.metadata.uid)
            .unwrap_or(Progress::new(self.metadata.uid))
    }
}

impl GroupResource {
    /// The key of a resource: its name as upstream prints it.
    pub fn key(&self) -> Key {
        Key::new("", &self.to_string())
    }
}

/// As upstream prints it: `pods`, `widgets.example.com`. This is also the name of its CustomResourceDefinition, if it has
/// one.
impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, resource } = self;
        if group.is_empty() { f.write_str(resource) } else { write!(f, "{resource}.{group}") }
    }
}

/// The number of a version as the apiserver writes it; none of any other text.
///
/// Upstream: `isWellFormed`, `staging/src/k8s.io/apimachinery/pkg/util/resourceversion/resourceversion.go`.
pub fn well_formed(version: &str) -> Option<ResourceVersion> {
    let is_number = !version.starts_with('0') && version.bytes().all(|byte| byte.is_ascii_digit());
    version.parse().ok().filter(|_| is_number).map(ResourceVersion)
}

#[derive(Deserialize)]
struct RawMigration {
    metadata: Meta<ProgressAnnotation>,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawSpec {
    #[serde(deserialize_with = "null_as_default")]
    resource: GroupResource,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus {
    resource_version: Box<str>,
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<RawCondition>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawCondition {
    #[serde(rename = "type")]
    type_: Text,
    status: Text,
}

impl From<RawMigration> for Migration {
    fn from(RawMigration { metadata, spec, status }: RawMigration) -> Self {
        let RawStatus { resource_version, conditions } = status;
        let state = |type_: &str| {
            let status = conditions.iter().find(|condition| condition.type_ == *type_).map(|found| &*found.status);
            match status {
                Some(TRUE) => State::True,
                Some(FALSE) => State::False,
                Some(_) | None => State::Unknown,
            }
        };
        Self {
            metadata,
            target: spec.resource,
            version: resource_version,
            running: state(RUNNING),
            succeeded: state(SUCCEEDED),
            failed: state(FAILED),
        }
    }
}
