//! One sync of the queue of objects that nobody may own any more.
//!
//! Left out: which objects those are, which the graph says.

use std::sync::Arc;

use shared::api::object::{Key, Uid};
use shared::runtime::clock::Clock;
use shared::runtime::decisions::Decisions;
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer};
use crate::observe::{Caches, Learned, Observed, uid_of};
use crate::plan::{LookAgain, plan};

/// Deletes what nobody owns any more.
pub(super) struct AttemptToDelete {
    pub(super) caches: Arc<Caches>,
    pub(super) writer: Writer,
    pub(super) clock: Clock,
    pub(super) decisions: Decisions,
}

impl Controller for AttemptToDelete {
    /// Upstream: `attemptToDeleteWorker`, `pkg/controller/garbagecollector/garbagecollector.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.observe(key).await? else {
            self.caches.stop_waiting(Uid::parse(key.name()));
            return Ok(Requeue::Done);
        };
        let plan = plan(&observed);
        self.decisions.record(self.clock.now(), key, &plan);
        let Outcome { look_again, error } = self.writer.apply(key, &observed, plan).await;
        error.map_or_else(|| Ok(self.requeue(&observed, look_again)), Err)
    }
}

impl AttemptToDelete {
    async fn observe(&self, key: &Key) -> anyhow::Result<Option<Observed>> {
        let Some(uid) = self.caches.with_graph(|graph| uid_of(graph, key)) else { return Ok(None) };
        self.caches.observe(&self.writer.control, uid).await
    }

    fn requeue(&self, observed: &Observed, look_again: LookAgain) -> Requeue {
        let Learned { looks, served, .. } = &observed.learned;
        match look_again {
            LookAgain::No => Requeue::Done,
            LookAgain::Later => Requeue::RateLimited,
            LookAgain::WhenServed => {
                Requeue::After(self.caches.wait_for_kinds(observed.identity.object.uid, looks + 1, served))
            }
        }
    }
}
