//! The view of a `ReplicationController`: its spec and its last written status.
//!
//! Left out: its annotations. A pod's view is [`shared::controllers::replicas::pod::Pod`].

use serde::Deserialize;
use shared::api::object::Meta;
use shared::api::resource::REPLICATION_CONTROLLERS;
use shared::controllers::replicas::status::ReplicaStatus;
use shared::controllers::replicas::{ReplicaOwner, ReplicaSpec};

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ReplicationController {
    pub metadata: Meta,
    #[serde(deserialize_with = "ReplicaSpec::with_map_selector")]
    pub spec: ReplicaSpec,
    /// The last written status.
    #[serde(default)]
    pub status: ReplicaStatus,
}

shared::view!(ReplicationController, REPLICATION_CONTROLLERS);

impl ReplicaOwner for ReplicationController {
    const COUNTS_TERMINATING: bool = false;
    // Upstream looks for `ReplicationController`s under the same controller and never finds any.
    const RANKS_RELATED: bool = false;
    const ARE_COMMON: bool = false;

    fn spec(&self) -> &ReplicaSpec {
        &self.spec
    }

    fn with_spec(&self, spec: ReplicaSpec) -> Self {
        Self { spec, ..self.clone() }
    }

    fn status(&self) -> &ReplicaStatus {
        &self.status
    }
}
