//! Which Services a change concerns.
//!
//! Left out: which changes of Services and of pods matter, which [`shared::controllers::endpoints::changes`] says.

use std::sync::Arc;
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

    /// The Services whose slice somebody else has changed, each after this delay.
    ///
    /// Upstream: `onEndpointSliceAdd`, `onEndpointSliceUpdate`, `onEndpointSliceDelete`,
    /// `pkg/controller/endpointslice/endpointslice_controller.go`. There a slice that another controller takes over, or
    /// gives away, is updated; here it comes or goes. And there nobody minds when a slice goes that this process has
    /// not written yet. A Service that was never looked at is about to be, with all its slices.
    pub(super) fn endpoint_slice_changed(&self, change: Change<'_, EndpointSlice>, delay: Duration) -> Vec<Effect> {
        let service = |slice: &Arc<EndpointSlice>| {
            let service = slice.service();
            if service.is_none() {
                tracing::warn!(slice = %slice.metadata.key, "a slice without the name of its service");
            }
            service
        };
        let services = match change {
            Change::Added(slice) if self.tracker.is_news(slice) => [service(slice), None],
            Change::Updated { old, new } if old.service() != new.service() => [service(new), old.service()],
            Change::Updated { old: _, new } if self.tracker.is_news(new) => [service(new), None],
            Change::Deleted(slice) if !self.tracker.has_deleted(slice) => [service(slice), None],
            Change::Added(_) | Change::Updated { .. } | Change::Deleted(_) => [None, None],
        };
        let known = services.into_iter().flatten().filter(|service| self.tracker.knows(service));
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
