//! The operator as a process, and one sync of a budget on one screen.
//!
//! Left out: which change enqueues which key, which is in `changes`; and pods whose disruption never came: `stale_pods`
//! decides about each, and `search` looks for those that are not followed.

pub mod changes;
mod rises;
mod search;
mod stale_pods;

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use jiff::Timestamp;
use shared::api::explain::{Stage, Subject};
use shared::api::object::{Key, Kind};
use shared::controllers::pace::NEXT_STATUS;
use shared::runtime::api_error::ApiError;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, first_stage};
use shared::runtime::queue::{Backoff, Queue};
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer, stale};
use crate::facts::{self, FACTS};
use crate::flags::Flags;
use crate::objects::PodDisruptionBudget;
use crate::observe::scales::live_scales;
use crate::observe::search::Scope;
use crate::observe::{Caches, Informers, Observed, are_pods_behind};
use crate::plan::{Failure, PlannedEvent, plan, plan_live_read, plan_wait};
use crate::status::{can_wait, next_status};
use changes::stale_pod_changed;
use rises::{Pace, Rises};
use search::{FIRST, PURPOSE, SearchController};
use stale_pods::StalePodController;

/// So many budgets at a time: upstream's one never waits for an owner's scale.
const WORKERS: usize = 4;
/// The key is held as soon as it is taken again.
const SOON: Duration = Duration::from_millis(1);

/// The operator as a process.
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
        follow(setup, &caches, informers, [&budgets, &stale]);
        let control = setup.control(&budgets);
        let controller = DisruptionController {
            caches: Arc::clone(&caches),
            writer: Writer { control, recorder: setup.recorder(), caches: Arc::clone(&caches) },
            rises: Rises::default(),
            clock: setup.clock(),
            decisions: setup.decisions(&budgets),
        };
        let control = setup.control(&stale);
        let stale_pods = StalePodController {
            caches: Arc::clone(&caches),
            writer: stale::Writer { control, clock: setup.clock() },
            clock: setup.clock(),
            decisions: setup.decisions(&stale),
        };
        let search = SearchController {
            caches,
            control: setup.control(&searches),
            stale: stale.clone(),
            clock: setup.clock(),
            decisions: setup.decisions(&searches),
        };
        let first = searches.clone();
        setup.at_start(move || Scope::EVERY.iter().for_each(|scope| first.add_after(&scope.key(), FIRST, PURPOSE)));
        setup.work(Arc::new(controller), &budgets, WORKERS);
        setup.work(Arc::new(stale_pods), &stale, 1);
        setup.work(Arc::new(search), &searches, 1);
    }
}

/// Declares that budgets are followed, and pods in the namespaces that have one; and connects their changes with the
/// queues of budgets and of pods.
fn follow(
    setup: &mut Setup,
    caches: &Arc<Caches>,
    Informers { mut pod_disruption_budgets, mut pods }: Informers,
    [budgets, stale]: [&Queue; 2],
) {
    let effects = setup.effects(budgets);
    pod_disruption_budgets.on_change(effects.of(caches, Caches::budget_changed));
    let known = Arc::clone(caches);
    pod_disruption_budgets.on_change(move |change| {
        known.decided.note(&change);
        known.evictions.note(&change);
    });
    let known = Arc::clone(caches);
    setup.on_restore(move || {
        known.decided.start_over();
        known.searches.start_over();
    });
    pods.on_change(effects.of(caches, Caches::pod_changed));
    let (known, recorder) = (Arc::clone(caches), setup.recorder());
    pods.on_change(move |change| {
        if let Some(PlannedEvent { about, kind, reason, message }) = known.overlap_changed(change) {
            recorder.event(&about, kind, reason, message);
        }
    });
    let clock = setup.clock();
    pods.on_change(setup.effects(stale).of(caches, move |_, change| stale_pod_changed(change, clock.now())));
    let need = pod_disruption_budgets.need(|_| true);
    setup.watch(pod_disruption_budgets);
    // All of them: ended pods count among those that there should be.
    setup.watch_beside(pods, &need);
}

/// Syncs budgets.
struct DisruptionController {
    caches: Arc<Caches>,
    writer: Writer,
    rises: Rises,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for DisruptionController {
    /// Upstream: `sync` and `trySync`, `pkg/controller/disruption/disruption.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else {
            self.writer.control.forget(key, None);
            self.rises.forget(key);
            return Ok(Requeue::Done);
        };
        if let Some(wait) = plan_wait(&observed)
            && are_pods_behind(&self.caches, &self.writer.control, &observed)
        {
            self.decisions.record(self.clock.now(), key, &wait);
            return Ok(Requeue::After(SOON, "pods that are as new as the eviction"));
        }
        let observed = match plan_live_read(&observed) {
            None => observed,
            Some(live_read) => {
                self.decisions.record(self.clock.now(), key, &live_read);
                live_scales(&self.writer.control, observed).await
            }
        };
        let now = self.clock.now();
        let plan = plan(&observed, now);
        self.decisions.record(now, key, &plan);

        let outcome = self.writer.apply(plan);

        let Some(status) = next_status(&observed, &outcome, now) else {
            self.rises.forget(key);
            return requeue(outcome, None);
        };
        if can_wait(&observed.budget.status, &status)
            && let Some(later) = self.rises.wait(key, &status, self.pace(&observed, now), now)
        {
            return requeue(outcome, Some(later));
        }
        self.rises.note(key, &status, now);
        if let Err(error) = self.writer.write_status(&observed, &status).await {
            return self.fail_safe(&observed, &outcome, error).await;
        }
        requeue(outcome, None)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&PodDisruptionBudget::RESOURCE)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = self.caches.observe(key);
        let first = |observed| first_stage(plan_live_read(observed), || plan(observed, self.clock.now()));
        observed.iter().map(first).collect()
    }
}

impl DisruptionController {
    fn pace(&self, observed: &Observed, now: Timestamp) -> &'static Pace {
        let is_asked_for = self.caches.evictions.are_expected(&observed.budget.metadata.key, now);
        if observed.are_pods_rolling() && !is_asked_for { &Pace::ROLLING } else { &Pace::PROMPT }
    }

    /// Where a status cannot be written, one that allows nothing may be: numbers that are too high let pods be evicted.
    /// A conflict is no reason for that, for it says that the numbers of somebody else are newer.
    ///
    /// Upstream: `failSafe`, `pkg/controller/disruption/disruption.go`.
    async fn fail_safe(&self, observed: &Observed, outcome: &Outcome, error: ApiError) -> anyhow::Result<Requeue> {
        if error.is_not_found() {
            return Ok(Requeue::Done);
        }
        let is_sent = !matches!(error, ApiError::NotLeading | ApiError::Shadow);
        if is_sent && !error.is_conflict() && outcome.counts.is_ok() {
            let failed = Outcome { counts: Err(Failure::passing(&error)), recheck: None };
            if let Some(status) = next_status(observed, &failed, self.clock.now()) {
                self.writer.write_status(observed, &status).await?;
            }
        }
        Err(error.into())
    }
}

/// When a budget is looked at again whose status was written, or waits.
fn requeue(outcome: Outcome, later: Option<Duration>) -> anyhow::Result<Requeue> {
    let Outcome { counts, recheck } = outcome;
    if let Err(Failure { message, is_lasting: false }) = counts {
        return Err(anyhow!(message));
    }
    let recheck = recheck.map(|left| (left, "the time that an eviction may take"));
    Ok(Requeue::earliest([recheck, later.map(|left| (left, NEXT_STATUS))]))
}
