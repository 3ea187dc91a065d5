//! The operator as a process, and one sync on one screen.

mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::NODES;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::memory::Pool;
use crate::metrics::CidrSetMetrics;
use crate::observe::{Caches, Informers};
use crate::plan::{Plan, Reason, plan};

/// Upstream: `cidrUpdateWorkers`, `pkg/controller/nodeipam/ipam/cidr_allocator.go`.
const WORKERS: usize = 30;

pub struct NodeIpamOperator;

impl Operator for NodeIpamOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(Flags(sets): &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
        let metrics = CidrSetMetrics::register(setup.metrics());
        let pool = Arc::new(Pool::new(sets.clone().unwrap_or_default(), &metrics));
        let (caches, Informers { mut nodes }) = Caches::new(Arc::clone(&pool));
        let caches = Arc::new(caches);
        if sets.is_some() {
            // A standby follows the taken blocks too: it answers `/why`, and continues after the leader's last block.
            let noting = Arc::clone(&pool);
            nodes.on_change_at_any_time(move |change| noting.note(&change));
            nodes.on_change(setup.effects(&queue).of(&caches, Caches::node_changed));
            setup.watch(nodes);
        }
        let writer = Writer { ctx: ctx.clone(), pool };
        let controller = NodeIpamController { caches, is_on: sets.is_some(), writer, ctx };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

struct NodeIpamController {
    caches: Arc<Caches>,
    /// Whether `--allocate-node-cidrs` is true.
    is_on: bool,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for NodeIpamController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        let plan = plan(&observed);
        self.ctx.decide(key, &plan);
        self.writer.apply(&observed, plan).await?;
        Ok(Requeue::Done)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&NODES)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        if !self.is_on {
            return vec![stage(&Plan::Keep(Reason::Off))];
        }
        self.caches.observe(key).iter().map(|observed| stage(&plan(observed))).collect()
    }
}
