//! One sync of a node that may be lost: it marks the node's pods.
//!
//! Pods are not followed. They are listed once for each loss, and at a start.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::NODES;
use shared::working::context::ControllerContext;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::observe::{Caches, live_pods};
use crate::plan::Next;
use crate::plan::pods::{next_pods, plan_pods};

pub(super) struct PodsController {
    pub(super) caches: Arc<Caches>,
    pub(super) writer: Writer,
    pub(super) ctx: ControllerContext,
}

impl Controller for PodsController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe_pods(key) else { return Ok(Requeue::Done) };
        let plan = match next_pods(&observed) {
            Next::Execute(plan) => plan,
            Next::Ask(live_read) => {
                self.ctx.decide(key, &live_read);
                plan_pods(&live_pods(self.ctx.control(), key).await?)
            }
        };
        self.ctx.decide(key, &plan);
        self.writer.apply_pods(&observed, plan).await?;
        Ok(Requeue::Done)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&NODES)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        self.caches.observe_pods(key).iter().map(|observed| next_pods(observed).stage()).collect()
    }
}
