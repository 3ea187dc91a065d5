//! The patches of a node: its addresses, its labels, and all that initializes it.

use cloud::NodeAddress;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use shared::api::raw::{RawObject, raw_of};
use shared::api::taint::taints_spec;

use crate::objects::is_uninitialized;
use crate::plan::{Initialization, Label};

/// The merge patch of `/status` with all addresses; a strategic one would merge those of one type.
///
/// Upstream: `PatchNodeStatus`, `staging/src/k8s.io/component-helpers/node/util/status.go`.
pub fn addresses_patch(addresses: &[NodeAddress]) -> Value {
    json!({ "status": { "addresses": addresses } })
}

/// The merge patch of labels.
///
/// Upstream: `AddOrUpdateLabelsOnNode`, `staging/src/k8s.io/cloud-provider/node/helpers/labels.go`.
pub fn labels_patch(labels: &[Label]) -> Value {
    json!({ "metadata": labels_metadata(labels) })
}

/// The merge patch that initializes a node: provider ID and labels, and all taints but one.
pub fn initialization_patch(initialization: &Initialization) -> Box<RawValue> {
    let Initialization { node, addresses: _, provider_id, labels } = initialization;
    let mut spec = taints_spec(&node.taints, |taint| !is_uninitialized(taint), []);
    if let Some(provider_id) = provider_id {
        spec.insert("providerID", raw_of(provider_id));
    }
    let mut patch = RawObject::default();
    patch.insert("spec", raw_of(&spec));
    if !labels.is_empty() {
        patch.insert("metadata", raw_of(&labels_metadata(labels)));
    }
    raw_of(&patch)
}

fn labels_metadata(labels: &[Label]) -> Value {
    let labels = labels.iter().map(|(label, value)| (label.as_str().to_owned(), json!(value.as_str())));
    json!({ "labels": labels.collect::<Map<String, Value>>() })
}
