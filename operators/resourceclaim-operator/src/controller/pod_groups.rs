//! The controller of PodGroups with claims: one sync decides about one PodGroup.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::POD_GROUPS;
use shared::working::context::ControllerContext;
use shared::working::worker::{Controller, Requeue};

use crate::apply::users::UserWriter;
use crate::observe::Caches;
use crate::plan::users::plan_pod_group;

pub(super) struct PodGroupController {
    pub(super) caches: Arc<Caches>,
    pub(super) writer: UserWriter,
    pub(super) ctx: ControllerContext,
}

impl Controller for PodGroupController {
    /// Upstream: `syncPodGroup`, `pkg/controller/resourceclaim/controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe_pod_group(key) else { return Ok(Requeue::Done) };
        let (_, plan) = self
            .ctx
            .decide_in_stages(key, observed, plan_pod_group, |observed| observed.with_templates(self.ctx.control()))
            .await?;
        self.writer.apply(plan).await.map(|()| Requeue::Done)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&POD_GROUPS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = self.caches.observe_pod_group(key);
        observed.iter().map(|observed| plan_pod_group(observed).stage()).collect()
    }
}
