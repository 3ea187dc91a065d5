//! Which pods are counted and which lose their finalizer, after pods were created and deleted.
//!
//! The order of writes makes counting safe: first the status names the pods (by uid, or by index), then their
//! finalizers are removed, and only then the counters rise ([`crate::status`]). After a restart in between, the status
//! says which pods were counted, and the finalizers which were not.
//!
//! Upstream: `trackJobStatusAndRemoveFinalizers`, `pkg/controller/job/job_controller.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::intern::Text;
use shared::api::object::Uid;
use shared::api::pod::Phase;
use shared::api::time::Time;
use shared::working::decisions::{self, Reasoned};

use super::counts::Counts;
use super::ending::{Cause, Ending, JobResult, is_complete};
use super::scale::PodRef;
use crate::memory::backoff::{BackoffRecord, count};
use crate::objects::PodFailureAction;
use crate::objects::pod::Pod;
use crate::objects::status::{JobCondition, JobStatus, UncountedTerminatedPods, conditions, reasons};
use crate::observe::Observed;

/// The most uncounted pods and indexes in one status.
///
/// Upstream: `MaxUncountedPods`.
pub const MAX_UNCOUNTED_PODS: usize = 500;

/// The result of the first stage, on which the second is decided.
#[derive(Debug, Default)]
pub struct Executed {
    /// The numbers of the plan; none if the Job is left alone, or a claim failed.
    pub counts: Option<Counts>,
    /// Whether and why the Job is to end.
    pub ending: Option<Ending>,
    pub created: usize,
    /// Pods that were deleted, or were gone already.
    pub deleted: BTreeSet<Uid>,
}

/// The decision of the second stage: a status, then finalizers.
#[derive(Clone, Debug, PartialEq)]
pub struct Tracking {
    /// The status to write before any finalizer is removed.
    pub status: JobStatus,
    pub is_news: bool,
    /// The pods whose finalizers to remove then.
    pub release: Vec<PodRef>,
    /// How the Job ends once all pods are counted.
    pub end: Option<End>,
    pub suspension: Option<Suspension>,
    pub backoff: BackoffRecord,
    /// How often the pod failure policy took each action.
    pub policy_actions: BTreeMap<PodFailureAction, u64>,
    /// Pods that have the finalizer, those in `release` included.
    pub tracked: BTreeSet<Uid>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// The Job ends once all of its pods have ended and are counted.
    Ends {
        /// `Complete` or `Failed`.
        condition: &'static str,
        reason: Text,
        cause: Cause,
        /// Pods that are being deleted and have not ended.
        terminating: i32,
        release: usize,
    },
    /// Pods have ended that are uncounted, or that the Job does not need any more.
    Ended {
        /// Uncounted pods that succeeded. The indexes of an Indexed Job are counted at once.
        succeeded: usize,
        failed: usize,
        release: usize,
    },
    StatusDiffers,
    /// All pods are counted, and the status is written.
    Counted,
}

/// How a Job ends.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    pub ending: Ending,
    /// Whether the uncounted pods do not fit into one status.
    pub is_put_off: bool,
    pub at: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspension {
    Suspended,
    Resumed,
}

/// Decides which pods are counted; none if the Job is left alone, or a claim failed.
pub fn plan_tracking(observed: &Observed, executed: &Executed, now: Timestamp) -> Option<Tracking> {
    let counts = executed.counts.as_ref()?;
    let mut status = counts.job.status.clone();
    status.start_time = counts.start_time;
    let active: Vec<&Pod> = counts.active().filter(|pod| !executed.deleted.contains(&pod.metadata.uid)).collect();
    let active_count = active.len().saturating_add(executed.created);
    let ending = ending(observed, counts, executed, active_count);
    let is_managed = ending.is_none() && is_managed(observed, executed);
    let suspension = if is_managed { suspend(&mut status, counts, now) } else { None };
    let deleted = executed.deleted.len();
    status.active = as_count(active_count);
    status.ready = Some(as_count(active.iter().filter(|pod| pod.readiness.is_ready()).count()));
    status.terminating = Some(as_count(counts.terminating().count().saturating_add(deleted)));

    let tracked = still_tracked(counts, executed);
    let mut counting = Counting::new(counts, &tracked, ending.as_ref(), &mut status);
    let is_put_off = counting.count_pods();
    let Counting { release, uncounted, new_indexes, policy_actions, .. } = counting;
    status.uncounted_terminated_pods = Some(uncounted);
    say_indexes(&mut status, counts, new_indexes);
    if let Some(ending) = &ending {
        announce(&mut status, ending, Time::of(now));
    }
    Some(Tracking {
        is_news: status != said_before(counts, suspension),
        status,
        release,
        end: ending.map(|ending| End { ending, is_put_off, at: Time::of(now) }),
        suspension,
        backoff: counts.backoff,
        policy_actions,
        tracked,
    })
}

/// The pods that have the finalizer. A running Job removes it before it deletes a pod.
fn still_tracked(counts: &Counts, executed: &Executed) -> BTreeSet<Uid> {
    match executed.ending {
        Some(_) => counts.tracked.clone(),
        None => counts.tracked.difference(&executed.deleted).copied().collect(),
    }
}

/// A planned end holds only if every active pod was deleted. A Job without a planned end may be complete by now.
fn ending(observed: &Observed, counts: &Counts, executed: &Executed, active: usize) -> Option<Ending> {
    match &executed.ending {
        Some(planned) => (active == 0 && observed.outstanding.is_none()).then(|| planned.clone()),
        None => is_complete(counts, active).then(|| Ending::completions_reached(counts)),
    }
}

/// Whether the first stage could create and delete pods of a running Job.
fn is_managed(observed: &Observed, executed: &Executed) -> bool {
    executed.ending.is_none() && observed.outstanding.is_none() && !observed.job.metadata.is_being_deleted()
}

fn suspend(status: &mut JobStatus, counts: &Counts, now: Timestamp) -> Option<Suspension> {
    let at = Time::of(now);
    let (condition, start_time, suspension) = if counts.job.spec.suspend {
        let condition = JobCondition::new(conditions::SUSPENDED, true, reasons::JOB_SUSPENDED, "Job suspended", at);
        // Upstream's gate MutableSchedulingDirectivesForSuspendedJobs, on since 1.36: only a Job without a start time
        // may change its scheduling.
        (condition, None, Suspension::Suspended)
    } else {
        let condition = JobCondition::new(conditions::SUSPENDED, false, reasons::JOB_RESUMED, "Job resumed", at);
        (condition, Some(at), Suspension::Resumed)
    };
    status.ensure_condition(condition).then(|| {
        status.start_time = start_time;
        suspension
    })
}

/// The former status for the comparison: a start time alone, or an empty list, is no change.
fn said_before(counts: &Counts, suspension: Option<Suspension>) -> JobStatus {
    let mut before = counts.job.status.clone();
    before.uncounted_terminated_pods.get_or_insert_default();
    if suspension.is_none() {
        before.start_time = counts.start_time;
    }
    before
}

/// Moves the uids of pods that have lost the finalizer into the counters.
///
/// Upstream: `cleanUncountedPodsWithoutFinalizers`.
pub fn count_released(status: &mut JobStatus, tracked: &BTreeSet<Uid>) {
    let Some(uncounted) = &mut status.uncounted_terminated_pods else { return };
    let take = |uids: &mut Vec<Uid>| {
        let before = uids.len();
        uids.retain(|uid| tracked.contains(uid));
        before - uids.len()
    };
    status.succeeded = status.succeeded.saturating_add(as_count(take(&mut uncounted.succeeded)));
    status.failed = status.failed.saturating_add(as_count(take(&mut uncounted.failed)));
}

fn say_indexes(status: &mut JobStatus, counts: &Counts, new: BTreeSet<i32>) {
    let Some(indexes) = &counts.indexes else {
        status.failed_indexes = None;
        return;
    };
    let succeeded = indexes.succeeded.with(new);
    status.completed_indexes = succeeded.to_string().into();
    status.succeeded = i32::try_from(succeeded.total()).unwrap_or(i32::MAX);
    status.failed_indexes = indexes.failed.as_ref().map(|failures| failures.indexes.to_string().into());
}

fn announce(status: &mut JobStatus, ending: &Ending, at: Time) {
    let type_ = ending.result.announcement();
    if !ending.is_announced && status.true_condition(type_).is_none() {
        status.conditions.push(JobCondition::new(type_, true, &ending.condition_reason, &ending.message, at));
    }
}

fn as_count(length: usize) -> i32 {
    i32::try_from(count(length)).unwrap_or(i32::MAX)
}

struct Counting<'a> {
    counts: &'a Counts,
    tracked: &'a BTreeSet<Uid>,
    ending: Option<&'a Ending>,
    /// The failed pods that the status named before this sync.
    failed_before: BTreeSet<Uid>,
    release: Vec<PodRef>,
    uncounted: UncountedTerminatedPods,
    new_indexes: BTreeSet<i32>,
    policy_actions: BTreeMap<PodFailureAction, u64>,
}

impl<'a> Counting<'a> {
    fn new(counts: &'a Counts, tracked: &'a BTreeSet<Uid>, ending: Option<&'a Ending>, status: &mut JobStatus) -> Self {
        let failed_before = status.uncounted_terminated_pods.iter().flat_map(|pods| &pods.failed).copied().collect();
        count_released(status, tracked);
        Self {
            counts,
            tracked,
            ending,
            failed_before,
            release: Vec::new(),
            uncounted: status.uncounted_terminated_pods.take().unwrap_or_default(),
            new_indexes: BTreeSet::new(),
            policy_actions: BTreeMap::new(),
        }
    }

    /// Returns whether there were too many.
    fn count_pods(&mut self) -> bool {
        let counts = self.counts;
        let mut pods: Vec<&Arc<Pod>> =
            counts.pods.iter().filter(|pod| self.tracked.contains(&pod.metadata.uid)).collect();
        if counts.indexes.is_some() {
            pods.sort_by_key(|pod| pod.index());
        }
        for pod in pods {
            if !self.may_go(pod) {
                continue;
            }
            self.release.push(PodRef::of(pod, counts));
            self.count(pod);
            let waiting = self.uncounted.succeeded.len() + self.uncounted.failed.len();
            if self.new_indexes.len() + waiting >= MAX_UNCOUNTED_PODS {
                return true;
            }
        }
        false
    }

    /// Upstream: `canRemoveFinalizer`.
    fn may_go(&self, pod: &Pod) -> bool {
        let counts = self.counts;
        let is_over = counts.job.metadata.is_being_deleted() || self.ending.is_some() || pod.phase == Phase::Succeeded;
        is_over || (counts.is_failed(pod) && !counts.is_held(pod))
    }

    fn count(&mut self, pod: &Pod) {
        let (counts, uid) = (self.counts, pod.metadata.uid);
        if pod.phase == Phase::Succeeded && !self.failed_before.contains(&uid) {
            match &counts.indexes {
                Some(indexes) => {
                    let index = pod.index().filter(|_| counts.has_valid_index(pod));
                    self.new_indexes.extend(index.filter(|index| !indexes.succeeded_before.has(*index)));
                }
                None if self.uncounted.succeeded.contains(&uid) => {}
                None => self.uncounted.succeeded.push(uid),
            }
            return;
        }
        let fails = self.ending.is_some_and(|ending| ending.result == JobResult::Failed);
        if !(counts.is_failed(pod) || fails) || self.uncounted.failed.contains(&uid) || !counts.has_valid_index(pod) {
            return;
        }
        let verdict = counts.verdict(pod);
        if let Some(action) = verdict.action {
            *self.policy_actions.entry(action).or_default() += 1;
        }
        if verdict.counts() {
            self.uncounted.failed.push(uid);
        }
    }
}

impl Tracking {
    fn waiting(&self) -> (usize, usize) {
        let uncounted = self.status.uncounted_terminated_pods.as_ref();
        uncounted.map_or((0, 0), |pods| (pods.succeeded.len(), pods.failed.len()))
    }

    pub fn why(&self) -> Reason {
        let ((succeeded, failed), release) = (self.waiting(), self.release.len());
        match &self.end {
            Some(End { ending, is_put_off: _, at: _ }) => Reason::Ends {
                condition: ending.result.end(),
                reason: ending.condition_reason.clone(),
                cause: ending.cause.clone(),
                terminating: self.status.terminating.unwrap_or(0),
                release,
            },
            None if succeeded + failed + release > 0 => Reason::Ended { succeeded, failed, release },
            None if self.is_news => Reason::StatusDiffers,
            None => Reason::Counted,
        }
    }
}

impl Reasoned for Tracking {
    fn reason(&self) -> impl decisions::Reason {
        self.why()
    }
}

impl decisions::Reason for Reason {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ends { condition, reason, cause, terminating: _, release: _ } => {
                write!(f, "{condition}: {reason}, {cause}")
            }
            Self::Ended { succeeded, failed, release } => {
                write!(f, "uncounted: {succeeded} succeeded, {failed} failed; to release: {release}")
            }
            Self::StatusDiffers => f.write_str("the status differs"),
            Self::Counted => f.write_str("everything is counted"),
        }
    }
}

/// `count 1 succeeded, 1 failed; write the status; release web-a, web-b`; `nothing to count`.
impl fmt::Display for Tracking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (succeeded, failed) = self.waiting();
        let mut steps = Vec::new();
        if succeeded + failed > 0 {
            steps.push(format!("count {succeeded} succeeded, {failed} failed"));
        }
        if self.is_news {
            steps.push("write the status".to_owned());
        }
        if !self.release.is_empty() {
            steps.push(format!("release {}", super::list(&self.release, |pod| pod.key.name().to_owned())));
        }
        steps.extend(self.end.as_ref().map(|end| end.ending.to_string()));
        if steps.is_empty() { f.write_str("nothing to count") } else { f.write_str(&steps.join("; ")) }
    }
}
