//! Wiring, and one sync from observation to the end of old revisions.

pub mod changes;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use shared::api::explain::{Stage, Subject};
use shared::api::object::{Key, Kind};
use shared::controllers::live_spec::complete;
use shared::controllers::rejections::{HELD_BACK, Rejections};
use shared::controllers::revisions::defaults::{Unknown, live_data};
use shared::controllers::status_writer::{Retry, StatusWrite, StatusWriter};
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::flags::gates::FeatureGates;
use crate::memory::Rejected;
use crate::metrics::StatefulSetMetrics;
use crate::objects::pod::Pod;
use crate::objects::{STATEFUL_SETS, StatefulSet};
use crate::observe::{Caches, Informers, Observed};
use crate::plan::ladder::{Ladder, Next};
use crate::plan::reasons::{Reason, Until, Waiting};
use crate::plan::revisions::{Revisions, Update};
use crate::plan::stuck::{BUDGET, BUDGET_RETRY};
use crate::plan::{Plan, unavailability};
use crate::status::{MIN_READY, is_in_between, next_check, next_status};

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
        stateful_sets.on_change(effects.with(changes::stateful_set_changed));
        pods.on_change(effects.of(&caches, Caches::pod_changed));
        persistent_volume_claims.on_change(effects.of(&caches, Caches::claim_changed));
        let need = stateful_sets.need(|_| true);
        let makes_claims = stateful_sets.need(|set| !set.spec.volume_claim_templates.is_empty());
        setup.watch(stateful_sets);
        setup.watch_beside(pods, &need);
        setup.watch_beside(controller_revisions, &need);
        setup.watch_beside(persistent_volume_claims, &makes_claims);

        let ctx = setup.context(&queue);
        let statuses = StatusWriter::new(STATEFUL_SETS, Retry::OnConflict, ctx.clone());
        let controller = StatefulSetController {
            caches,
            rejected,
            writer: Writer { ctx: ctx.clone(), statuses },
            gates: flags.feature_gates,
            metrics: StatefulSetMetrics::register(setup.metrics()),
            ctx,
        };
        setup.count_held(
            &queue,
            "statefulset_controller_stale_sync_skips",
            "Total number of StatefulSet syncs skipped due to a stale watch cache",
        );
        setup.work(Arc::new(controller), &queue, flags.concurrent_statefulset_syncs);
    }
}

pub struct StatefulSetController {
    caches: Arc<Caches>,
    /// None if rejected pods are replaced at once, as upstream does.
    rejected: Option<Arc<Rejected>>,
    writer: Writer,
    gates: FeatureGates,
    metrics: StatefulSetMetrics,
    ctx: ControllerContext,
}

impl Controller for StatefulSetController {
    /// Upstream: `sync`, `pkg/controller/statefulset/stateful_set.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else {
            self.ctx.forget(key, None);
            self.metrics.forget(key);
            return Ok(Requeue::Done);
        };
        let mut ladder = Ladder::new(observed);
        let (mut managed, mut truncated) = (Ok(Requeue::Done), Ok(()));
        while let Some(next) = ladder.next(self.gates, self.ctx.now())? {
            let observed = &ladder.observed;
            match next {
                Next::Refuse(plan) => {
                    self.ctx.decide(key, &plan);
                    if let Reason::InvalidSelector { error } = &plan.reason {
                        tracing::warn!(%key, %error, "invalid selector");
                    }
                }
                Next::ClaimRevisions(claim) if claim.is_settled() => {}
                Next::ClaimRevisions(claim) => {
                    self.ctx.decide(key, &claim);
                    self.writer.claim_revisions(observed, claim).await?;
                }
                Next::ClaimPods(claim) => {
                    if !claim.is_settled() {
                        self.ctx.decide(key, &claim);
                    }
                    let pods = self.writer.claim_pods(observed, claim).await?;
                    let rejections = self.judge(&observed.set, &pods);
                    ladder = ladder.claimed(pods, rejections);
                }
                Next::ReadRevision(live_read) => {
                    self.ctx.decide(key, &live_read);
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
                    if !matches!(plan.update, Update::Keep(_)) {
                        self.ctx.decide(key, &plan);
                    }
                    let revisions = self.writer.revise(observed, plan).await?;
                    ladder = ladder.revised(revisions);
                }
                Next::Manage(plan, revisions) => {
                    self.ctx.decide(key, &plan);
                    managed = self.manage(observed, &revisions, plan).await;
                }
                Next::Truncate(truncation) if truncation.delete.is_empty() => {}
                Next::Truncate(truncation) => {
                    self.ctx.decide(key, &truncation);
                    let deleted = self.writer.truncate(observed, truncation).await;
                    truncated = deleted.context("cannot truncate the history");
                }
            }
        }
        let requeue = managed?;
        truncated?;
        Ok(requeue)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&StatefulSet::RESOURCE)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let Some(observed) = self.caches.observe(key) else { return Vec::new() };
        let (now, set) = (self.ctx.now(), observed.set.metadata.uid);
        let look = |pods: &[Arc<Pod>]| {
            self.rejected.as_ref().map(|rejected| rejected.look(set, pods, now)).unwrap_or_default()
        };
        Ladder::new(observed).preview(self.gates, now, look)
    }
}

impl StatefulSetController {
    fn judge(&self, set: &StatefulSet, pods: &[Arc<Pod>]) -> Rejections {
        let Some(rejected) = &self.rejected else { return Rejections::default() };
        let (rejections, begun) = rejected.note(set.metadata.uid, pods, self.ctx.now(), self.caches.exists(set));
        if let Some(begun) = begun {
            self.writer.tell_of_back_off(set, &begun);
        }
        rejections
    }

    async fn manage(&self, observed: &Observed, revisions: &Revisions, plan: Plan) -> anyhow::Result<Requeue> {
        let (now, set) = (self.ctx.now(), &*observed.set);
        if self.gates.max_unavailable && plan.reason != Reason::BeingDeleted {
            let unavailability = unavailability(observed, now);
            self.metrics.observe(&set.metadata.key, set.spec.pod_management_policy, unavailability);
        }
        if let Reason::Waiting(Waiting { pod, until: Until::Renamed(label), numbers: _ }) = &plan.reason {
            self.writer.tell_of_long_label(set, pod, *label);
        }
        let outcome = self.writer.apply(observed, revisions, plan).await;
        let budget = outcome.refused.as_ref().map(|refused| {
            self.ctx.decide(&set.metadata.key, refused);
            (BUDGET_RETRY, BUDGET)
        });
        let next = next_status(observed, revisions, &outcome, now);
        let written = match &next {
            Some(status) => {
                let can_wait = outcome.error.is_none() && is_in_between(observed, status);
                self.writer.write_status(observed, status, can_wait).await.map(Some)
            }
            None => Ok(None),
        };
        let later = match (outcome.error, written) {
            (Some(error), Ok(_)) => return Err(error),
            (Some(error), Err(also)) => return Err(error.context(format!("{also:#}; before that"))),
            (None, written) => written?.and_then(StatusWrite::timer),
        };
        let available = next_check(observed, revisions, now);
        let available = available.map(|at| {
            let delay = self.ctx.now().duration_until(at.timestamp());
            (Duration::try_from(delay).unwrap_or_default(), MIN_READY)
        });
        let has_rejected = observed.pods.iter().any(|pod| pod.rejection.is_some());
        let held = observed.rejections.wait(self.ctx.now()).filter(|_| has_rejected);
        Ok(Requeue::earliest([available, budget, later, held.map(|delay| (delay, HELD_BACK))]))
    }
}
