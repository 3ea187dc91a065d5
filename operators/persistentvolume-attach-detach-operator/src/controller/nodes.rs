//! One sync of a node: it writes which volumes are attached.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::NODES;
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::worker::{Controller, Requeue};

use crate::apply::NodeWriter;
use crate::observe::Caches;
use crate::plan::{Config, plan_node};

pub(super) struct NodeController {
    pub(super) caches: Arc<Caches>,
    pub(super) writer: NodeWriter,
    pub(super) config: Config,
    pub(super) ctx: ControllerContext,
}

impl Controller for NodeController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let plan = plan_node(&self.caches.observe_node(key), self.config);
        self.ctx.decide(key, &plan);
        self.writer.apply_node(key, plan).await?;
        Ok(Requeue::Done)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&NODES)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        vec![stage(&plan_node(&self.caches.observe_node(key), self.config))]
    }
}
