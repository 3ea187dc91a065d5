//! One look at the zones after a node has changed: it remembers their shares, and wakes the Services whose hints no longer
//! fit them.
//!
//! Left out: new hints, which the Service's own sync decides and records.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::runtime::queue::{Cause, Queue};
use shared::runtime::worker::{Controller, Requeue};

use crate::observe::Caches;

/// Syncs the zones, all at once.
pub(super) struct ZonesController {
    pub(super) caches: Arc<Caches>,
    pub(super) services: Queue,
}

/// The one key of its queue.
pub(super) fn zones_key() -> Key {
    Key::new("", "zones")
}

impl Controller for ZonesController {
    /// Upstream: `checkNodeTopologyDistribution`, `pkg/controller/endpointslice/endpointslice_controller.go`.
    async fn sync(&self, _key: &Key) -> anyhow::Result<Requeue> {
        let zones = self.caches.zones_by_nodes();
        let overloaded = self.caches.tracker.overloaded(zones.as_deref());
        self.caches.tracker.remember_zones(zones);
        for service in overloaded {
            self.services.add(&service, Cause::Event);
        }
        Ok(Requeue::Done)
    }

    /// It acts on no object.
    fn key_of(&self, _object: &Subject) -> Option<Key> {
        None
    }

    fn preview(&self, _key: &Key) -> Vec<Stage> {
        Vec::new()
    }
}
