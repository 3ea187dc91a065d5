//! The sync of the zones after a change of a node: it computes their shares, and enqueues the Services whose hints no
//! longer fit. The sync of each Service decides its new hints.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::working::queue::{Cause, Queue};
use shared::working::worker::{Controller, Requeue};

use crate::observe::Caches;

pub(super) struct ZonesController {
    pub(super) caches: Arc<Caches>,
    pub(super) services: Queue,
}

/// The only key of its queue.
pub(super) fn zones_key() -> Key {
    Key::new("", "zones")
}

impl Controller for ZonesController {
    /// Upstream: `checkNodeTopologyDistribution`, `pkg/controller/endpointslice/endpointslice_controller.go`.
    async fn sync(&self, _key: &Key) -> anyhow::Result<Requeue> {
        let zones = self.caches.zones_by_nodes();
        let overloaded = self.caches.memory.overloaded(zones.as_deref());
        self.caches.memory.remember_zones(zones);
        for service in overloaded {
            self.services.add(&service, Cause::Event);
        }
        Ok(Requeue::Done)
    }

    /// Its key is not an object.
    fn key_of(&self, _object: &Subject) -> Option<Key> {
        None
    }

    fn preview(&self, _key: &Key) -> Vec<Stage> {
        Vec::new()
    }
}
