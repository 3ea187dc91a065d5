//! One sync of a search for pods that are bound to nodes that do not exist.
//!
//! A node that is deleted while it is followed needs no search. `missing_node` decides about the pods of each node.

use std::sync::Arc;
use std::time::Duration;

use shared::api::explain::{Stage, Subject};
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::controllers::brake::Brake;
use shared::working::context::ControllerContext;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::observe::{Caches, Scope, live_bindings};
use crate::plan::plan_bindings;

/// The time between two searches among Pending pods.
pub(super) const PERIOD: Duration = Duration::from_mins(1);

pub(super) const PURPOSE: &str = "the next search";

pub(super) struct BindingsController {
    pub(super) caches: Arc<Caches>,
    pub(super) brake: Arc<Brake<Text>>,
    pub(super) writer: Writer,
    pub(super) ctx: ControllerContext,
}

impl Controller for BindingsController {
    /// Upstream: `gcOrphaned`, which finds these nodes among all pods it follows.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let observed = live_bindings(self.ctx.control(), self.caches.observe_bindings(key)).await?;
        let plan = plan_bindings(&observed);
        self.ctx.decide(key, &plan);
        plan.existed.iter().for_each(|node| self.brake.gone(node));
        self.writer.apply_bindings(plan);
        Ok(match Scope::of(key) {
            Scope::All => Requeue::Done,
            Scope::Pending => Requeue::After(PERIOD, PURPOSE),
        })
    }

    fn key_of(&self, _object: &Subject) -> Option<Key> {
        None
    }

    fn preview(&self, _key: &Key) -> Vec<Stage> {
        Vec::new()
    }
}
