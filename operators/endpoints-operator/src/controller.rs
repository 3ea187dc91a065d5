//! The operator as a process, and one sync on one screen.

mod changes;
mod leftovers;

use std::sync::Arc;
use std::time::Duration;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::controllers::endpoints::changes::service_changed;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::queue::{Backoff, Cause, Queue};
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{self, FACTS};
use crate::flags::Flags;
use crate::objects::{ENDPOINTS, SERVICES, Service};
use crate::observe::{Caches, Informers, live_endpoints};
use crate::plan::{Next, next, plan};
use leftovers::{LeftoverController, all_endpoints};

pub struct EndpointsOperator;

impl Operator for EndpointsOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue(facts::QUEUE.name, Backoff::default());
        let leftovers = setup.queue(facts::LEFTOVERS.name, Backoff::default());
        let (caches, informers) = Caches::new();
        let caches = Arc::new(caches);
        follow(flags, setup, &queue, &caches, informers);
        begin(setup, &leftovers);
        let ctx = setup.context(&queue);
        let look =
            LeftoverController { caches: Arc::clone(&caches), ctx: setup.context(&leftovers), services: queue.clone() };
        let controller = EndpointsController { caches, writer: Writer { ctx: ctx.clone() }, ctx };
        setup.work(Arc::new(controller), &queue, flags.concurrent_endpoint_syncs);
        setup.work(Arc::new(look), &leftovers, 1);
    }
}

/// Register the handlers and the watches; only Services are watched while none selects pods.
fn follow(flags: &Flags, setup: &mut Setup, queue: &Queue, caches: &Arc<Caches>, informers: Informers) {
    let Informers { mut services, mut pods, mut endpoints } = informers;
    let effects = setup.effects(queue);
    let batch = flags.endpoint_updates_batch_period.0;
    services.on_change(effects.with(service_changed::<Service>));
    pods.on_change(effects.of(caches, move |caches, change| caches.service_pods.pod_changed(change, batch)));
    endpoints.on_change(effects.of(caches, Caches::endpoints_changed));
    let need = services.need(|service| service.selects().is_some());
    setup.watch(services);
    setup.watch_beside(pods, &need);
    setup.watch_while(endpoints, &need);
}

/// Enqueue the search for leftovers at the start and after a restore of etcd, which may bring back Endpoints whose
/// Service was gone when the backup was made.
fn begin(setup: &mut Setup, leftovers: &Queue) {
    let (started, restored) = (leftovers.clone(), leftovers.clone());
    setup.at_start(move || started.add(&all_endpoints(), Cause::Event));
    setup.on_restore(move || restored.add(&all_endpoints(), Cause::Event));
}

/// The pause after a sync that wrote Endpoints, because each write sends up to a thousand addresses: changes of pods in
/// the pause are written together. The first change, and a change of the Service, are written at once.
const REST: Duration = Duration::from_millis(100);

struct EndpointsController {
    caches: Arc<Caches>,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for EndpointsController {
    /// Upstream: `syncService`, `pkg/controller/endpoint/endpoints_controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let observed = self.caches.observe(key);
        let (observed, plan) = match next(&observed) {
            Next::Execute(plan) => (observed, plan),
            Next::Ask(live_read) => {
                self.ctx.decide(key, &live_read);
                let observed = live_endpoints(self.ctx.control(), observed).await?;
                let plan = plan(&observed);
                (observed, plan)
            }
        };
        self.ctx.decide(key, &plan);
        self.caches.remember(&observed);
        let requeue = if plan.writes() { Requeue::Rest(REST) } else { Requeue::Done };
        self.writer.apply(&observed, plan).await?;
        Ok(requeue)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&SERVICES).or_else(|| object.key_of(&ENDPOINTS))
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        vec![next(&self.caches.observe(key)).stage()]
    }
}
