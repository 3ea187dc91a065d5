//! Wiring, and one sync of a Service.
//!
//! Left out: which change wakes which Service, which is `changes`', and the look for what is left over, which is
//! `leftovers`'.

mod changes;
mod leftovers;

use std::sync::Arc;
use std::time::Duration;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::controllers::endpoints::changes::service_changed;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, first_stage};
use shared::runtime::queue::{Backoff, Cause, Queue};
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer};
use crate::facts::{self, FACTS};
use crate::flags::Flags;
use crate::objects::{ENDPOINTS, SERVICES};
use crate::observe::{Caches, Informers, live_endpoints};
use crate::plan::{plan, plan_live_read};
use leftovers::{LeftoverController, all_endpoints};

/// The operator as a process.
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
        let look = LeftoverController {
            caches: Arc::clone(&caches),
            control: setup.control(&leftovers),
            services: queue.clone(),
        };
        let controller = EndpointsController {
            writer: Writer { control: setup.control(&queue), recorder: setup.recorder() },
            caches,
            clock: setup.clock(),
            decisions: setup.decisions(&queue),
        };
        setup.work(Arc::new(controller), &queue, flags.concurrent_endpoint_syncs);
        setup.work(Arc::new(look), &leftovers, 1);
    }
}

/// Which change leads to a sync, and what is followed while a Service selects pods.
fn follow(flags: &Flags, setup: &mut Setup, queue: &Queue, caches: &Arc<Caches>, informers: Informers) {
    let Informers { mut services, mut pods, mut endpoints } = informers;
    let effects = setup.effects(queue);
    let batch = flags.endpoint_updates_batch_period.0;
    services.on_change(effects.of(caches, |_, change| service_changed(change)));
    pods.on_change(effects.of(caches, move |caches, change| caches.service_pods.pod_changed(change, batch)));
    endpoints.on_change(effects.of(caches, Caches::endpoints_changed));
    let need = services.need(|service| service.selects().is_some());
    setup.watch(services);
    setup.watch_beside(pods, &need);
    // Those of a Service that has lost its selector are left alone.
    setup.watch_while(endpoints, &need);
}

/// Enqueues the look for what is left over: once, and after a restore of etcd, which may bring back Endpoints whose
/// Service was gone when the backup was made.
fn begin(setup: &mut Setup, leftovers: &Queue) {
    let (started, restored) = (leftovers.clone(), leftovers.clone());
    setup.at_start(move || started.add(&all_endpoints(), Cause::Event));
    setup.on_restore(move || restored.add(&all_endpoints(), Cause::Event));
}

/// How far apart two syncs of a Service are that change its Endpoints: while pods come and go by the dozen, a thousand
/// addresses are not written for each of them. The first change waits for nothing, nor does the Service's own.
const REST: Duration = Duration::from_millis(100);

/// Syncs Services.
struct EndpointsController {
    caches: Arc<Caches>,
    writer: Writer,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for EndpointsController {
    /// Upstream: `syncService`, `pkg/controller/endpoint/endpoints_controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let observed = self.caches.observe(key);
        let observed = match plan_live_read(&observed) {
            None => observed,
            Some(live_read) => {
                self.decisions.record(self.clock.now(), key, &live_read);
                live_endpoints(&self.writer.control, observed).await?
            }
        };
        let plan = plan(&observed);
        self.decisions.record(self.clock.now(), key, &plan);
        self.caches.remember(&observed);
        let requeue = if plan.writes() { Requeue::Rest(REST) } else { Requeue::Done };
        let Outcome { error } = self.writer.apply(&observed, plan).await;
        error.map_or(Ok(requeue), Err)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&SERVICES).or_else(|| object.key_of(&ENDPOINTS))
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = self.caches.observe(key);
        vec![first_stage(plan_live_read(&observed), || plan(&observed))]
    }
}
