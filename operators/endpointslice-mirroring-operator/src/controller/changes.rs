//! The keys that a change of a Service, of Endpoints or of a slice concerns.

use std::time::Duration;

use shared::api::object::Key;
use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::{EndpointSlice, Endpoints, Service};
use crate::observe::Caches;

const SLICE_CHANGES: &str = "changes of its slices by other clients";

fn enqueue(key: &Key, cause: Cause) -> Vec<Effect> {
    vec![Effect::Enqueue(key.clone(), cause)]
}

/// Sync a Service without a selector that is added or deleted, and one that gets or loses its selector.
///
/// Upstream: `onServiceAdd`, `onServiceUpdate`, `onServiceDelete`,
/// `pkg/controller/endpointslicemirroring/endpointslicemirroring_controller.go`.
pub(super) fn service_changed(change: Change<'_, Service>) -> Vec<Effect> {
    let key = &change.latest().metadata.key;
    match change {
        Change::Added(service) if !service.has_selector => enqueue(key, Cause::Edit),
        Change::Updated { old, new } if old.has_selector != new.has_selector => enqueue(key, Cause::Edit),
        Change::Deleted(service) if !service.has_selector => enqueue(key, Cause::Event),
        Change::Added(_) | Change::Updated { .. } | Change::Deleted(_) => Vec::new(),
    }
}

/// Sync Endpoints that are or were mirrored; locks of elections, which change every few seconds, are ignored.
///
/// Upstream: `onEndpointsAdd`, `onEndpointsUpdate`, `onEndpointsDelete`, `endpointslicemirroring_controller.go`.
pub(super) fn endpoints_changed(change: Change<'_, Endpoints>) -> Vec<Effect> {
    let key = &change.latest().metadata.key;
    match change {
        Change::Added(endpoints) if endpoints.is_meant() => enqueue(key, Cause::Edit),
        Change::Updated { old, new } if (old.is_meant() || new.is_meant()) && !old.asks_for_the_same(new) => {
            enqueue(key, Cause::Edit)
        }
        Change::Deleted(endpoints) if endpoints.is_meant() => enqueue(key, Cause::Event),
        Change::Added(_) | Change::Updated { .. } | Change::Deleted(_) => Vec::new(),
    }
}

impl Caches {
    /// Sync the keys whose slice another client has changed, each after this delay.
    pub(super) fn endpoint_slice_changed(&self, change: Change<'_, EndpointSlice>, delay: Duration) -> Vec<Effect> {
        let keys = self.tracker.services_of(change);
        keys.map(|key| Effect::EnqueueAfter(key, delay, SLICE_CHANGES)).collect()
    }
}

#[cfg(test)]
mod tests;
