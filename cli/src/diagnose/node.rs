//! Diagnosis of a Node that its cloud has not initialized yet, so that pods stay away from it.

use crate::cause::Cause;
use crate::cause::workload::Workload;
use crate::diagnose::operators;
use crate::evidence::Evidence;
use crate::object::Object;

/// The operator that initializes Nodes.
const INITIALIZER: &str = "cloud-node-operator";

const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

pub(crate) fn cause(evidence: &Evidence, node: Object<'_>) -> Option<Cause> {
    node.list("/spec/taints").find(|taint| taint.text("/key") == UNINITIALIZED)?;
    let word = operators::latest_word_of(evidence, INITIALIZER, node).unwrap_or_default();
    Some(Workload::Uninitialized { word }.into())
}
