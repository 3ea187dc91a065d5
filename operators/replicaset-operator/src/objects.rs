//! The view of a ReplicaSet: its spec and its last written status.
//!
//! Left out: its annotations. A pod's view is [`shared::controllers::replicas::pod::Pod`].

use serde::Deserialize;
use shared::api::object::Meta;
use shared::api::resource::REPLICA_SETS;
use shared::controllers::replicas::status::ReplicaStatus;
use shared::controllers::replicas::{ReplicaOwner, ReplicaSpec};

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ReplicaSet {
    pub metadata: Meta,
    #[serde(deserialize_with = "ReplicaSpec::with_label_selector")]
    pub spec: ReplicaSpec,
    /// The last written status.
    #[serde(default)]
    pub status: ReplicaStatus,
}

shared::view!(ReplicaSet, REPLICA_SETS);

impl ReplicaOwner for ReplicaSet {
    // Upstream's gate DeploymentReplicaSetTerminatingReplicas, on since 1.35.
    const COUNTS_TERMINATING: bool = true;
    const RANKS_RELATED: bool = true;
    const ARE_COMMON: bool = true;

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
