//! The controller of pods that have the tracking finalizer and are not watched: one list of the cluster's pods finds
//! them when work starts.
//!
//! A Job may have ended while no replica led, and a pod may have lost its label. No selector finds a finalizer, so all
//! pods are listed: metadata alone, page by page, about 20 MB for 10,000 pods. [`super::orphan_pods`] decides on each.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::working::context::ControllerContext;
use shared::working::queue::{Cause, Queue};
use shared::working::worker::{Controller, Requeue};

use crate::observe::Caches;

pub(super) struct UnseenPodController {
    pub(super) caches: Arc<Caches>,
    pub(super) ctx: ControllerContext,
    pub(super) orphans_queue: Queue,
}

/// The only key of its queue: all pods.
pub(super) fn all_pods() -> Key {
    Key::new("", "pods")
}

impl Controller for UnseenPodController {
    async fn sync(&self, _: &Key) -> anyhow::Result<Requeue> {
        self.caches.unseen_pods(self.ctx.control(), |pod| self.orphans_queue.add(pod, Cause::Event)).await?;
        Ok(Requeue::Done)
    }

    /// Its only key is not an object.
    fn key_of(&self, _: &Subject) -> Option<Key> {
        None
    }

    fn preview(&self, _: &Key) -> Vec<Stage> {
        Vec::new()
    }
}
