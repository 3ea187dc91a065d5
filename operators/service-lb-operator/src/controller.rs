//! The operator as a process, and one sync on one screen.

pub mod changes;
mod pools;

use std::sync::Arc;
use std::time::Duration;

use cloud::{Client, Endpoint};
use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::process::flags::Mode;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::queue::{Backoff, Cause, Queue};
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::balancers::Balancers;
use crate::facts::{FACTS, QUEUE};
use crate::flags::{Flags, Source};
use crate::metrics::ServiceMetrics;
use crate::objects::{SERVICES, Service};
use crate::observe::{Caches, Informers, Reader};
use crate::plan::next;

/// Upstream: `minRetryDelay`, `maxRetryDelay`.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(5), max: Duration::from_secs(300) };

pub struct ServiceLbOperator;

impl Operator for ServiceLbOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, BACKOFF);
        match &flags.source {
            Source::Provider(endpoint) => set_up(endpoint, flags, setup, &queue),
            Source::Pools(config_map) => pools::set_up(config_map, setup, &queue),
        }
    }
}

/// Wires the controller for the provider at this endpoint.
fn set_up(endpoint: &Endpoint, flags: &Flags, setup: &mut Setup, queue: &Queue) {
    let ctx = setup.context(queue);
    let (caches, Informers { mut services, mut nodes }) = Caches::new();
    let caches = Arc::new(caches);
    let effects = setup.effects(queue);
    services.on_change(effects.with(changes::service_changed));
    nodes.on_change(effects.of(&caches, Caches::node_changed));
    let wanting = services.need(Service::wants_load_balancer);
    setup.watch(services);
    setup.watch_while(nodes, &wanting);
    // A load balancer of the lost history may be another one than the restored Service says.
    let (restored, again) = (Arc::clone(&caches), queue.clone());
    setup.on_restore(move || {
        restored.memory.doubt_all();
        restored.memory.keys().iter().for_each(|key| again.add(key, Cause::Event));
    });
    let balancers = Balancers {
        client: Client::new(endpoint),
        control: ctx.control().clone(),
        cluster: flags.cluster.cluster_name.clone(),
        is_shadow: setup.flags().mode == Mode::Shadow,
    };
    let reader = Reader { caches, control: ctx.control().clone(), balancers };
    let metrics = ServiceMetrics::register(setup.metrics());
    let controller = ServiceLbController { writer: Writer { ctx: ctx.clone(), reader, metrics }, ctx };
    setup.work(Arc::new(controller), queue, flags.concurrent_service_syncs);
}

struct ServiceLbController {
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for ServiceLbController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Self { writer, ctx } = self;
        let Some(observed) = writer.reader.caches.observe(key) else { return Ok(Requeue::Done) };
        let service = observed.service.clone();
        let decided = ctx.decide_in_stages(key, observed, next, |observed| writer.reader.ask(observed)).await;
        match decided {
            Ok((observed, plan)) => writer.apply(&observed, plan).await,
            Err(error) => {
                if let Some(service) = service {
                    writer.tell_failed(&service, &error);
                }
                Err(error)
            }
        }
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&SERVICES)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        self.writer.reader.caches.observe(key).iter().map(|observed| next(observed).stage()).collect()
    }
}
