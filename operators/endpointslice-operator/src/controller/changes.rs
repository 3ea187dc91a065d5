//! The Services that a change concerns; [`shared::controllers::endpoints::changes`] has the rules for Services and pods.

use std::time::Duration;

use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::controller::zones::zones_key;
use crate::objects::{EndpointSlice, Node, Pod};
use crate::observe::Caches;

const SLICE_CHANGES: &str = "changes of its slices by other clients";

/// Sync the zones if their shares may change.
pub(super) fn zones_changed(change: Change<'_, Node>) -> Vec<Effect> {
    if changes_zones(change) { vec![Effect::Enqueue(zones_key(), Cause::Event)] } else { Vec::new() }
}

impl Caches {
    /// Sync the Services whose endpoints the change of a pod affects, each after this delay.
    pub(super) fn pod_changed(&self, change: Change<'_, Pod>, delay: Duration) -> Vec<Effect> {
        self.service_pods.pod_changed(change, delay)
    }

    /// Sync the Services that left out pods because this node was missing.
    pub(super) fn node_changed(&self, change: Change<'_, Node>) -> Vec<Effect> {
        match change {
            Change::Added(node) => {
                let awaiting = self.memory.awaiting(node.metadata.name());
                awaiting.into_iter().map(|service| Effect::Enqueue(service, Cause::Event)).collect()
            }
            Change::Updated { .. } | Change::Deleted(_) => Vec::new(),
        }
    }

    /// Sync the Services whose slice another client has changed, each after this delay. The first sync of a Service, which
    /// reads all its slices, needs no change.
    pub(super) fn endpoint_slice_changed(&self, change: Change<'_, EndpointSlice>, delay: Duration) -> Vec<Effect> {
        let known = self.memory.slices.services_of(change).filter(|service| self.memory.services.knows(service));
        known.map(|service| Effect::EnqueueAfter(service, delay, SLICE_CHANGES)).collect()
    }
}

/// Whether the change of a node may change the shares of the zones.
///
/// Upstream: `addNode`, `updateNode`, `deleteNode`, `endpointslice_controller.go`.
pub(super) fn changes_zones(change: Change<'_, Node>) -> bool {
    match change {
        Change::Added(_) | Change::Deleted(_) => true,
        Change::Updated { old, new } => old.is_ready != new.is_ready || old.zone != new.zone,
    }
}

#[cfg(test)]
mod tests;
