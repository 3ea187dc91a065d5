//! A Node, and the set of those behind every load balancer.

use std::fmt::Write;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use shared::api::intern::Text;
use shared::api::kept::Digest;
use shared::api::object::{Meta, null_as_default};
use shared::api::raw::{RawObject, raw_of};
use shared::api::resource::NODES;
use shared::process::flags::parse_bool;

use super::trimmed;

/// The label of a Node that is behind no load balancer. Upstream: `LabelNodeExcludeBalancers`.
const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// The taint of a Node that cluster-autoscaler is about to delete. Upstream: `ToBeDeletedTaint`.
const TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";

/// The fields of a Node's status that a provider may read. The others, such as its images, are large.
const STATUS_FOR_PROVIDERS: [&str; 3] = ["addresses", "conditions", "nodeInfo"];

#[derive(Debug, Deserialize)]
#[serde(try_from = "Box<RawValue>")]
pub struct Node {
    pub metadata: Meta,
    pub provider_id: Text,
    pub is_to_be_deleted: bool,
    /// Its JSON for the provider.
    pub whole: Box<RawValue>,
}

shared::view!(Node, NODES);

impl Node {
    /// A label that is not a boolean excludes too.
    ///
    /// Upstream: `nodeIncludedPredicate`.
    pub fn is_included(&self) -> bool {
        self.metadata.labels.get(EXCLUDED).is_none_or(|excluded| parse_bool(excluded) == Ok(false))
    }

    /// Whether load balancers send traffic to it. Its readiness does not matter: load balancers find that out themselves.
    ///
    /// Upstream: `stableNodeSetPredicates`.
    pub fn is_behind_load_balancers(&self) -> bool {
        !self.metadata.is_being_deleted() && self.is_included() && !self.is_to_be_deleted
    }

    /// Whether a change from `old` leads to a look at every load balancer.
    ///
    /// Upstream: `shouldSyncUpdatedNode`.
    pub fn is_to_sync_after(&self, old: &Self) -> bool {
        self.is_included() != old.is_included() || self.provider_id != old.provider_id
    }
}

#[derive(Deserialize)]
struct RawNode {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawSpec {
    #[serde(rename = "providerID", deserialize_with = "null_as_default")]
    provider_id: Text,
    #[serde(deserialize_with = "null_as_default")]
    taints: Vec<RawTaint>,
}

#[derive(Deserialize)]
struct RawTaint {
    key: Text,
}

impl TryFrom<Box<RawValue>> for Node {
    type Error = serde_json::Error;

    fn try_from(whole: Box<RawValue>) -> Result<Self, Self::Error> {
        let RawNode { metadata, spec } = serde_json::from_str(whole.get())?;
        let whole = trimmed(&whole, |node| {
            let status = node.get("status").map(ToOwned::to_owned).unwrap_or_default();
            node.remove("status");
            if let Ok(status) = RawObject::parse(&status) {
                let mut kept = RawObject::default();
                for field in STATUS_FOR_PROVIDERS {
                    if let Some(value) = status.get(field) {
                        kept.insert(field, value.to_owned());
                    }
                }
                node.insert("status", raw_of(&kept));
            }
        })?;
        let is_to_be_deleted = spec.taints.iter().any(|taint| taint.key == *TO_BE_DELETED);
        Ok(Self { metadata, provider_id: spec.provider_id, is_to_be_deleted, whole })
    }
}

/// The Nodes behind every load balancer, sorted by name.
#[derive(Clone, Debug)]
pub struct Nodes {
    pub all: Vec<Arc<Node>>,
    /// Tells two sets apart by names and provider IDs.
    ///
    /// Upstream: `nodesSufficientlyEqual`.
    pub digest: Digest,
}

impl Nodes {
    /// Those of these Nodes that are behind load balancers.
    ///
    /// Upstream: `listWithPredicates`.
    pub fn of(mut nodes: Vec<Arc<Node>>) -> Self {
        nodes.retain(|node| node.is_behind_load_balancers());
        nodes.sort_by(|a, b| a.metadata.key.cmp(&b.metadata.key));
        let mut text = String::new();
        for node in &nodes {
            // No name has a space or a line's end, and a provider ID ends with its line.
            let _ = writeln!(text, "{} {:?}", node.metadata.name(), &*node.provider_id);
        }
        Self { digest: Digest::of(&text), all: nodes }
    }
}
