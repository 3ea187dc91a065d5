//! The controller of pods, and that of PodGroups, with claims: one sync decides about one of them.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::process::run::Setup;
use shared::working::context::ControllerContext;
use shared::working::queue::Queue;
use shared::working::worker::{Controller, Requeue};

use crate::apply::users::UserWriter;
use crate::metrics::ClaimMetrics;
use crate::objects::ClaimUser;
use crate::observe::Caches;
use crate::observe::users::ObservedUser;
use crate::plan::users::UserNext;

type Observe<U> = fn(&Caches, &Key) -> Option<ObservedUser<U>>;
type Plan<U> = fn(&ObservedUser<U>) -> UserNext;

pub(super) struct UserController<U> {
    caches: Arc<Caches>,
    observe: Observe<U>,
    plan: Plan<U>,
    writer: UserWriter,
    ctx: ControllerContext,
}

impl<U: ClaimUser> UserController<U> {
    pub(super) fn new(
        setup: &mut Setup,
        queue: &Queue,
        caches: &Arc<Caches>,
        metrics: &ClaimMetrics,
        (observe, plan): (Observe<U>, Plan<U>),
    ) -> Self {
        let ctx = setup.context(queue);
        let writer = UserWriter { ctx: ctx.clone(), metrics: metrics.clone(), entry: U::ENTRY };
        Self { caches: Arc::clone(caches), observe, plan, writer, ctx }
    }
}

impl<U: ClaimUser> Controller for UserController<U> {
    /// Upstream: `syncPod` and `syncPodGroup`, `pkg/controller/resourceclaim/controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = (self.observe)(&self.caches, key) else { return Ok(Requeue::Done) };
        let read = |observed: ObservedUser<U>| observed.with_templates(self.ctx.control());
        let (_, plan) = self.ctx.decide_in_stages(key, observed, self.plan, read).await?;
        self.writer.apply(plan).await.map(|()| Requeue::Done)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&U::RESOURCE)
    }

    /// Nothing for one without claims: most pods are such.
    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = (self.observe)(&self.caches, key).filter(|observed| !observed.entries.is_empty());
        observed.iter().map(|observed| (self.plan)(observed).stage()).collect()
    }
}
