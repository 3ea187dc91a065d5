//! The operator as a process, and one sync on one screen.

mod changes;
mod monitors;

use std::sync::Arc;
use std::time::Duration;

use shared::api::explain::{Stage, Subject};
use shared::api::object::{Key, Kind};
use shared::following::cache::Change;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::decisions::first_stage;
use shared::working::queue::{Backoff, Queue};
use shared::working::worker::{Controller, Requeue};
use tokio::sync::Notify;

use crate::apply::{Outcome, Writer};
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::objects::ResourceQuota;
use crate::observe::facts::Waker;
use crate::observe::{Caches, is_about_kinds};
use crate::plan::{plan, plan_wait};
use crate::status::next_status;
use monitors::Monitors;

/// The time until a quota that waits for a kind is synced again, if the kind does not wake it.
const LOOK: Duration = Duration::from_secs(1);
/// The pause after a write, which merges the deletions of many pods. The first deletion is written at once.
const REST: Duration = Duration::from_millis(50);
/// The time between two syncs by events while a kind cannot be counted.
const APART: Duration = Duration::from_secs(1);

pub struct ResourceQuotaOperator;

impl Operator for ResourceQuotaOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
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
        resource_quotas.on_change(setup.effects(&queue).with(changes::quota_changed));
        let known = Arc::clone(&caches);
        resource_quotas.on_change(move |change| known.reported.note(&change));
        setup.watch(resource_quotas);
        let restored = Arc::clone(&caches);
        setup.on_restore(move || {
            restored.charges.start_over();
            restored.feeds.start_over();
        });

        let waker = Waker { quotas: caches.quotas.clone(), queue: queue.clone(), monitors: Arc::clone(&changed) };
        let (monitors, ready) = Monitors::new(setup.feeder(), Arc::clone(&caches), waker, changed);
        setup.run("monitors", ready, monitors.run());

        let writer = Writer { ctx: ctx.clone(), caches: Arc::clone(&caches) };
        let controller = ResourceQuotaController {
            caches,
            writer,
            queue: queue.clone(),
            sync_period: flags.resource_quota_sync_period.0,
            ctx,
        };
        setup.work(Arc::new(controller), &queue, flags.concurrent_resource_quota_syncs);
    }
}

struct ResourceQuotaController {
    caches: Arc<Caches>,
    writer: Writer,
    queue: Queue,
    sync_period: Duration,
    ctx: ControllerContext,
}

impl Controller for ResourceQuotaController {
    /// Upstream: `syncResourceQuotaFromKey`, `pkg/controller/resourcequota/resource_quota_controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else {
            self.ctx.forget(key, None);
            return Ok(Requeue::Done);
        };
        if let Some(wait) = plan_wait(&observed) {
            self.ctx.decide(key, &wait);
            return Ok(Requeue::After(LOOK, "the first list of a kind"));
        }
        let plan = plan(&observed, self.ctx.now());
        self.ctx.decide(key, &plan);

        let outcome = self.writer.apply(&observed, plan);

        let status = next_status(&observed.quota, &outcome);
        if let Some(status) = &status {
            self.writer.write_status(&observed, status).await?;
        }
        if let Some(retry) = Self::retry(&outcome) {
            return Ok(retry);
        }
        if let Some((delay, purpose)) = self.next_count(&outcome) {
            self.queue.add_after(key, delay, purpose);
        }
        Ok(if status.is_some() { Requeue::Rest(REST) } else { Requeue::Done })
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&ResourceQuota::RESOURCE)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = self.caches.observe(key);
        let first = |observed| first_stage(plan_wait(observed), || plan(observed, self.ctx.now()));
        observed.iter().map(first).collect()
    }
}

impl ResourceQuotaController {
    /// When to retry the kinds that could not be counted, if there are any.
    fn retry(outcome: &Outcome) -> Option<Requeue> {
        if outcome.is_behind {
            return Some(Requeue::After(LOOK, "the objects of a charge"));
        }
        outcome.is_partial.then_some(Requeue::Partly(APART))
    }

    /// When to count again without an event, and why.
    fn next_count(&self, outcome: &Outcome) -> Option<(Duration, &'static str)> {
        let recount = outcome.recount.map(|left| (left, "the end of a pod's grace period, or of a charge"));
        let period = (!self.sync_period.is_zero()).then_some((self.sync_period, "the next full count"));
        [recount, period].into_iter().flatten().min_by_key(|(delay, _)| *delay)
    }
}
