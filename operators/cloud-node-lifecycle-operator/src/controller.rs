//! The operator as a process, and one sync on one screen.

mod changes;

use std::sync::Arc;
use std::time::Duration;

use cloud::Client;
use shared::api::explain::{Stage, Subject};
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::api::resource::NODES;
use shared::controllers::brake::Brake;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::observe::{Caches, Informers, Reader};
use crate::plan::{Config, Step, next};

/// Upstream looks at one node after the other, so that a provider that is slow to answer for one holds up all.
const WORKERS: usize = 5;
const BACKOFF_MAX: Duration = Duration::from_secs(30);

pub struct CloudNodeLifecycleOperator;

impl Operator for CloudNodeLifecycleOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let config = Config::from(flags);
        // A provider that fails is not asked more often than one that answers.
        let backoff = Backoff { first: config.period, max: config.period.max(BACKOFF_MAX) };
        let queue = setup.queue(QUEUE.name, backoff);
        let ctx = setup.context(&queue);
        let (caches, Informers { mut nodes }) = Caches::new();
        let caches = Arc::new(caches);
        nodes.on_change(setup.effects(&queue).of(&caches, Caches::node_changed));
        let brake = Brake::of_nodes(setup, ctx.clone(), flags.mass_deletion_share);
        brake.follow(&mut nodes);
        setup.watch(nodes);
        let restored = Arc::clone(&caches);
        setup.on_restore(move || restored.absences.forget_all());
        let reader = Reader::new(Arc::clone(&caches), ctx.control().clone(), Client::new(flags.provider.endpoint()));
        let writer = Writer { ctx: ctx.clone() };
        let controller = CloudNodeLifecycleController { config, caches, reader, writer, brake, ctx };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

struct CloudNodeLifecycleController {
    config: Config,
    caches: Arc<Caches>,
    reader: Reader,
    writer: Writer,
    brake: Arc<Brake<Text>>,
    ctx: ControllerContext,
}

impl Controller for CloudNodeLifecycleController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let (name, now) = (Text::new(key.name()), self.ctx.now());
        let Some(observed) = self.caches.observe(key, now) else {
            self.caches.absences.forget(key);
            self.brake.withdraw(&name);
            return Ok(Requeue::Done);
        };
        // All stages have the time of the observation: a step of the clock meanwhile would count as time of absence.
        let plan = |observed: &_| next(observed, &self.config, now);
        let (observed, plan) =
            self.ctx.decide_in_stages(key, observed, plan, |observed| self.reader.ask(observed)).await?;
        if plan.step == Step::Delete {
            let node = (&name, observed.node.metadata.uid);
            if let Some(wait) = self.brake.ask_for_node(key, node, || self.caches.nodes.len()) {
                return Ok(wait);
            }
        } else {
            self.brake.withdraw(&name);
        }
        let again = plan.again;
        self.writer.apply(&self.caches.absences, &observed, plan).await?;
        Ok(Requeue::earliest([again.map(|again| (again, "the next question to the cloud provider"))]))
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&NODES)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let now = self.ctx.now();
        self.caches.observe(key, now).iter().map(|observed| next(observed, &self.config, now).stage()).collect()
    }
}
