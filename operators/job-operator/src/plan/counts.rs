//! The counts of a Job's claimed pods.
//!
//! A pod counts if it has the tracking finalizer and this process has not removed it.
//! Upstream: the first half of `syncJob`, `pkg/controller/job/job_controller.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use shared::api::object::Uid;
use shared::api::owner::Claim;
use shared::api::pod::{Phase, PodView};
use shared::api::time::Time;

use super::indexed::OrderedIntervals;
use super::pod_failure_policy::{Verdict, match_pod_failure_policy};
use crate::memory::backoff::{BackoffRecord, count};
use crate::objects::pod::Pod;
use crate::objects::{Job, PodFailureAction};
use crate::observe::Observed;

/// A Job and its pods, counted.
///
/// Upstream: `syncJobCtx`, `pkg/controller/job/job_controller.go`.
#[derive(Debug, PartialEq)]
pub struct Counts {
    pub job: Arc<Job>,
    /// Its pods by key, with those to be adopted.
    pub pods: Vec<Arc<Pod>>,
    pub tracked: BTreeSet<Uid>,
    /// Succeeded pods, counted or not; for an Indexed Job, indexes.
    pub succeeded: i64,
    /// Failed pods, counted or not.
    pub failed: i64,
    /// When the Job started: now, if it was not started before and is not suspended.
    pub start_time: Option<Time>,
    pub backoff: BackoffRecord,
    /// None unless the Job is Indexed.
    pub indexes: Option<Indexes>,
}

#[derive(Debug, PartialEq)]
pub struct Indexes {
    pub completions: i32,
    pub succeeded_before: OrderedIntervals,
    pub succeeded: OrderedIntervals,
    /// None without `backoffLimitPerIndex`.
    pub failed: Option<Failures>,
}

/// The failures of each index, where `backoffLimitPerIndex` limits them.
#[derive(Debug, PartialEq)]
pub struct Failures {
    /// The indexes that are not retried.
    pub indexes: OrderedIntervals,
    /// For each index that waits for a new pod, the failed pod that has its failure count. It is counted when the new
    /// pod exists.
    pub held: BTreeMap<i32, Arc<Pod>>,
}

impl Counts {
    pub fn new(observed: &Observed, claim: &Claim<Pod>, now: Timestamp) -> Self {
        let job = Arc::clone(&observed.job);
        let mut pods: Vec<Arc<Pod>> = claim.owned.iter().chain(&claim.adopt).cloned().collect();
        pods.sort_unstable_by(|a, b| a.metadata.key.cmp(&b.metadata.key));
        let adopted: BTreeSet<Uid> = claim.adopt.iter().map(|pod| pod.metadata.uid).collect();
        let tracked = pods.iter().filter(|pod| pod.has_tracking_finalizer() || adopted.contains(&pod.metadata.uid));
        let tracked = tracked.map(|pod| pod.metadata.uid).filter(|uid| !observed.released.contains(uid)).collect();
        let started = (!job.spec.suspend).then(|| Time::of(now));
        let mut counts = Self {
            start_time: job.status.start_time.or(started),
            pods,
            tracked,
            succeeded: 0,
            failed: 0,
            backoff: observed.backoff,
            indexes: None,
            job,
        };
        counts.count_ended();
        counts.indexes = counts.count_indexes();
        if let Some(indexes) = &counts.indexes {
            counts.succeeded = indexes.succeeded.total();
        }
        counts
    }

    /// Upstream: `getNewFinishedPods`.
    fn count_ended(&mut self) {
        let uncounted = self.job.status.uncounted_terminated_pods.clone().unwrap_or_default();
        let known: BTreeSet<Uid> = uncounted.succeeded.iter().chain(&uncounted.failed).copied().collect();
        let new = || self.countable().filter(|pod| !known.contains(&pod.metadata.uid));
        let succeeded: Vec<&Pod> = new().filter(|pod| pod.phase == Phase::Succeeded).collect();
        let failed: Vec<&Pod> = new().filter(|pod| self.is_failed(pod)).collect();
        let finishes = |pods: &[&Pod]| pods.iter().map(|pod| pod.finish).collect::<Vec<_>>();
        let backoff = self.backoff.with(&finishes(&succeeded), &finishes(&failed));
        let counted = failed.iter().filter(|pod| self.verdict(pod).counts()).count();
        let (succeeded, failed) = (succeeded.len() + uncounted.succeeded.len(), counted + uncounted.failed.len());
        self.backoff = backoff;
        self.succeeded = i64::from(self.job.status.succeeded).saturating_add(count(succeeded));
        self.failed = i64::from(self.job.status.failed).saturating_add(count(failed));
    }

    /// Upstream: `calculateSucceededIndexes` and `calculateFailedIndexes`, `indexed_job_utils.go`.
    fn count_indexes(&self) -> Option<Indexes> {
        let completions = self.completions_by_index()?;
        let status = &self.job.status;
        let succeeded_before = OrderedIntervals::parse(&status.completed_indexes, completions);
        let new = self.countable().filter(|pod| pod.phase == Phase::Succeeded);
        let succeeded = succeeded_before.with(new.filter_map(Pod::index));
        let failed = self.job.spec.backoff_limit_per_index.map(|limit| {
            let before = OrderedIntervals::parse(status.failed_indexes.as_deref().unwrap_or_default(), completions);
            let new = self.countable().filter(|pod| self.fails_index(pod, limit));
            let indexes = before.with(new.filter_map(Pod::index));
            let held = self.held(&succeeded, &indexes);
            Failures { indexes, held }
        });
        Some(Indexes { completions, succeeded_before, succeeded, failed })
    }

    /// Upstream: `isIndexFailed`, `indexed_job_utils.go`.
    fn fails_index(&self, pod: &Pod, limit: i32) -> bool {
        let verdict = self.verdict(pod);
        self.is_failed(pod)
            && (verdict.action == Some(PodFailureAction::FailIndex)
                || (verdict.counts() && pod.metadata.annotations.failures >= limit))
    }

    /// Upstream: `getPodsWithDelayedDeletionPerIndex`, `indexed_job_utils.go`.
    fn held(&self, succeeded: &OrderedIntervals, failed: &OrderedIntervals) -> BTreeMap<i32, Arc<Pod>> {
        let active: BTreeSet<i32> = self.active().filter_map(Pod::index).collect();
        let mut held: BTreeMap<i32, Arc<Pod>> = BTreeMap::new();
        let candidates = self.pods.iter().filter(|pod| self.is_countable(pod) && self.is_failed(pod));
        for pod in candidates {
            let Some(index) = pod.index() else { continue };
            if succeeded.has(index) || failed.has(index) || active.contains(&index) {
                continue;
            }
            let rank = |pod: &Pod| (failures_before(pod), pod.finish);
            if held.get(&index).is_none_or(|known| rank(known) <= rank(pod)) {
                held.insert(index, Arc::clone(pod));
            }
        }
        held
    }

    /// The number of indexes; none unless the Job is Indexed.
    pub fn completions_by_index(&self) -> Option<i32> {
        self.job.is_indexed().then(|| self.job.spec.completions.unwrap_or(0))
    }

    pub fn active(&self) -> impl Iterator<Item = &Pod> {
        self.pods.iter().map(|pod| &**pod).filter(|pod| pod.is_active())
    }

    /// Pods that are being deleted and have not ended.
    pub fn terminating(&self) -> impl Iterator<Item = &Pod> {
        self.pods.iter().map(|pod| &**pod).filter(|pod| pod.is_terminating())
    }

    /// Upstream: `getValidPodsWithFilter`.
    fn countable(&self) -> impl Iterator<Item = &Pod> {
        self.pods.iter().map(|pod| &**pod).filter(|pod| self.is_countable(pod))
    }

    fn is_countable(&self, pod: &Pod) -> bool {
        self.tracked.contains(&pod.metadata.uid) && self.has_valid_index(pod)
    }

    /// Whether the pod has a valid index, if it needs one.
    pub fn has_valid_index(&self, pod: &Pod) -> bool {
        self.completions_by_index().is_none_or(|completions| pod.index().is_some_and(|index| index < completions))
    }

    /// Whether a pod has failed, or counts as failed because it is being deleted.
    ///
    /// Upstream: `isPodFailed`.
    pub fn is_failed(&self, pod: &Pod) -> bool {
        match pod.phase {
            Phase::Failed => true,
            Phase::Succeeded => false,
            Phase::Pending | Phase::Running | Phase::Unknown | Phase::Other => {
                pod.metadata.is_being_deleted() && !self.job.replaces_failed_pods_only()
            }
        }
    }

    pub fn verdict(&self, pod: &Pod) -> Verdict {
        match_pod_failure_policy(self.job.spec.pod_failure_policy.as_ref(), pod)
    }

    /// Whether the pod has the failure count of its index, and must stay until a new pod has it.
    pub fn is_held(&self, pod: &Pod) -> bool {
        let failures = self.indexes.as_ref().and_then(|indexes| indexes.failed.as_ref());
        let held = failures.and_then(|failures| failures.held.get(&pod.index()?));
        held.is_some_and(|held| held.metadata.uid == pod.metadata.uid)
    }
}

/// The earlier failures of the pod's index, with ignored ones.
///
/// Upstream: `getIndexAbsoluteFailureCount`, `backoff_utils.go`.
pub fn failures_before(pod: &Pod) -> i64 {
    let annotations = &pod.metadata.annotations;
    i64::from(annotations.failures) + i64::from(annotations.ignored_failures)
}
