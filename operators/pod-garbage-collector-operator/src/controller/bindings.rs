//! The controller of bindings: one sync looks for pods that are bound to nodes which are not there.
//!
//! A node that goes while it is followed needs no search. Left out: what becomes of such a node's pods, which
//! `missing_node` decides once the node was missing for long enough.

use std::sync::Arc;
use std::time::Duration;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::Decisions;
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::observe::{Caches, Scope, live_bindings};
use crate::plan::plan_bindings;

/// How often the pods that nothing has started are searched.
pub(super) const PERIOD: Duration = Duration::from_mins(1);

/// The purpose of that timer.
pub(super) const PURPOSE: &str = "the next search";

/// Looks for nodes that are missing.
pub(super) struct BindingsController {
    pub(super) caches: Arc<Caches>,
    pub(super) writer: Writer,
    pub(super) clock: Clock,
    pub(super) decisions: Decisions,
}

impl Controller for BindingsController {
    /// Upstream: `gcOrphaned`, which finds these nodes among all pods it follows.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let observed = live_bindings(&self.writer.control, self.caches.observe_bindings(key)).await?;
        let plan = plan_bindings(&observed);
        self.decisions.record(self.clock.now(), key, &plan);
        self.writer.apply_bindings(plan);
        Ok(match Scope::of(key) {
            Scope::All => Requeue::Done,
            Scope::Pending => Requeue::After(PERIOD, PURPOSE),
        })
    }

    /// It acts on no object.
    fn key_of(&self, _object: &Subject) -> Option<Key> {
        None
    }

    /// All of it is read live.
    fn preview(&self, _key: &Key) -> Vec<Stage> {
        Vec::new()
    }
}
