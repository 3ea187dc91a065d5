//! Executes a plan: at most one patch of a Node's CIDRs, and the events about it.
//!
//! Left out: upstream's two more tries at once. The queue tries a failed key again, with the same CIDRs if they may be
//! stored.

use anyhow::anyhow;
use serde_json::{Value, json};
use shared::api::object::{Kind, ObjectReference, ResourceVersion, Uid};
use shared::api::resource::NODES;
use shared::runtime::control::{Control, Patch};
use shared::runtime::events::{EventType, Recorder};

use crate::objects::cidr::Cidr;
use crate::objects::{Node, joined, reasons};
use crate::observe::Observed;
use crate::plan::{Plan, Reason};

/// Gives CIDRs to Nodes.
pub(crate) struct Writer {
    pub(crate) control: Control,
    pub(crate) recorder: Recorder,
}

/// The result of executing a plan.
#[derive(Debug)]
pub struct Outcome {
    /// The state of the CIDRs that the Node was given.
    pub fate: Fate,
    /// The error of the sync, if it failed.
    pub error: Option<anyhow::Error>,
}

/// The state of CIDRs after a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// They are stored, or were not written, or their Node is gone: the cache will show it.
    Known,
    /// They were refused, and are not stored.
    Refused,
    /// Nobody knows whether they are stored.
    InDoubt,
}

impl Outcome {
    fn done() -> Self {
        Self { fate: Fate::Known, error: None }
    }
}

impl Writer {
    /// Executes the plan.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let Observed { node, places: _, ranges: _, given: _ } = observed;
        match plan {
            Plan::Keep(reason @ (Reason::Shared { cidr: _ } | Reason::Outside { cidr: _ })) => {
                // A Node keeps its CIDRs for as long as it is there: no further try would change that.
                tracing::warn!(node = %node.metadata.key, %reason, "the CIDRs of a node are not as they should be");
                Outcome::done()
            }
            Plan::Keep(_) => Outcome::done(),
            Plan::Assign { cidrs, uid, reason: _ } => self.assign(node, uid, &cidrs).await,
            Plan::Wait { index, reason: _ } => {
                self.tell(node, reasons::CIDR_NOT_AVAILABLE);
                Outcome { fate: Fate::Known, error: Some(full(index)) }
            }
        }
    }

    async fn assign(&self, node: &Node, uid: Uid, cidrs: &[Cidr]) -> Outcome {
        let key = &node.metadata.key;
        let patch = Patch::strategic(&cidrs_patch(cidrs));
        let Err(error) = self.control.for_key(key, uid).patch(&NODES, key, uid, patch).await else {
            tracing::info!(node = %key, cidrs = joined(cidrs), "gave CIDRs to the node");
            return Outcome::done();
        };
        // It has gone meanwhile.
        if error.is_not_found() {
            return Outcome::done();
        }
        self.tell(node, reasons::CIDR_ASSIGNMENT_FAILED);
        let is_refused = error.status().is_some() && !error.is_outcome_unknown();
        let fate = if is_refused { Fate::Refused } else { Fate::InDoubt };
        Outcome { fate, error: Some(anyhow::Error::new(error).context("failed to patch node CIDR")) }
    }

    /// Upstream: `RecordNodeStatusChange`, `pkg/controller/util/node/controller_utils.go`. Its reference has no
    /// version.
    fn tell(&self, node: &Node, status: &'static str) {
        let about = ObjectReference { resource_version: ResourceVersion::default(), ..node.reference() };
        let message = format!("Node {} status is now: {status}", node.metadata.name());
        self.recorder.event(&about, EventType::Normal, status, message);
    }
}

/// Upstream: `AllocateOrOccupyCIDR`, and `ErrCIDRRangeNoCIDRsRemaining`, `cidrset/cidr_set.go`.
fn full(index: usize) -> anyhow::Error {
    anyhow!(
        "failed to allocate cidr from cluster cidr at idx:{index}: CIDR allocation failed; there are no remaining \
         CIDRs left to allocate in the accepted range"
    )
}

/// Upstream: `PatchNodeCIDRs`, `staging/src/k8s.io/component-helpers/node/util/cidr.go`.
pub fn cidrs_patch(cidrs: &[Cidr]) -> Value {
    json!({ "spec": { "podCIDR": cidrs.first(), "podCIDRs": cidrs } })
}
