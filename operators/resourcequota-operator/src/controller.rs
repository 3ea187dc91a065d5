//! The operator as a process, and one sync of a quota on one screen.
//!
//! Left out: which change of a quota leads to a sync, which is in `changes`; and which kinds are followed, which the
//! `monitors` see to.

mod changes;
mod monitors;

use std::sync::Arc;
use std::time::Duration;

use shared::api::explain::{Stage, Subject};
use shared::api::object::{Key, Kind};
use shared::runtime::cache::Change;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, first_stage};
use shared::runtime::queue::{Backoff, Queue};
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};
use tokio::sync::Notify;

use crate::apply::{Outcome, Writer};
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::objects::ResourceQuota;
use crate::observe::shelf::Waker;
use crate::observe::{Caches, is_about_kinds};
use crate::plan::{plan, plan_wait};
use crate::status::next_status;
use changes::quota_changed;
use monitors::Monitors;

/// The first list of a kind, or what was charged, wakes the quotas that wait for it; this is for what does not come.
const LOOK: Duration = Duration::from_secs(1);
/// How far apart two counts of a quota are that change its usage: pods go by the dozen, and what the first one gives back
/// waits for nothing.
const REST: Duration = Duration::from_millis(50);
/// How far apart events count again while a kind cannot be counted.
const APART: Duration = Duration::from_secs(1);

/// The operator as a process.
pub struct ResourceQuotaOperator;

impl Operator for ResourceQuotaOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let (caches, mut resource_quotas) = Caches::new();
        let (caches, changed) = (Arc::new(caches), Arc::new(Notify::new()));
        let notified = Arc::clone(&changed);
        let noting = Arc::clone(&caches);
        resource_quotas.on_change_at_any_time(move |change| {
            noting.charges.note(&change);
            let is_other = match change {
                Change::Updated { old, new } => is_about_kinds(old, new),
                Change::Added(_) | Change::Deleted(_) => true,
            };
            if is_other {
                notified.notify_one();
            }
        });
        resource_quotas.on_change(setup.effects(&queue).of(&caches, |_, change| quota_changed(change)));
        let known = Arc::clone(&caches);
        resource_quotas.on_change(move |change| known.told.note(&change));
        setup.watch(resource_quotas);
        let restored = Arc::clone(&caches);
        setup.on_restore(move || restored.charges.start_over());

        let waker = Waker { quotas: caches.quotas.clone(), queue: queue.clone(), monitors: Arc::clone(&changed) };
        let (monitors, ready) = Monitors::new(setup.feeder(), Arc::clone(&caches), waker, changed);
        setup.run("monitors", ready, monitors.run());

        let writer = Writer { control: setup.control(&queue), recorder: setup.recorder(), caches: Arc::clone(&caches) };
        let controller = ResourceQuotaController {
            caches,
            writer,
            queue: queue.clone(),
            sync_period: flags.resource_quota_sync_period.0,
            clock: setup.clock(),
            decisions: setup.decisions(&queue),
        };
        setup.work(Arc::new(controller), &queue, flags.concurrent_resource_quota_syncs);
    }
}

/// Syncs quotas.
struct ResourceQuotaController {
    caches: Arc<Caches>,
    writer: Writer,
    queue: Queue,
    sync_period: Duration,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for ResourceQuotaController {
    /// Upstream: `syncResourceQuotaFromKey`, `pkg/controller/resourcequota/resource_quota_controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else {
            self.writer.control.forget(key, None);
            return Ok(Requeue::Done);
        };
        let now = self.clock.now();
        if let Some(wait) = plan_wait(&observed) {
            self.decisions.record(now, key, &wait);
            return Ok(Requeue::After(LOOK, "the first list of a kind"));
        }
        let plan = plan(&observed, now);
        self.decisions.record(now, key, &plan);

        let outcome = self.writer.apply(&observed, plan);

        let status = next_status(&observed.quota, &outcome);
        if let Some(status) = &status {
            self.writer.write_status(&observed, status).await?;
        }
        let next = self.next_count(&outcome);
        Ok(match Self::trouble(&outcome) {
            Some(requeue) => requeue,
            None if status.is_some() => {
                if let Some((delay, purpose)) = next {
                    self.queue.add_after(key, delay, purpose);
                }
                Requeue::Rest(REST)
            }
            None => Requeue::earliest([next]),
        })
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&ResourceQuota::RESOURCE)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = self.caches.observe(key);
        let first = |observed| first_stage(plan_wait(observed), || plan(observed, self.clock.now()));
        observed.iter().map(first).collect()
    }
}

impl ResourceQuotaController {
    /// When to try again what could not be counted, if there is such.
    fn trouble(outcome: &Outcome) -> Option<Requeue> {
        if outcome.is_behind {
            return Some(Requeue::After(LOOK, "what was charged"));
        }
        outcome.is_partial.then_some(Requeue::Partly(APART))
    }

    /// When to count again though nothing happens, and what for.
    fn next_count(&self, outcome: &Outcome) -> Option<(Duration, &'static str)> {
        let recount = outcome.recount.map(|left| (left, "the end of a pod's grace period, or of a charge"));
        let period = (!self.sync_period.is_zero()).then_some((self.sync_period, "the next full count"));
        [recount, period].into_iter().flatten().min_by_key(|(delay, _)| *delay)
    }
}
