//! Which Services a change concerns.
//!
//! Left out: which changes of Services and of pods matter, which [`shared::controllers::endpoints::changes`] says.

use std::time::Duration;

use shared::runtime::cache::Change;
use shared::runtime::effect::Effect;
use shared::runtime::queue::Cause;

use crate::controller::zones::zones_key;
use crate::objects::{EndpointSlice, Node, Pod};
use crate::observe::Caches;

/// The purpose of a timer, in words.
const SLICE_CHANGES: &str = "changes of its slices by others";

/// Of nodes, all zones are looked at together.
pub(super) fn zones_changed(change: Change<'_, Node>) -> Vec<Effect> {
    if is_of_zones(change) { vec![Effect::Enqueue(zones_key(), Cause::Event)] } else { Vec::new() }
}

impl Caches {
    /// The Services that a pod comes to, leaves, or changes for, each after this delay.
    pub(super) fn pod_changed(&self, change: Change<'_, Pod>, delay: Duration) -> Vec<Effect> {
        self.service_pods.pod_changed(change, delay)
    }

    /// The Services that have left out pods because this node was missing.
    pub(super) fn node_changed(&self, change: Change<'_, Node>) -> Vec<Effect> {
        match change {
            Change::Added(node) => {
                let awaiting = self.tracker.awaiting(node.metadata.name());
                awaiting.into_iter().map(|service| Effect::Enqueue(service, Cause::Event)).collect()
            }
            Change::Updated { .. } | Change::Deleted(_) => Vec::new(),
        }
    }

    /// The Services whose slice somebody else has changed, each after this delay. One that was never looked at is about
    /// to be, with all its slices.
    pub(super) fn endpoint_slice_changed(&self, change: Change<'_, EndpointSlice>, delay: Duration) -> Vec<Effect> {
        let known = self.tracker.slices.services_of(change).filter(|service| self.tracker.knows(service));
        known.map(|service| Effect::EnqueueAfter(service, delay, SLICE_CHANGES)).collect()
    }
}

/// Whether a node's change may change the shares of the zones.
///
/// Upstream: `addNode`, `updateNode`, `deleteNode`, `endpointslice_controller.go`.
pub(super) fn is_of_zones(change: Change<'_, Node>) -> bool {
    match change {
        Change::Added(_) | Change::Deleted(_) => true,
        Change::Updated { old, new } => old.is_ready != new.is_ready || old.zone != new.zone,
    }
}

#[cfg(test)]
mod tests;
