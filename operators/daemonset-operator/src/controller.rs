//! Wiring, and one sync of a DaemonSet from observation to status. The sync in `nodes` finds the DaemonSets that a node
//! concerns.

pub mod changes;
mod nodes;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use jiff::Timestamp;
use shared::api::explain::{Stage, Subject};
use shared::api::intern::Text;
use shared::api::object::{Key, Kind};
use shared::controllers::live_spec::complete;
use shared::controllers::pod_control::PodControl;
use shared::controllers::revisions::defaults::{Unknown, live_data};
use shared::controllers::status_writer::{Retry, StatusWrite, StatusWriter};
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::decisions::Reasoned;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{self, FACTS};
use crate::flags::Flags;
use crate::memory::Failures;
use crate::objects::{DAEMON_SETS, DaemonSet};
use crate::observe::{Caches, Informers, Observed};
use crate::plan::Plan;
use crate::plan::ladder::{Ladder, Next};
use crate::plan::reasons::Reason;
use crate::status::{MIN_READY, is_in_between, next_check, next_status};
use nodes::NodeController;

/// The purpose of the timer while a failed pod stays.
const FAILED_POD: &str = "the deletion of a failed pod";
/// The purpose of the timer while something is expected.
const LOST_EVENTS: &str = "events that may be lost";
const NO_REVISION: &str = "failed to construct revisions of DaemonSet";

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
        daemon_sets.on_change(effects.with(changes::daemon_set_changed));
        pods.on_change(effects.of(&caches, Caches::pod_changed));
        controller_revisions.on_change(effects.of(&caches, Caches::revision_changed));
        nodes.on_change(effects.of(&caches, Caches::node_lost));
        nodes.on_change(setup.effects(&nodes_queue).with(changes::node_changed));
        let need = daemon_sets.need(|_| true);
        setup.watch(daemon_sets);
        setup.watch_while(nodes, &need);
        setup.watch_beside(pods, &need);
        setup.watch_beside(controller_revisions, &need);

        let failures = Arc::new(Failures::default());
        let forgetting = Arc::clone(&failures);
        setup.on_restore(move || forgetting.start_over());
        let of_nodes =
            NodeController { caches: Arc::clone(&caches), sets: sets_queue.clone(), ctx: setup.context(&nodes_queue) };
        let ctx = setup.context(&sets_queue);
        let writer = Writer {
            pods: PodControl::new(ctx.control().clone(), ctx.recorder().clone()),
            statuses: StatusWriter::new(DAEMON_SETS, Retry::OnError, ctx.clone()),
            ctx: ctx.clone(),
            expectations: setup.expectations(&sets_queue),
            failures,
        };
        let of_sets = DaemonSetController { caches, writer, ctx };
        setup.count_held(
            &sets_queue,
            "daemonset_controller_stale_sync_skips",
            "Total number of DaemonSet syncs skipped due to a stale watch cache",
        );
        setup.work(Arc::new(of_sets), &sets_queue, flags.concurrent_daemonset_syncs);
        setup.work(Arc::new(of_nodes), &nodes_queue, flags.concurrent_daemonset_syncs);
    }
}

pub struct DaemonSetController {
    caches: Arc<Caches>,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for DaemonSetController {
    /// Upstream: `syncDaemonSet`, `pkg/controller/daemon/daemon_controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let now = self.ctx.now();
        let Some(observed) = self.observe(key, now) else {
            self.writer.forget(key);
            return Ok(Requeue::Done);
        };
        let mut ladder = Ladder::new(observed);
        let (mut hash, mut look_again, mut done) = (Text::default(), None, Ok(()));
        while let Some(next) = ladder.next(self.ctx.now()).context(NO_REVISION)? {
            let observed = &ladder.observed;
            match next {
                Next::Refuse(plan) => {
                    self.refuse(observed, &plan);
                    return Ok(Requeue::Done);
                }
                Next::ClaimRevisions(claim) => {
                    self.decide_unless(claim.is_settled(), key, &claim);
                    let revisions = self.writer.claim_revisions(observed, claim).await?;
                    ladder = ladder.revisions_claimed(revisions);
                }
                Next::ClaimPods(claim) => {
                    self.decide_unless(claim.is_settled(), key, &claim);
                    let pods = self.writer.claim_pods(observed, claim).await?;
                    ladder = ladder.pods_claimed(pods);
                }
                Next::ReadRevision(live_read) => {
                    self.decide_unless(false, key, &live_read);
                    let Unknown::Defaults { revision } = &live_read.reason;
                    let revision = Key::new(key.namespace(), revision);
                    let data = live_data(self.ctx.control(), &revision).await;
                    ladder = ladder.read(data.with_context(|| format!("cannot read revision {revision}"))?);
                }
                Next::ReadTemplate(live_read) => {
                    self.ctx.decide(key, &live_read);
                    let set = complete(self.ctx.control(), &observed.set).await?;
                    ladder = ladder.completed(set);
                }
                Next::Revise(plan) => {
                    self.decide_unless(plan.is_settled(), key, &plan);
                    let relabels = !plan.relabel.is_empty();
                    let revisions = self.writer.revise(observed, plan).await.context(NO_REVISION)?;
                    ladder = ladder.revised(revisions, relabels);
                }
                Next::Manage(plan, revisions) => {
                    self.decide_unless(false, key, &plan);
                    if let Reason::InvalidStrategy { error } = &plan.reason {
                        tracing::warn!(%key, error, "invalid update strategy");
                    }
                    (hash, look_again) = (revisions.hash.clone(), plan.look_again);
                    done = self.writer.apply(observed, &revisions, plan).await;
                    if done.is_err() {
                        break;
                    }
                }
                Next::Truncate(truncation) => {
                    self.decide_unless(truncation.delete.is_empty(), key, &truncation);
                    let deleted = self.writer.truncate(observed, truncation).await;
                    done = deleted.context("failed to clean up revisions of DaemonSet");
                }
            }
        }
        self.conclude(&ladder.observed, &hash, look_again, done).await
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&DaemonSet::RESOURCE)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let now = self.ctx.now();
        self.observe(key, now).map(|observed| Ladder::new(observed).preview(now)).unwrap_or_default()
    }
}

impl DaemonSetController {
    fn observe(&self, key: &Key, now: Timestamp) -> Option<Observed> {
        self.caches.observe(&self.writer.expectations, &self.writer.failures, key, now)
    }

    fn decide_unless(&self, is_settled: bool, key: &Key, plan: &impl Reasoned) {
        if !is_settled {
            self.ctx.decide(key, plan);
        }
    }

    /// Report that nothing is done about a DaemonSet. Only an edit changes that.
    fn refuse(&self, observed: &Observed, plan: &Plan) {
        let key = &observed.set.metadata.key;
        match &plan.reason {
            Reason::SelectsEverything => self.writer.refuse_everything(&observed.set),
            Reason::InvalidSelector { error } => tracing::warn!(%key, %error, "invalid selector"),
            Reason::BeingDeleted | Reason::Waiting(_) | Reason::InvalidStrategy { .. } | Reason::Nodes(_) => {}
        }
        self.decide_unless(false, key, plan);
    }

    async fn conclude(
        &self,
        observed: &Observed,
        hash: &str,
        look_again: Option<Duration>,
        done: anyhow::Result<()>,
    ) -> anyhow::Result<Requeue> {
        let now = self.ctx.now();
        let next = next_status(observed, hash, now);
        let written = match &next {
            Some(status) => {
                let can_wait = done.is_ok() && is_in_between(observed, status);
                self.writer.write_status(observed, status, can_wait).await.map(Some)
            }
            None => Ok(None),
        };
        done?;
        let later = written?.and_then(StatusWrite::timer);
        let available = next_check(observed, hash, now)
            .map(|at| Duration::try_from(now.duration_until(at.timestamp())).unwrap_or_default());
        Ok(Requeue::earliest([
            available.map(|delay| (delay, MIN_READY)),
            look_again.map(|delay| (delay, FAILED_POD)),
            observed.outstanding.map(|outstanding| (outstanding.remaining(now), LOST_EVENTS)),
            later,
        ]))
    }
}
