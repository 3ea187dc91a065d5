//! Wiring, and one sync from observation to the end of old revisions.
//!
//! Left out: which change wakes which key, which is `changes`'.

pub mod changes;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use shared::api::explain::{Stage, Subject};
use shared::api::object::{Key, Kind};
use shared::api::resource::Resource;
use shared::controllers::pace::{NEXT_STATUS, Pace};
use shared::controllers::rejections::HELD_BACK;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, stage};
use shared::runtime::queue::Backoff;
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::flags::gates::FeatureGates;
use crate::metrics::StatefulSetMetrics;
use crate::objects::{StatefulSet, StatefulSetStatus};
use crate::observe::rejected::Rejected;
use crate::observe::{Caches, Informers, Observed};
use crate::plan::claim::{plan_pod_claim, plan_revision_claim};
use crate::plan::reason::Reason;
use crate::plan::revisions::{Revisions, Update, plan_revisions, plan_truncation, revisions_with};
use crate::plan::stuck::{BUDGET, BUDGET_RETRY};
use crate::plan::{plan, unavailability};
use crate::status::{MIN_READY, is_in_between, next_check, next_status};

/// The operator as a process.
pub struct StatefulSetOperator;

impl Operator for StatefulSetOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let (caches, informers) = Caches::new();
        let caches = Arc::new(caches);
        let Informers { mut stateful_sets, mut pods, controller_revisions, mut persistent_volume_claims } = informers;
        let rejected = flags.rejected_pod_backoff.then(Arc::<Rejected>::default);
        if let Some(forgotten) = rejected.clone() {
            stateful_sets.on_change(move |change| forgotten.set_changed(&change));
        }
        let effects = setup.effects(&queue);
        stateful_sets.on_change(effects.of(&caches, |_, change| Caches::stateful_set_changed(change)));
        pods.on_change(effects.of(&caches, Caches::pod_changed));
        persistent_volume_claims.on_change(effects.of(&caches, Caches::claim_changed));
        let need = stateful_sets.need(|_| true);
        let makes_claims = stateful_sets.need(|set| !set.spec.volume_claim_templates.is_empty());
        setup.watch(stateful_sets);
        setup.watch_beside(pods, &need);
        setup.watch_beside(controller_revisions, &need);
        setup.watch_beside(persistent_volume_claims, &makes_claims);

        let controller = StatefulSetController {
            caches,
            rejected,
            writer: Writer { control: setup.control(&queue), recorder: setup.recorder() },
            gates: flags.feature_gates,
            pace: Pace::for_people(),
            metrics: StatefulSetMetrics::register(setup.metrics()),
            clock: setup.clock(),
            decisions: setup.decisions(&queue),
        };
        setup.work(Arc::new(controller), &queue, flags.concurrent_statefulset_syncs);
    }
}

/// Syncs StatefulSets.
pub struct StatefulSetController {
    caches: Arc<Caches>,
    /// None if rejected pods are replaced at once, as upstream does.
    rejected: Option<Arc<Rejected>>,
    writer: Writer,
    gates: FeatureGates,
    pace: Pace,
    metrics: StatefulSetMetrics,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for StatefulSetController {
    /// Upstream: `sync`, `pkg/controller/statefulset/stateful_set.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else {
            self.writer.control.forget(key, None);
            self.metrics.forget(key);
            return Ok(Requeue::Done);
        };
        if let Err(error) = &observed.set.spec.selector {
            self.refuse(&observed);
            // An edit brings it back; until then there is nothing to say of it.
            tracing::warn!(%key, %error, "invalid selector");
            return Ok(Requeue::Done);
        }
        let observed = self.claim(observed).await?;
        let observed = self.judge(observed);
        let revisions = self.revise(&observed).await?;
        let managed = self.manage(&observed, &revisions).await;
        let truncated = self.truncate(&observed, &revisions).await;
        let requeue = managed?;
        truncated?;
        Ok(requeue)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&StatefulSet::RESOURCE)
    }

    fn status_of(&self) -> Option<Resource> {
        Some(StatefulSet::RESOURCE)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let Some(observed) = self.caches.observe(key) else { return Vec::new() };
        let (revisions, pods) = (plan_revision_claim(&observed), plan_pod_claim(&observed));
        if !revisions.is_settled() {
            return vec![stage(&revisions)];
        }
        if !pods.is_settled() {
            return vec![stage(&pods)];
        }
        let now = self.clock.now();
        let look = |rejected: &Arc<Rejected>| rejected.look(observed.set.metadata.uid, &pods.owned, now);
        let rejections = self.rejected.as_ref().map(look).unwrap_or_default();
        let observed = observed.claimed(pods.owned).with(rejections);
        match plan_revisions(&observed) {
            Ok(revisions) => match revisions.settled(&observed) {
                Some(settled) => vec![stage(&plan(&observed, &settled, self.gates, now))],
                None => vec![stage(&revisions)],
            },
            Err(_) => Vec::new(),
        }
    }

    fn held(&self, resource: &str) {
        self.metrics.observe_held(resource);
    }
}

impl StatefulSetController {
    /// Notes that nothing is done about a StatefulSet whose selector cannot be read.
    fn refuse(&self, observed: &Observed) {
        let now = self.clock.now();
        let nothing = revisions_with(observed, observed.set.status.update_revision.clone(), 0);
        let plan = plan(observed, &nothing, self.gates, now);
        self.decisions.record(now, &observed.set.metadata.key, &plan);
    }

    /// The first stage, for the next ones count what it has claimed.
    async fn claim(&self, observed: Observed) -> anyhow::Result<Observed> {
        let (now, key) = (self.clock.now(), &observed.set.metadata.key);
        let revisions = plan_revision_claim(&observed);
        if !revisions.is_settled() {
            self.decisions.record(now, key, &revisions);
            self.writer.claim_revisions(&observed, revisions).await?;
        }
        let pods = plan_pod_claim(&observed);
        if !pods.is_settled() {
            self.decisions.record(now, key, &pods);
        }
        let pods = self.writer.claim_pods(&observed, pods).await?;
        Ok(observed.claimed(pods))
    }

    /// Counts the pods that their nodes have rejected.
    fn judge(&self, observed: Observed) -> Observed {
        let Some(rejected) = &self.rejected else { return observed };
        let set = &*observed.set;
        let (rejections, begun) = rejected.note(set.metadata.uid, &observed.pods, self.clock.now());
        if let Some(begun) = begun {
            self.writer.tell_of_back_off(set, &begun);
        }
        observed.with(rejections)
    }

    /// The second stage, for pods are made from a revision that is there.
    async fn revise(&self, observed: &Observed) -> anyhow::Result<Revisions> {
        let plan = plan_revisions(observed)?;
        if !matches!(plan.update, Update::Keep(_)) {
            self.decisions.record(self.clock.now(), &observed.set.metadata.key, &plan);
        }
        self.writer.revise(observed, plan).await
    }

    /// The third stage: pods, their claims, and the status.
    async fn manage(&self, observed: &Observed, revisions: &Revisions) -> anyhow::Result<Requeue> {
        let (now, set) = (self.clock.now(), &*observed.set);
        let plan = plan(observed, revisions, self.gates, now);
        self.decisions.record(now, &set.metadata.key, &plan);
        if self.gates.max_unavailable && plan.reason != Reason::BeingDeleted {
            let unavailability = unavailability(observed, now);
            self.metrics.observe(&set.metadata.key, set.spec.pod_management_policy, unavailability);
        }
        let is_empty = plan.is_empty();
        let outcome = self.writer.apply(observed, revisions, plan).await;
        let budget = outcome.refused.as_ref().map(|refused| {
            self.decisions.record(self.clock.now(), &set.metadata.key, refused);
            (BUDGET_RETRY, BUDGET)
        });
        let next = next_status(observed, revisions, &outcome, now);
        let in_between = |status: &StatefulSetStatus| is_empty && is_in_between(observed, status);
        let (key, pods, written_at) = (&set.metadata.key, observed.pods.len(), self.clock.now());
        let later = next.as_ref().and_then(|status| self.pace.put_off(key, pods, in_between(status), written_at));
        let written = match next.filter(|_| later.is_none()) {
            Some(status) => self.writer.write_status(observed, &status).await,
            None => Ok(()),
        };
        match (outcome.error, written) {
            (Some(error), Ok(())) => return Err(error),
            (Some(error), Err(also)) => return Err(error.context(format!("{also:#}; before that"))),
            (None, written) => written?,
        }
        let available = next_check(observed, revisions, now);
        let available = available.map(|at| {
            let delay = self.clock.now().duration_until(at.timestamp());
            (Duration::try_from(delay).unwrap_or_default(), MIN_READY)
        });
        let has_rejected = observed.pods.iter().any(|pod| pod.rejection.is_some());
        let held = observed.rejections.wait(self.clock.now()).filter(|_| has_rejected);
        let later = later.map(|delay| (delay, NEXT_STATUS));
        Ok(Requeue::earliest([available, budget, later, held.map(|delay| (delay, HELD_BACK))]))
    }

    /// The last stage, also after failures.
    async fn truncate(&self, observed: &Observed, revisions: &Revisions) -> anyhow::Result<()> {
        let truncation = plan_truncation(observed, revisions);
        if truncation.delete.is_empty() {
            return Ok(());
        }
        self.decisions.record(self.clock.now(), &observed.set.metadata.key, &truncation);
        self.writer.truncate(observed, truncation).await.context("cannot truncate the history")
    }
}
