//! The operator as a process, and one sync on one screen.

pub mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::POD_GROUPS;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::observe::{Caches, Informers};
use crate::plan::{Next, plan};
use changes::group_changed;

/// Upstream's.
const WORKERS: usize = 1;

pub struct PodGroupProtectionOperator;

impl Operator for PodGroupProtectionOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
        let (caches, Informers { mut pod_groups, mut pods }) = Caches::new();
        let caches = Arc::new(caches);
        let effects = setup.effects(&queue);
        pod_groups.on_change(effects.with(group_changed));
        pods.on_change(effects.of(&caches, Caches::pod_changed));
        let deletions = pod_groups.need(|group| group.metadata.is_being_deleted());
        setup.watch_while_served(pod_groups);
        setup.watch_beside(pods, &deletions);
        let controller = ProtectionController { caches, writer: Writer { ctx: ctx.clone() }, ctx };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

struct ProtectionController {
    caches: Arc<Caches>,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for ProtectionController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        let read = |observed| self.caches.live_pods(self.ctx.control(), observed);
        let (_, plan) = self.ctx.decide_in_stages(key, observed, plan, read).await?;
        self.writer.apply(key, plan).await
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&POD_GROUPS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let next = self.caches.observe(key).map(|observed| plan(&observed));
        next.iter().map(Next::stage).collect()
    }
}
