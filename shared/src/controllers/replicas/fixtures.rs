//! An owner for this module's tests. Operators test with their own kinds.

use serde::Deserialize;
use serde_json::json;

use super::status::ReplicaStatus;
use super::{ReplicaOwner, ReplicaSpec};
use crate::api::object::Meta;
use crate::api::resource::REPLICA_SETS;
use crate::testing::{ObjectBuilder, object};

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Set {
    metadata: Meta,
    #[serde(deserialize_with = "ReplicaSpec::with_label_selector")]
    spec: ReplicaSpec,
    #[serde(default)]
    status: ReplicaStatus,
}

crate::view!(Set, REPLICA_SETS);

impl ReplicaOwner for Set {
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

pub(crate) fn set(name: &str, selector: serde_json::Value) -> ObjectBuilder {
    object("apps/v1", "ReplicaSet", name).set(&["spec", "selector"], selector).set(&["spec", "template"], json!({}))
}

pub(crate) fn selecting(name: &str, app: &str) -> ObjectBuilder {
    set(name, json!({ "matchLabels": { "app": app } }))
}
