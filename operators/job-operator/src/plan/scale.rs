//! Which pods of a running Job are created or deleted.
//!
//! Upstream: `manageJob`, `pkg/controller/job/job_controller.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::object::{Key, Uid};
use shared::api::pod::ranking::{Rule, Scale, Standing, first_to_go};

use super::Pods;
use super::counts::{Counts, Failures, Indexes, failures_before};
use super::indexed::{OrderedIntervals, first_pending_indexes};
use super::new_pod::{IndexFailures, NewPod, NewPods};
use super::reasons::{Backoff, Numbers, Reason};
use crate::memory::backoff::BackoffRecord;
use crate::objects::pod::Pod;

/// The most pods that one sync creates or deletes.
///
/// Upstream: `MaxPodCreateDeletePerSync`.
pub const MAX_POD_CREATE_DELETE_PER_SYNC: usize = 500;

/// The shortest delay before a failed pod is replaced.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodRef {
    pub key: Key,
    pub uid: Uid,
    pub is_tracked: bool,
}

impl PodRef {
    /// A pod of this Job. The adoption adds the finalizer.
    pub fn of(pod: &Pod, counts: &Counts) -> Self {
        let (key, uid) = (pod.metadata.key.clone(), pod.metadata.uid);
        Self { key, uid, is_tracked: pod.has_tracking_finalizer() || counts.tracked.contains(&uid) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surplus {
    pub pod: PodRef,
    pub why: Why,
}

/// Why a pod of a running Job is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Why {
    Suspended,
    NoIndex,
    OutOfRange {
        index: i32,
        completions: i32,
    },
    /// Another pod has the same index.
    SameIndex {
        index: i32,
        rule: Rule,
    },
    /// The Job has too many pods.
    TooMany {
        rule: Rule,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Suspended => f.write_str("suspended"),
            Self::NoIndex => f.write_str("no index"),
            Self::OutOfRange { index: _, completions: _ } => f.write_str("index out of range"),
            Self::SameIndex { index: _, rule } => write!(f, "same index, {rule}"),
            Self::TooMany { rule } => write!(f, "{rule}"),
        }
    }
}

pub struct Scaled {
    pub pods: Pods,
    pub reason: Reason,
    /// How long to wait before pods can be created.
    pub wait: Option<Duration>,
}

impl Scaled {
    pub fn leave(reason: Reason) -> Self {
        Self { pods: Pods::Leave, reason, wait: None }
    }
}

pub fn scale(counts: &Counts, now: Timestamp) -> Scaled {
    let active: Vec<&Pod> = counts.active().collect();
    if counts.job.spec.suspend {
        let all = active.iter().map(|pod| Surplus { pod: PodRef::of(pod, counts), why: Why::Suspended });
        let reason = Reason::Suspended { active: active.len() };
        return Scaled { pods: Pods::Delete(all.collect()), reason, wait: None };
    }
    let wanted = wanted(counts, active.len());
    let numbers = Numbers::of(counts, wanted);
    let mut surplus = surplus(counts, &active, active.len().saturating_sub(wanted));
    if !surplus.is_empty() {
        surplus.truncate(MAX_POD_CREATE_DELETE_PER_SYNC);
        return Scaled { pods: Pods::Delete(surplus), reason: Reason::Parallelism(numbers), wait: None };
    }
    let awaited = if counts.job.replaces_failed_pods_only() { numbers.terminating } else { 0 };
    let missing = wanted.saturating_sub(active.len() + awaited);
    if missing == 0 {
        let reason = if active.len() < wanted { Reason::WaitingForTerminating } else { Reason::Parallelism };
        return Scaled::leave(reason(numbers));
    }
    match new_pods(counts, missing.min(MAX_POD_CREATE_DELETE_PER_SYNC), now) {
        Ok(new) if new.is_empty() => Scaled::leave(Reason::NoIndexLeft(numbers)),
        Ok(new) => match NewPods::of(&counts.job) {
            Ok(_) => Scaled { pods: Pods::Create(new), reason: Reason::Parallelism(numbers), wait: None },
            Err(error) => Scaled::leave(Reason::InvalidTemplate { error }),
        },
        Err(early) => early.scaled(now),
    }
}

/// The decision to wait before pods are created.
struct TooEarly {
    wait: Duration,
    failures: i64,
    index: Option<i32>,
}

impl TooEarly {
    fn scaled(self, now: Timestamp) -> Scaled {
        let Self { wait, failures, index } = self;
        let wait = wait.max(SHORTEST_WAIT);
        let next = now.saturating_add(wait).unwrap_or(Timestamp::MAX);
        let reason = Reason::Backoff(Backoff { failures, index, wait_seconds: wait.as_secs(), next });
        Scaled { wait: Some(wait), ..Scaled::leave(reason) }
    }
}

fn wanted(counts: &Counts, active: usize) -> usize {
    let parallelism = i64::from(counts.job.spec.parallelism);
    let wanted = match counts.job.spec.completions {
        // The first success of a work queue means that no work is left.
        None if counts.succeeded > 0 => return active,
        None => parallelism,
        Some(completions) => i64::from(completions).saturating_sub(counts.succeeded).min(parallelism),
    };
    usize::try_from(wanted).unwrap_or(0)
}

/// Upstream: `activePodsForRemoval`.
fn surplus(counts: &Counts, active: &[&Pod], at_least: usize) -> Vec<Surplus> {
    let mut gone: Vec<Surplus> = Vec::new();
    let mut stay: Vec<&Pod> = Vec::new();
    match counts.completions_by_index() {
        Some(completions) => {
            let mut by_index: BTreeMap<Option<i32>, Vec<&Pod>> = BTreeMap::new();
            for pod in active {
                by_index.entry(pod.index()).or_default().push(pod);
            }
            for (index, pods) in by_index {
                let index = match index {
                    None => Err(Why::NoIndex),
                    Some(index) if index >= completions => Err(Why::OutOfRange { index, completions }),
                    Some(index) => Ok(index),
                };
                let index = match index {
                    Ok(index) => index,
                    Err(why) => {
                        gone.extend(pods.iter().map(|pod| Surplus { pod: PodRef::of(pod, counts), why }));
                        continue;
                    }
                };
                let (go, keep) = ranked(counts, &pods, pods.len().saturating_sub(1));
                gone.extend(go.into_iter().map(|(pod, rule)| Surplus { pod, why: Why::SameIndex { index, rule } }));
                stay.extend(keep);
            }
        }
        None => stay.extend_from_slice(active),
    }
    let (go, _) = ranked(counts, &stay, at_least.saturating_sub(gone.len()));
    gone.extend(go.into_iter().map(|(pod, rule)| Surplus { pod, why: Why::TooMany { rule } }));
    gone
}

/// The first `count` to delete, and the others.
fn ranked<'a>(counts: &Counts, pods: &[&'a Pod], count: usize) -> (Vec<(PodRef, Rule)>, Vec<&'a Pod>) {
    let standings: Vec<Standing> = pods.iter().map(|pod| pod.standing()).collect();
    let chosen = first_to_go(&standings, count, Scale::Exact);
    let positions: BTreeSet<usize> = chosen.iter().map(|(at, _)| *at).collect();
    let stay = pods.iter().enumerate().filter(|(at, _)| !positions.contains(at)).map(|(_, pod)| *pod).collect();
    (chosen.into_iter().map(|(at, rule)| (PodRef::of(pods[at], counts), rule)).collect(), stay)
}

/// The pods to create, or how long to wait before.
fn new_pods(counts: &Counts, missing: usize, now: Timestamp) -> Result<Vec<NewPod>, TooEarly> {
    let failures = counts.indexes.as_ref().and_then(|indexes| indexes.failed.as_ref());
    if let Some(wait) = counts.backoff.remaining(now).filter(|_| failures.is_none()) {
        return Err(TooEarly { wait, failures: counts.backoff.failures, index: None });
    }
    let Some(indexes) = &counts.indexes else { return Ok(vec![NewPod::default(); missing]) };
    let pending = pending(counts, indexes, missing);
    let Some(failures) = failures else {
        return Ok(pending.into_iter().map(|index| NewPod { index: Some(index), failures: None }).collect());
    };
    let early = |index: &i32| {
        let record = index_backoff(failures.held.get(index)?);
        Some(TooEarly { wait: record.remaining(now)?, failures: record.failures, index: Some(*index) })
    };
    let ready: Vec<i32> = pending.iter().copied().filter(|index| early(index).is_none()).collect();
    if let Some(first) = pending.iter().filter_map(early).min_by_key(|early| early.wait).filter(|_| ready.is_empty()) {
        return Err(first);
    }
    let new = |index: i32| NewPod { index: Some(index), failures: Some(failures_of(counts, failures, index)) };
    Ok(ready.into_iter().map(new).collect())
}

fn pending(counts: &Counts, indexes: &Indexes, missing: usize) -> Vec<i32> {
    let mut taken: BTreeSet<i32> = counts.active().filter_map(Pod::index).collect();
    if counts.job.replaces_failed_pods_only() {
        taken.extend(counts.terminating().filter_map(Pod::index));
    }
    let none = OrderedIntervals::default();
    let failed = indexes.failed.as_ref().map_or(&none, |failures| &failures.indexes);
    first_pending_indexes(missing, indexes.completions, &indexes.succeeded.union(failed), &taken)
}

/// Upstream: `getRemainingTimePerIndex`, `backoff_utils.go`.
fn index_backoff(held: &Pod) -> BackoffRecord {
    BackoffRecord { failures: failures_before(held).saturating_add(1), last_failure: held.finish }
}

/// Upstream: `addIndexFailureCountAnnotation` and `getNewIndexFailureCounts`, `indexed_job_utils.go`.
fn failures_of(counts: &Counts, failures: &Failures, index: i32) -> IndexFailures {
    let Some(held) = failures.held.get(&index) else { return IndexFailures::default() };
    let annotations = &held.metadata.annotations;
    let is_counted = counts.verdict(held).counts();
    IndexFailures {
        counted: annotations.failures.saturating_add(i32::from(is_counted)),
        ignored: annotations.ignored_failures.saturating_add(i32::from(!is_counted)),
    }
}
