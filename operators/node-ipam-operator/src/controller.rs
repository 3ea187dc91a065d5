//! The operator as a process, and one sync on one screen.
//!
//! Left out: which change enqueues which Node, which is in `changes`.

mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::NODES;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, stage};
use shared::runtime::queue::Backoff;
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer};
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::metrics::CidrSetMetrics;
use crate::observe::pool::Pool;
use crate::observe::{Caches, Informers};
use crate::plan::{Plan, Reason, plan};

/// Upstream: `cidrUpdateWorkers`, `pkg/controller/nodeipam/ipam/cidr_allocator.go`.
const WORKERS: usize = 30;

/// The operator as a process.
pub struct NodeIpamOperator;

impl Operator for NodeIpamOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(Flags(sets): &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let writer = Writer { control: setup.control(&queue), recorder: setup.recorder() };
        let metrics = CidrSetMetrics::register(setup.metrics());
        let (caches, Informers { mut nodes }) = Caches::new(Pool::new(sets.clone().unwrap_or_default(), &metrics));
        let caches = Arc::new(caches);
        if sets.is_some() {
            // A standby knows the taken blocks too: it is asked why, and goes on where the leader has stopped.
            let noting = Arc::clone(&caches);
            nodes.on_change_at_any_time(move |change| noting.pool.note(&change));
            nodes.on_change(setup.effects(&queue).of(&caches, Caches::node_changed));
            setup.watch(nodes);
        }
        let controller = NodeIpamController {
            caches,
            is_on: sets.is_some(),
            writer,
            clock: setup.clock(),
            decisions: setup.decisions(&queue),
        };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

/// Syncs Nodes.
struct NodeIpamController {
    caches: Arc<Caches>,
    /// Whether `--allocate-node-cidrs` is true.
    is_on: bool,
    writer: Writer,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for NodeIpamController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        let plan = plan(&observed);
        self.decisions.record(self.clock.now(), key, &plan);
        // Nothing was awaited since the observation, so nobody else is given the same.
        self.caches.reserve(&observed, &plan);
        let Outcome { fate, error } = self.writer.apply(&observed, plan).await;
        self.caches.settle(&observed, fate);
        error.map_or(Ok(Requeue::Done), Err)
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
