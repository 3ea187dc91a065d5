//! The controller of pods with claims: one sync decides about one pod.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::working::context::ControllerContext;
use shared::working::worker::{Controller, Requeue};

use crate::apply::users::UserWriter;
use crate::observe::Caches;
use crate::plan::users::plan_pod;

pub(super) struct PodController {
    pub(super) caches: Arc<Caches>,
    pub(super) writer: UserWriter,
    pub(super) ctx: ControllerContext,
}

impl Controller for PodController {
    /// Upstream: `syncPod`, `pkg/controller/resourceclaim/controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe_pod(key) else { return Ok(Requeue::Done) };
        let (_, plan) = self
            .ctx
            .decide_in_stages(key, observed, plan_pod, |observed| observed.with_templates(self.ctx.control()))
            .await?;
        self.writer.apply(plan).await.map(|()| Requeue::Done)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&PODS)
    }

    /// Nothing for a pod without claims: most pods are such.
    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = self.caches.observe_pod(key).filter(|observed| !observed.entries.is_empty());
        observed.iter().map(|observed| plan_pod(observed).stage()).collect()
    }
}
