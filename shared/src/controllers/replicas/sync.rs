//! One sync from observation to status, the same for each kind, and its wiring.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use jiff::Timestamp;

use super::ReplicaOwner;
use super::apply::{Outcome, Writer};
use super::changes::owner_changed;
use super::memory::Rejected;
use super::observe::{Caches, Informers, Observed};
use super::plan::{Plan, Reason, plan, plan_live_read, plan_template_read};
use super::status::{MIN_READY, ReplicaStatus, next_check, next_status};
use crate::api::explain::{Stage, Subject};
use crate::api::object::Key;
use crate::controllers::live_spec::complete;
use crate::controllers::pod_control::PodControl;
use crate::controllers::rejections::HELD_BACK;
use crate::controllers::status_writer::{Retry, StatusWrite, StatusWriter};
use crate::process::run::Setup;
use crate::working::context::ControllerContext;
use crate::working::decisions::{first_stage, stage};
use crate::working::queue::Queue;
use crate::working::worker::{Controller, Requeue};

/// Upstream's metrics of one kind.
pub trait ReplicaMetrics: Send + Sync + 'static {
    fn observe_deletions(&self, plan: &Plan, now: Timestamp);
}

impl ReplicaMetrics for () {
    fn observe_deletions(&self, _: &Plan, _: Timestamp) {}
}

pub struct ReplicaController<T, M> {
    caches: Arc<Caches<T>>,
    /// None if rejected pods are replaced at once, as upstream does.
    rejected: Option<Arc<Rejected>>,
    writer: Writer,
    ctx: ControllerContext,
    metrics: M,
}

impl<T: ReplicaOwner, M: ReplicaMetrics> ReplicaController<T, M> {
    /// A controller for the keys of this queue, which owners and pods fill. With `rejected_pod_backoff`, pods that their
    /// nodes reject are replaced with back-off.
    pub fn new(setup: &mut Setup, queue: &Queue, metrics: M, rejected_pod_backoff: bool) -> Self {
        let rejected = rejected_pod_backoff.then(Arc::<Rejected>::default);
        let ctx = setup.context(queue);
        let caches = follow(setup, queue, &ctx, rejected.as_ref());
        let writer = Writer {
            pods: PodControl::new(ctx.control().clone(), ctx.recorder().clone()),
            statuses: StatusWriter::new(T::RESOURCE, Retry::OnError, ctx.clone()),
            ctx: ctx.clone(),
            expectations: setup.expectations(queue),
            drops_terminating: AtomicBool::default(),
        };
        Self { caches, rejected, writer, ctx, metrics }
    }

    fn observe(&self, key: &Key, now: Timestamp) -> Option<Observed<T>> {
        let observed = self.caches.observe(&self.writer.expectations, key, now)?;
        Some(match &self.rejected {
            Some(rejected) => observed.with(rejected, now),
            None => observed,
        })
    }

    /// The first stage, if pods have ended without having run: find out whether their nodes have rejected them, and
    /// observe again. None if the owner is gone.
    async fn judge(&self, observed: Observed<T>, now: Timestamp) -> Option<Observed<T>> {
        let Some(rejected) = &self.rejected else { return Some(observed) };
        let owner = &*observed.owner;
        rejected.settle(owner, &observed.pods, now);
        let Some(read) = plan_live_read(&observed, now) else { return Some(observed) };
        let key = &owner.meta().key;
        self.ctx.decide(key, &read);
        let found = self.writer.read_rejections(&observed.ended).await;
        let now = self.ctx.now();
        if let Some(begun) = rejected.note(owner, &observed.ended, found, now) {
            self.writer.pods.tell_of_back_off(&owner.reference(), &begun);
        }
        self.observe(key, now)
    }
}

impl<T: ReplicaOwner, M: ReplicaMetrics> Controller for ReplicaController<T, M> {
    /// Upstream: `syncReplicaSet`, `pkg/controller/replicaset/replica_set.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let now = self.ctx.now();
        let observed = match self.observe(key, now) {
            Some(observed) => self.judge(observed, now).await,
            None => None,
        };
        let Some(observed) = observed else {
            self.writer.forget(key);
            return Ok(Requeue::Done);
        };
        let now = self.ctx.now();
        let observed = match plan_template_read(&observed, now) {
            None => observed,
            Some(read) => {
                self.ctx.decide(key, &read);
                let owner = complete(self.ctx.control(), &observed.owner).await?;
                Observed { owner, ..observed }
            }
        };
        let plan = plan(&observed, now);
        self.ctx.decide(key, &plan);
        if let Reason::InvalidSelector { error } = &plan.reason {
            tracing::warn!(%key, %error, "invalid selector");
            return Ok(Requeue::Done);
        }
        self.metrics.observe_deletions(&plan, now);
        let outcome = self.writer.apply(&observed, plan).await;

        let now = self.ctx.now();
        let status = next_status(&observed, &outcome, now);
        let write = match &status {
            Some(status) => self.writer.write_status(&observed, status, outcome.failure.is_some()).await?,
            None => None,
        };
        requeue(&observed, outcome, status.as_ref(), write, now)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&T::RESOURCE)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let now = self.ctx.now();
        let observed = self.observe(key, now);
        let first = |observed: &Observed<T>| match plan_live_read(observed, now) {
            Some(read) => stage(&read),
            None => first_stage(plan_template_read(observed, now), || plan(observed, now)),
        };
        observed.iter().map(first).collect()
    }
}

/// Follows owners, and pods while there is an owner; their changes fill `queue`.
fn follow<T: ReplicaOwner>(
    setup: &mut Setup,
    queue: &Queue,
    ctx: &ControllerContext,
    rejected: Option<&Arc<Rejected>>,
) -> Arc<Caches<T>> {
    let (caches, Informers { mut owners, mut pods }) = Caches::new();
    let caches = Arc::new(caches);
    if let Some(rejected) = rejected {
        let (noted, ctx) = (Arc::clone(rejected), ctx.clone());
        pods.on_change(move |change| noted.pod_changed::<T>(&change, ctx.now()));
        let forgotten = Arc::clone(rejected);
        owners.on_change(move |change| forgotten.owner_changed(&change));
    }
    let effects = setup.effects(queue);
    owners.on_change(effects.with(owner_changed::<T>));
    pods.on_change(effects.of(&caches, Caches::pod_changed));
    let need = owners.need(|_| true);
    setup.watch(owners);
    if T::ARE_COMMON {
        setup.watch_while(pods, &need);
    } else {
        setup.watch_beside(pods, &need);
    }
    caches
}

/// The error of a sync, or the time of the next one: when a pod becomes available, when a throttled status may be written,
/// when an expected event counts as lost, or when rejected pods may be replaced.
pub fn requeue<T: ReplicaOwner>(
    observed: &Observed<T>,
    outcome: Outcome,
    status: Option<&ReplicaStatus>,
    write: Option<StatusWrite>,
    now: Timestamp,
) -> anyhow::Result<Requeue> {
    let available = status
        .and_then(|status| next_check(observed.owner.spec(), &outcome, status, now))
        .map(|at| Duration::try_from(now.duration_until(at.timestamp())).unwrap_or_default());
    let Outcome { claimed, failure, error } = outcome;
    if let Some(error) = error.or(failure) {
        return Err(error);
    }
    let expired = observed.outstanding.map(|outstanding| outstanding.remaining(now));
    let available = available.map(|delay| (delay, MIN_READY));
    let is_missing = claimed.len() < observed.owner.spec().wanted();
    let held = observed.rejections.wait(now).filter(|_| is_missing).map(|delay| (delay, HELD_BACK));
    let expired = expired.map(|delay| (delay, "events that may be lost"));
    Ok(Requeue::earliest([available, write.and_then(StatusWrite::timer), expired, held]))
}
