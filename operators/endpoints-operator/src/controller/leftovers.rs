//! The search for Endpoints whose Service was deleted while no operator worked.
//!
//! No watch shows them if they lack this controller's label, or if no Service selects pods. Therefore the metadata of all
//! Endpoints are listed once at each start. The sync of the Service's key deletes them.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::working::context::ControllerContext;
use shared::working::queue::{Cause, Queue};
use shared::working::worker::{Controller, Requeue};

use crate::observe::Caches;

pub(super) struct LeftoverController {
    pub(super) caches: Arc<Caches>,
    pub(super) ctx: ControllerContext,
    pub(super) services: Queue,
}

/// The only key of its queue.
pub(super) fn all_endpoints() -> Key {
    Key::new("", "endpoints")
}

impl Controller for LeftoverController {
    async fn sync(&self, _: &Key) -> anyhow::Result<Requeue> {
        self.caches.leftovers(self.ctx.control(), |service| self.services.add(service, Cause::Event)).await?;
        Ok(Requeue::Done)
    }

    /// Its key is not an object.
    fn key_of(&self, _: &Subject) -> Option<Key> {
        None
    }

    fn preview(&self, _: &Key) -> Vec<Stage> {
        Vec::new()
    }
}
