//! The controller of pods with the condition DisruptionTarget: one sync decides about one pod.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, stage};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::stale::{Outcome, Writer};
use crate::observe::Caches;
use crate::observe::stale::live_stale;
use crate::plan::stale::{TIMER, plan_stale};

/// Syncs pods.
pub(super) struct StalePodController {
    pub(super) caches: Arc<Caches>,
    pub(super) writer: Writer,
    pub(super) clock: Clock,
    pub(super) decisions: Decisions,
}

impl Controller for StalePodController {
    /// Upstream: `syncStalePodDisruption`, `pkg/controller/disruption/disruption.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = live_stale(&self.caches, &self.writer.control, key).await? else {
            self.writer.control.forget(key, None);
            return Ok(Requeue::Done);
        };
        let now = self.clock.now();
        let plan = plan_stale(&observed, now);
        self.decisions.record(now, key, &plan);
        let Outcome { next, error } = self.writer.apply(&observed, plan).await;
        match error {
            Some(error) => Err(error),
            None => Ok(Requeue::earliest([next.map(|left| (left, TIMER))])),
        }
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&PODS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = self.caches.observe_stale(key);
        observed.iter().map(|observed| stage(&plan_stale(observed, self.clock.now()))).collect()
    }
}
