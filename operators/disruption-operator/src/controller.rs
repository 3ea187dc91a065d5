//! The process, and one sync of a budget.

mod changes;
mod search;
mod stale_pods;

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use shared::api::explain::{self, Subject};
use shared::api::object::{Key, Kind};
use shared::controllers::status_throttle::NEXT_STATUS;
use shared::process::run::{Names, Operator, Setup};
use shared::transport::api_error::ApiError;
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::queue::{Backoff, Cause, Queue};
use shared::working::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer, stale};
use crate::facts::{self, FACTS};
use crate::flags::Flags;
use crate::objects::{Failure, PodDisruptionBudget};
use crate::observe::scales::read_scales;
use crate::observe::search::all_pods;
use crate::observe::{Caches, Informers, Observed, are_pods_behind};
use crate::plan::{Stage, next_stage};
use crate::status::{has_only_counts, next_status};
use changes::{remember, stale_pod_changed};
use search::SearchController;
use stale_pods::StalePodController;

/// The number of budgets synced at a time. Upstream's single worker never waits for the scale of an owner.
const WORKERS: usize = 4;
/// The delay of a key that is held when it is taken again.
const SOON: Duration = Duration::from_millis(1);

pub struct DisruptionOperator;

impl Operator for DisruptionOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let budgets = setup.queue(facts::BUDGETS.name, Backoff::default());
        let stale = setup.queue(facts::STALE_PODS.name, Backoff::default());
        let searches = setup.queue(facts::SEARCHES.name, Backoff::default());
        let (caches, informers) = Caches::new();
        let caches = Arc::new(caches);
        let (ctx, stale_ctx) = (setup.context(&budgets), setup.context(&stale));
        follow(setup, &caches, informers, (&budgets, &ctx), (&stale, &stale_ctx));
        let controller = DisruptionController {
            caches: Arc::clone(&caches),
            writer: Writer { ctx: ctx.clone(), caches: Arc::clone(&caches) },
            ctx,
        };
        let stale_pods = StalePodController {
            caches: Arc::clone(&caches),
            writer: stale::Writer { ctx: stale_ctx.clone() },
            ctx: stale_ctx,
        };
        let search = SearchController { caches, stale: stale.clone(), ctx: setup.context(&searches) };
        let first = searches.clone();
        setup.at_start(move || first.add(&all_pods(), Cause::Event));
        setup.work(Arc::new(controller), &budgets, WORKERS);
        setup.work(Arc::new(stale_pods), &stale, 1);
        setup.work(Arc::new(search), &searches, 1);
    }
}

/// Follow budgets, and the pods of namespaces with a budget.
fn follow(
    setup: &mut Setup,
    caches: &Arc<Caches>,
    Informers { mut pod_disruption_budgets, mut pods }: Informers,
    (budgets, ctx): (&Queue, &ControllerContext),
    (stale, stale_ctx): (&Queue, &ControllerContext),
) {
    let effects = setup.effects(budgets);
    pod_disruption_budgets.on_change(effects.of(caches, Caches::budget_changed));
    let known = Arc::clone(caches);
    pod_disruption_budgets.on_change(move |change| remember(&known.memory, change));
    let known = Arc::clone(caches);
    setup.on_restore(move || known.memory.start_over());
    pods.on_change(effects.of(caches, Caches::pod_changed));
    let (effects, clock) = (setup.effects(stale), stale_ctx.clone());
    pods.on_change(effects.with(move |change| stale_pod_changed(change, clock.now())));
    let (known, ctx) = (Arc::clone(caches), ctx.clone());
    pods.on_change(move |change| {
        if let Some(warning) = known.overlap_changed(change) {
            ctx.event(warning);
        }
    });
    let need = pod_disruption_budgets.need(|_| true);
    setup.watch(pod_disruption_budgets);
    // Pods that have ended too, because their owners count as expected.
    setup.watch_beside(pods, &need);
}

struct DisruptionController {
    caches: Arc<Caches>,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for DisruptionController {
    /// Upstream: `sync` and `trySync`, `pkg/controller/disruption/disruption.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(mut observed) = self.caches.observe(key) else {
            self.ctx.forget(key, None);
            return Ok(Requeue::Done);
        };
        let (plan, now) = loop {
            let now = self.ctx.now();
            let stage = next_stage(&observed, now);
            self.ctx.decide(key, &stage);
            let control = self.ctx.control();
            match stage {
                Stage::SeeEvictions(_) if are_pods_behind(&self.caches, control, &observed) => {
                    return Ok(Requeue::After(SOON, "pods as new as the evictions"));
                }
                Stage::SeeEvictions(_) => observed.has_seen_evictions = true,
                Stage::ReadScales(_) => read_scales(&self.caches, control, &mut observed, now).await,
                Stage::Decide(plan) => break (plan, now),
            }
        };
        let outcome = self.writer.apply(plan);

        let Some(status) = next_status(&observed, &outcome, now) else { return requeue(outcome, None) };
        if has_only_counts(&observed.budget.status, &status)
            && let Some(wait) = self.caches.memory.statuses.wait(key, now)
        {
            return requeue(outcome, Some(wait));
        }
        match self.writer.write_status(&observed, &status, now).await {
            Ok(()) => requeue(outcome, None),
            Err(error) => self.fail_safe(&observed, &outcome, error).await,
        }
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&PodDisruptionBudget::RESOURCE)
    }

    fn preview(&self, key: &Key) -> Vec<explain::Stage> {
        let observed = self.caches.observe(key);
        observed.iter().map(|observed| stage(&next_stage(observed, self.ctx.now()))).collect()
    }
}

impl DisruptionController {
    /// If a status cannot be written, try one that allows nothing: numbers that are too high let pods be evicted. Not
    /// after a conflict, because the status is newer then.
    ///
    /// Upstream: `failSafe`, `pkg/controller/disruption/disruption.go`.
    async fn fail_safe(&self, observed: &Observed, outcome: &Outcome, error: ApiError) -> anyhow::Result<Requeue> {
        if error.is_not_found() {
            return Ok(Requeue::Done);
        }
        let is_sent = !matches!(error, ApiError::NotLeading | ApiError::Shadow);
        if is_sent && !error.is_conflict() && outcome.counts.is_ok() {
            let now = self.ctx.now();
            let failed = Outcome { counts: Err(Failure::passing(&error)), recheck: None, unread: None };
            if let Some(status) = next_status(observed, &failed, now) {
                self.writer.write_status(observed, &status, now).await?;
            }
        }
        Err(error.into())
    }
}

/// When to sync a budget again.
fn requeue(outcome: Outcome, next_status: Option<Duration>) -> anyhow::Result<Requeue> {
    let Outcome { counts, recheck, unread } = outcome;
    if let Some(Failure { message, is_lasting: false }) = counts.err().or(unread) {
        return Err(anyhow!(message));
    }
    Ok(Requeue::earliest([recheck, next_status.map(|left| (left, NEXT_STATUS))]))
}
