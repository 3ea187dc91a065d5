//! One sync of the queue of objects that nobody may own any more.
//!
//! Left out: which objects those are, which the graph says.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::{Key, Uid};
use shared::controllers::brake::Brake;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, stage};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer};
use crate::observe::{Caches, Learned, Observed, uid_of};
use crate::plan::{Action, Foreseen, LookAgain, Plan, plan};

/// Deletes what nobody owns any more.
pub(super) struct AttemptToDelete {
    pub(super) caches: Arc<Caches>,
    pub(super) writer: Writer,
    pub(super) brake: Brake<Uid>,
    pub(super) clock: Clock,
    pub(super) decisions: Decisions,
}

impl Controller for AttemptToDelete {
    /// Upstream: `attemptToDeleteWorker`, `pkg/controller/garbagecollector/garbagecollector.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.observe(key).await? else {
            let uid = Uid::parse(key.name());
            self.caches.stop_waiting(uid);
            self.brake.withdraw(&uid);
            return Ok(Requeue::Done);
        };
        let plan = plan(&observed);
        self.decisions.record(self.clock.now(), key, &plan);
        if let Some(wait) = self.hold_back(key, &plan) {
            return Ok(wait);
        }
        let Outcome { look_again, error } = self.writer.apply(key, &observed, plan).await;
        error.map_or_else(|| Ok(self.requeue(&observed, look_again)), Err)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        Some(self.caches.key_of(object))
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        if let Some(unseen) = self.caches.unseen(key) {
            return vec![stage(&unseen)];
        }
        let uid = self.caches.with_graph(|graph| uid_of(graph, key));
        let observed = uid.and_then(|uid| self.caches.foresee(uid));
        observed.iter().map(|observed| stage(&Foreseen(plan(observed)))).collect()
    }
}

impl AttemptToDelete {
    async fn observe(&self, key: &Key) -> anyhow::Result<Option<Observed>> {
        let Some(uid) = self.caches.with_graph(|graph| uid_of(graph, key)) else { return Ok(None) };
        self.caches.observe(&self.writer.control, uid).await
    }

    /// When to look again at an object whose deletion has to wait.
    fn hold_back(&self, key: &Key, plan: &Plan) -> Option<Requeue> {
        let object = &plan.identity.object;
        let Action::Delete(delete) = &plan.action else {
            self.brake.withdraw(&object.uid);
            return None;
        };
        let owned = |_| self.caches.with_graph(|graph| graph.owned(&object.kind));
        if delete.is_explained { None } else { self.brake.ask(key, &delete.resource.to_string(), &object.uid, owned) }
    }

    fn requeue(&self, observed: &Observed, look_again: LookAgain) -> Requeue {
        let Learned { looks, served, .. } = &observed.learned;
        match look_again {
            LookAgain::No => Requeue::Done,
            LookAgain::Later => Requeue::RateLimited,
            LookAgain::WhenServed => {
                let delay = self.caches.wait_for_kinds(observed.identity.object.uid, looks + 1, served);
                Requeue::After(delay, "another look at which kinds are served")
            }
        }
    }
}
