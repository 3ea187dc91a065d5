//! Wiring, and one sync of a DaemonSet from observation to status.
//!
//! Left out: which change wakes which key, which is `changes`', and nodes: the sync in `nodes` finds the DaemonSets
//! that a node concerns.

pub mod changes;
mod nodes;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use jiff::Timestamp;
use shared::api::explain::{Stage, Subject};
use shared::api::object::{Key, Kind};
use shared::api::resource::Resource;
use shared::controllers::pace::{NEXT_STATUS, Pace};
use shared::controllers::pod_control::PodControl;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, stage};
use shared::runtime::queue::Backoff;
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer};
use crate::facts::{self, FACTS};
use crate::flags::Flags;
use crate::metrics::DaemonSetMetrics;
use crate::objects::{DaemonSet, DaemonSetStatus};
use crate::observe::failures::Failures;
use crate::observe::{Caches, Informers, Observed};
use crate::plan::claim::{plan_pod_claim, plan_revision_claim};
use crate::plan::reason::Reason;
use crate::plan::revisions::{Revisions, plan_revisions, plan_truncation};
use crate::plan::{Plan, plan, refusal};
use crate::status::{MIN_READY, is_in_between, next_check, next_status};
use nodes::NodeController;

/// The purpose of the timer while a failed pod stays.
const FAILED_POD: &str = "the deletion of a failed pod";
/// The purpose of the timer while something is expected.
const LOST_EVENTS: &str = "events that may be lost";

/// The operator as a process.
pub struct DaemonSetOperator;

impl Operator for DaemonSetOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let sets_queue = setup.queue(facts::SETS.name, Backoff::default());
        let nodes_queue = setup.queue(facts::NODES.name, Backoff::default());
        let (caches, informers) = Caches::new();
        let caches = Arc::new(caches);
        let Informers { mut daemon_sets, mut nodes, mut pods, mut controller_revisions } = informers;
        let effects = setup.effects(&sets_queue);
        daemon_sets.on_change(effects.of(&caches, |_, change| Caches::daemon_set_changed(change)));
        pods.on_change(effects.of(&caches, Caches::pod_changed));
        controller_revisions.on_change(effects.of(&caches, Caches::revision_changed));
        nodes.on_change(effects.of(&caches, Caches::node_lost));
        nodes.on_change(setup.effects(&nodes_queue).of(&caches, |_, change| Caches::node_changed(change)));
        let need = daemon_sets.need(|_| true);
        setup.watch(daemon_sets);
        setup.watch_while(nodes, &need);
        setup.watch_beside(pods, &need);
        setup.watch_beside(controller_revisions, &need);

        let failures = Arc::new(Failures::default());
        let forgetting = Arc::clone(&failures);
        setup.on_restore(move || forgetting.start_over());
        let of_nodes = NodeController {
            caches: Arc::clone(&caches),
            sets: sets_queue.clone(),
            clock: setup.clock(),
            decisions: setup.decisions(&nodes_queue),
        };
        let control = setup.control(&sets_queue);
        let writer = Writer {
            pods: PodControl::new(control.clone(), setup.recorder()),
            control,
            recorder: setup.recorder(),
            expectations: setup.expectations(&sets_queue),
            failures,
            clock: setup.clock(),
        };
        let of_sets = DaemonSetController {
            caches,
            writer,
            pace: Pace::for_people(),
            metrics: DaemonSetMetrics::register(setup.metrics()),
            clock: setup.clock(),
            decisions: setup.decisions(&sets_queue),
        };
        setup.work(Arc::new(of_sets), &sets_queue, flags.concurrent_daemonset_syncs);
        setup.work(Arc::new(of_nodes), &nodes_queue, flags.concurrent_daemonset_syncs);
    }
}

/// Syncs DaemonSets.
pub struct DaemonSetController {
    caches: Arc<Caches>,
    writer: Writer,
    pace: Pace,
    metrics: DaemonSetMetrics,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for DaemonSetController {
    /// Upstream: `syncDaemonSet`, `pkg/controller/daemon/daemon_controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let now = self.clock.now();
        let Some(observed) = self.observe(key, now) else {
            self.writer.forget(key);
            return Ok(Requeue::Done);
        };
        if let Some(reason) = refusal(&observed.set) {
            self.refuse(&observed, reason);
            return Ok(Requeue::Done);
        }
        let observed = self.claim(observed).await?;
        let (observed, revisions) = self.revise(observed).await?;
        self.manage(&observed, &revisions).await
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&DaemonSet::RESOURCE)
    }

    fn status_of(&self) -> Option<Resource> {
        Some(DaemonSet::RESOURCE)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let now = self.clock.now();
        let Some(observed) = self.observe(key, now) else { return Vec::new() };
        if let Some(reason) = refusal(&observed.set) {
            return vec![stage(&Plan::nothing(reason))];
        }
        let (revisions, pods) = (plan_revision_claim(&observed), plan_pod_claim(&observed));
        if !revisions.is_settled() {
            return vec![stage(&revisions)];
        }
        if !pods.is_settled() {
            return vec![stage(&pods)];
        }
        let observed = observed.claimed(pods.owned, revisions.owned);
        let Ok(revisions) = plan_revisions(&observed) else { return Vec::new() };
        if !revisions.is_settled() {
            return vec![stage(&revisions)];
        }
        let revisions = revisions.revisions(&observed);
        let plan = plan(&observed, &revisions.hash, now);
        let truncation = plan_truncation(&observed, &revisions);
        let mut stages = vec![stage(&plan)];
        if plan.is_empty() && observed.outstanding.is_none() && !truncation.delete.is_empty() {
            stages.push(stage(&truncation));
        }
        stages
    }

    fn held(&self, resource: &str) {
        self.metrics.observe_held(resource);
    }
}

impl DaemonSetController {
    fn observe(&self, key: &Key, now: Timestamp) -> Option<Observed> {
        self.caches.observe(&self.writer.expectations, &self.writer.failures, key, now)
    }

    /// Notes that nothing is done about a DaemonSet. An edit brings it back; until then there is nothing to say of it.
    fn refuse(&self, observed: &Observed, reason: Reason) {
        let key = &observed.set.metadata.key;
        match &reason {
            Reason::SelectsEverything => self.writer.refuse_everything(&observed.set),
            Reason::InvalidSelector { error } => tracing::warn!(%key, %error, "invalid selector"),
            Reason::BeingDeleted | Reason::Waiting(_) | Reason::InvalidStrategy { .. } | Reason::Nodes(_) => {}
        }
        self.decisions.record(self.clock.now(), key, &Plan::nothing(reason));
    }

    /// The first stage, for the next ones count what it has claimed.
    async fn claim(&self, observed: Observed) -> anyhow::Result<Observed> {
        let (now, key) = (self.clock.now(), &observed.set.metadata.key);
        let revisions = plan_revision_claim(&observed);
        if !revisions.is_settled() {
            self.decisions.record(now, key, &revisions);
        }
        let revisions = self.writer.claim_revisions(&observed, revisions).await?;
        let pods = plan_pod_claim(&observed);
        if !pods.is_settled() {
            self.decisions.record(now, key, &pods);
        }
        let pods = self.writer.claim_pods(&observed, pods).await?;
        Ok(observed.claimed(pods, revisions))
    }

    /// The second stage, for pods carry the hash of a revision that is there.
    async fn revise(&self, observed: Observed) -> anyhow::Result<(Observed, Revisions)> {
        let plan = plan_revisions(&observed).context("failed to construct revisions of DaemonSet")?;
        if !plan.is_settled() {
            self.decisions.record(self.clock.now(), &observed.set.metadata.key, &plan);
        }
        let relabels = !plan.relabel.is_empty();
        let revised = self.writer.revise(&observed, plan).await;
        let revisions = revised.context("failed to construct revisions of DaemonSet")?;
        let observed = if relabels { observed.relabelled(&revisions.hash) } else { observed };
        Ok((observed, revisions))
    }

    /// The third stage: pods, old revisions, and the status.
    async fn manage(&self, observed: &Observed, revisions: &Revisions) -> anyhow::Result<Requeue> {
        let (now, key) = (self.clock.now(), &observed.set.metadata.key);
        let plan = plan(observed, &revisions.hash, now);
        self.decisions.record(now, key, &plan);
        if let Reason::InvalidStrategy { error } = &plan.reason {
            tracing::warn!(%key, error, "invalid update strategy");
        }
        let (look_again, is_empty) = (plan.look_again, plan.is_empty());
        let Outcome { error } = self.writer.apply(observed, revisions, plan).await;
        let done = match error {
            None if observed.outstanding.is_none() => self.truncate(observed, revisions).await,
            None => Ok(()),
            Some(error) => Err(error),
        };
        let now = self.clock.now();
        let next = next_status(observed, &revisions.hash, now);
        let in_between = |status: &DaemonSetStatus| is_empty && is_in_between(observed, status);
        let pods = observed.pods.len();
        let later = next.as_ref().and_then(|status| self.pace.put_off(key, pods, in_between(status), now));
        let written = match next.filter(|_| later.is_none()) {
            Some(status) => self.writer.write_status(observed, &status).await,
            None => Ok(()),
        };
        done?;
        written?;
        let until = |at: Timestamp| Duration::try_from(now.duration_until(at)).unwrap_or_default();
        let available = next_check(observed, &revisions.hash, now);
        Ok(Requeue::earliest([
            available.map(|at| (until(at.timestamp()), MIN_READY)),
            look_again.map(|at| (until(at), FAILED_POD)),
            observed.outstanding.map(|outstanding| (outstanding.remaining(now), LOST_EVENTS)),
            later.map(|delay| (delay, NEXT_STATUS)),
        ]))
    }

    /// The last stage.
    async fn truncate(&self, observed: &Observed, revisions: &Revisions) -> anyhow::Result<()> {
        let truncation = plan_truncation(observed, revisions);
        if truncation.delete.is_empty() {
            return Ok(());
        }
        self.decisions.record(self.clock.now(), &observed.set.metadata.key, &truncation);
        let truncated = self.writer.truncate(observed, truncation).await;
        truncated.context("failed to clean up revisions of DaemonSet")
    }
}
