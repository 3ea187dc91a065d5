//! One sync of the queue of objects that may have no owner left.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::{Key, Uid};
use shared::controllers::brake::Brake;
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::observe::{Caches, Learned, Observed, uid_of};
use crate::plan::{Action, Foreseen, Plan, Retry, plan};

/// Deletes objects without owners.
pub(super) struct AttemptToDelete {
    pub(super) caches: Arc<Caches>,
    pub(super) writer: Writer,
    pub(super) brake: Brake<Uid>,
    pub(super) ctx: ControllerContext,
}

impl Controller for AttemptToDelete {
    /// Upstream: `attemptToDeleteWorker`, `pkg/controller/garbagecollector/garbagecollector.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.observe(key).await? else {
            let uid = Uid::parse(key.name());
            self.caches.kinds.stop_waiting(uid);
            self.caches.turns.forget(uid);
            self.brake.withdraw(&uid);
            return Ok(Requeue::Done);
        };
        let plan = plan(&observed);
        self.ctx.decide(key, &plan);
        if let Some(wait) = self.hold_back(key, &plan) {
            return Ok(wait);
        }
        let retry = self.writer.apply(key, &observed, plan).await?;
        Ok(self.requeue(&observed, retry))
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
        self.caches.observe(self.ctx.control(), uid).await
    }

    /// When to retry a deletion that the brake holds back.
    fn hold_back(&self, key: &Key, plan: &Plan) -> Option<Requeue> {
        let object = &plan.identity.object;
        let Action::Delete(delete) = &plan.action else {
            self.brake.withdraw(&object.uid);
            return None;
        };
        if delete.is_explained {
            return None;
        }
        let owned = || self.caches.with_graph(|graph| graph.owned(&object.kind));
        self.brake.ask(key, (&delete.resource.to_string(), &object.uid), owned, None)
    }

    fn requeue(&self, observed: &Observed, retry: Retry) -> Requeue {
        let Learned { looks, served, .. } = &observed.learned;
        match retry {
            Retry::No => Requeue::Done,
            Retry::Later => Requeue::RateLimited,
            Retry::InTurn => Requeue::After(self.caches.turns.left(observed.identity.object.uid), "its turn to read"),
            Retry::WhenServed => {
                let delay = self.caches.kinds.wait(observed.identity.object.uid, looks + 1, served);
                Requeue::After(delay, "another look at which kinds are served")
            }
        }
    }
}
