//! The operator as a process, and one sync on one screen.

mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::metrics::RequestMetrics;
use crate::objects::RESOURCE_POOL_STATUS_REQUESTS;
use crate::observe::{Caches, Observed, live_pools};
use crate::plan::{Next, plan};
use crate::status::next_status;
use changes::request_changed;

/// Upstream's.
const WORKERS: usize = 1;

pub struct ResourcePoolStatusRequestOperator;

impl Operator for ResourcePoolStatusRequestOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
        let (caches, mut resource_pool_status_requests) = Caches::new();
        resource_pool_status_requests.on_change(setup.effects(&queue).with(request_changed));
        setup.watch_while_served(resource_pool_status_requests);
        let metrics = RequestMetrics::register(setup.metrics());
        let controller = RequestController { caches, writer: Writer { ctx: ctx.clone() }, metrics, ctx };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

struct RequestController {
    caches: Caches,
    writer: Writer,
    metrics: RequestMetrics,
    ctx: ControllerContext,
}

impl Controller for RequestController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let started = self.ctx.now();
        let Some(observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        let plan = |observed: &Observed| plan(observed, self.ctx.now());
        let read = |observed| live_pools(self.ctx.control(), observed);
        let (observed, plan) = self.ctx.decide_in_stages(key, observed, plan, read).await?;
        let outcome = self.writer.apply(&observed, plan).await?;
        if let Some(status) = next_status(&outcome, self.ctx.now()) {
            let written = self.writer.write_status(&observed, &status).await;
            let took = self.ctx.now().duration_since(started).unsigned_abs();
            self.metrics.processed(&observed.request.question.driver, took, &written);
            written?;
        }
        Ok(Requeue::earliest([outcome.next]))
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&RESOURCE_POOL_STATUS_REQUESTS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let next = self.caches.observe(key).map(|observed| plan(&observed, self.ctx.now()));
        next.iter().map(Next::stage).collect()
    }
}
