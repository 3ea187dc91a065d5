//! The controller of Endpoints whose Service went while nobody worked: one list of the cluster's Endpoints finds them.
//!
//! No watch shows Endpoints without this controller's label, and without a Service that selects pods there is no watch.
//! So the metadata of all are listed, once for each start of work.
//! Left out: what becomes of such Endpoints, which the sync of their Service's key decides and records.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::runtime::control::Control;
use shared::runtime::queue::{Cause, Queue};
use shared::runtime::worker::{Controller, Requeue};

use crate::observe::Caches;

/// Looks at all Endpoints once.
pub(super) struct LeftoverController {
    pub(super) caches: Arc<Caches>,
    pub(super) control: Control,
    pub(super) services: Queue,
}

/// The only key of its queue: all Endpoints.
pub(super) fn all_endpoints() -> Key {
    Key::new("", "endpoints")
}

impl Controller for LeftoverController {
    async fn sync(&self, _: &Key) -> anyhow::Result<Requeue> {
        self.caches.leftovers(&self.control, |service| self.services.add(service, Cause::Event)).await?;
        Ok(Requeue::Done)
    }

    /// Its key is no object.
    fn key_of(&self, _: &Subject) -> Option<Key> {
        None
    }

    fn preview(&self, _: &Key) -> Vec<Stage> {
        Vec::new()
    }
}
