//! The controller of pods that no watch shows when work starts: one list of the cluster's pods finds those that still have the
//! tracking finalizer.
//!
//! A Job may have ended while nobody worked, and without Jobs no pods are followed; a pod may have lost its label, or a
//! webhook may have taken it, and the process that knew of it is gone. Neither a label nor a field says that a pod has a
//! finalizer, so all pods are listed: metadata alone, page by page, once for each start of work. That is some 20 MB for
//! 10,000 pods; a list of labelled pods would be smaller where few pods are Jobs', and miss those without the label.
//!
//! Left out: what becomes of such a pod, which [`super::orphan_pods`] decides and records. No Job waits for it: none would
//! count such a pod.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::runtime::control::Control;
use shared::runtime::queue::{Cause, Queue};
use shared::runtime::worker::{Controller, Requeue};

use crate::observe::Caches;

/// Looks at all pods once.
pub(super) struct UnseenPodController {
    pub(super) caches: Arc<Caches>,
    pub(super) control: Control,
    pub(super) orphans_queue: Queue,
}

/// The only key of its queue: all pods.
pub(super) fn all_pods() -> Key {
    Key::new("", "pods")
}

impl Controller for UnseenPodController {
    async fn sync(&self, _: &Key) -> anyhow::Result<Requeue> {
        self.caches.unseen_pods(&self.control, |pod| self.orphans_queue.add(pod, Cause::Event)).await?;
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
