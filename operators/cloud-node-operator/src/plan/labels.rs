//! The labels that say where a node runs and what it is, and those that a provider adds.
//!
//! Upstream: `staging/src/k8s.io/cloud-provider/controllers/node/node_controller.go`.

use cloud::InstanceMetadata;
use shared::api::intern::Text;

use super::Label;
use crate::objects::{INSTANCE_TYPE, LiveNode, Node, REGION, ZONE};

/// The labels that differ from the deprecated ones that they replace.
///
/// Upstream: `reconcileNodeLabels`.
pub fn stale_labels(node: &Node) -> Vec<Label> {
    let labels = &node.metadata.labels;
    let stale = [ZONE, REGION, INSTANCE_TYPE].into_iter().filter_map(|(older, newer)| {
        let value = labels.get(older)?;
        (labels.get(newer) != Some(value)).then(|| (Text::new(newer), Text::new(value)))
    });
    stale.collect()
}

/// The labels that a node gets when it is initialized: the provider's own ones only under names that are free, and that
/// Kubernetes does not reserve.
///
/// Upstream: `getNodeModifiersFromCloudProvider`.
pub fn new_labels(node: &LiveNode, metadata: &InstanceMetadata) -> Vec<Label> {
    let labels = &node.metadata.labels;
    let InstanceMetadata { instance_type, zone, region, additional_labels, .. } = metadata;
    let known = [(INSTANCE_TYPE, instance_type), (ZONE, zone), (REGION, region)];
    let known = known.into_iter().filter(|(_, value)| !value.is_empty());
    let known = known.flat_map(|((older, newer), value)| [(older, value), (newer, value)]);
    let known = known.filter(|(label, value)| labels.get(label) != Some(value.as_str()));
    let additional = additional_labels.iter().map(|(label, value)| (label.as_str(), value));
    let additional = additional.filter(|(label, _)| labels.get(label).is_none() && !is_reserved(label));
    known.chain(additional).map(|(label, value)| (Text::new(label), Text::new(value))).collect()
}

/// Whether the label is in a namespace of Kubernetes: `(^|\.)(kubernetes|k8s)\.io/`.
fn is_reserved(label: &str) -> bool {
    let is_whole =
        |(at, _): (usize, &str)| label.get(..at).is_some_and(|before| before.is_empty() || before.ends_with('.'));
    ["kubernetes.io/", "k8s.io/"].iter().any(|domain| label.match_indices(domain).any(is_whole))
}
