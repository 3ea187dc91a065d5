//! The controller of nodes that were missing: one sync decides on the pods of one of them.
//!
//! Left out: how long a node is waited for, which is known where it is enqueued.

use std::sync::Arc;

use shared::api::object::Key;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::Decisions;
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer};
use crate::observe::{Caches, live_missing_node};
use crate::plan::plan_missing;

/// The key of the second look at the node of this key, which has a time of its own.
pub(super) fn late_key(node: &Key) -> Key {
    Key::new("late", node.name())
}

/// Looks at one node that was missing for long enough.
pub(super) struct MissingNodeController {
    pub(super) caches: Arc<Caches>,
    pub(super) writer: Writer,
    pub(super) clock: Clock,
    pub(super) decisions: Decisions,
}

impl Controller for MissingNodeController {
    /// Upstream: `gcOrphaned`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let observed = live_missing_node(&self.writer.control, self.caches.observe_missing(key)).await?;
        let plan = plan_missing(&observed);
        self.decisions.record(self.clock.now(), key, &plan);
        let Outcome { error } = self.writer.apply_missing(&observed, plan).await;
        error.map_or(Ok(Requeue::Done), Err)
    }
}
