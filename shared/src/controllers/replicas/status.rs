//! The status of an owner: its counts of pods, and the condition `ReplicaFailure`. Conditions that others set are kept
//! as they are served.

use jiff::Timestamp;

use super::apply::Outcome;
use super::observe::Observed;
use super::pod::Pod;
pub use super::stored::{Conditions, ReplicaStatus};
use super::{ReplicaOwner, ReplicaSpec};
use crate::api::condition::{self, Condition};
use crate::api::pod::PodView;
use crate::api::time::Time;
use crate::controllers::pod_control::{FAILED_CREATE, FAILED_DELETE};

/// The condition that says why pods cannot be made or deleted.
///
/// Upstream: `ReplicaSetReplicaFailure`, `staging/src/k8s.io/api/apps/v1/types.go`.
pub const REPLICA_FAILURE: &str = "ReplicaFailure";

/// The purpose of the timer while a ready pod is not available yet.
pub(super) const MIN_READY: &str = "minReadySeconds of a pod";

/// The status after a sync; to be written if it differs from [`ReplicaOwner::status`]. None if nothing was counted.
///
/// Upstream: `calculateStatus`, `pkg/controller/replicaset/replica_set_utils.go`.
pub fn next_status<T: ReplicaOwner>(
    observed: &Observed<T>,
    outcome: &Outcome,
    now: Timestamp,
) -> Option<ReplicaStatus> {
    let (owner, spec) = (&*observed.owner, observed.owner.spec());
    let Outcome { claimed, failure, error } = outcome;
    if error.is_some() {
        return None;
    }
    let count = |counts: &dyn Fn(&Pod) -> bool| to_i32(claimed.iter().filter(|pod| counts(pod)).count());
    let mut conditions = owner.status().conditions.clone();
    match failure {
        None => conditions.remove(REPLICA_FAILURE),
        Some(_) if conditions.has(REPLICA_FAILURE) => {}
        Some(failure) => {
            let reason = if claimed.len() < spec.wanted() { FAILED_CREATE } else { FAILED_DELETE };
            let condition = Condition::new(REPLICA_FAILURE, condition::TRUE, reason, format!("{failure:#}"));
            conditions.push(&condition.transitioned_at(Time::of(now)));
        }
    }
    Some(ReplicaStatus {
        replicas: count(&|_| true),
        fully_labeled_replicas: count(&|pod| pod.metadata.labels.contains_all(&spec.template_labels)),
        ready_replicas: count(&|pod| pod.readiness.is_ready()),
        available_replicas: count(&|pod| pod.readiness.is_available(spec.min_ready_seconds, now)),
        terminating_replicas: T::COUNTS_TERMINATING.then(|| to_i32(terminating(observed))),
        observed_generation: owner.meta().generation,
        conditions,
    })
}

/// How many pods are on their way out.
///
/// Upstream: `FilterClaimedPods` over `FilterTerminatingPods`, `pkg/controller/controller_utils.go`.
fn terminating<T: ReplicaOwner>(observed: &Observed<T>) -> usize {
    let Ok(selector) = &observed.owner.spec().selector else { return 0 };
    let uid = observed.owner.meta().uid;
    let is_ours = |pod: &Pod| pod.metadata.is_controlled_by(uid) && selector.matches(&pod.metadata.labels);
    observed.pods.iter().filter(|pod| pod.is_terminating() && is_ours(pod)).count()
}

fn to_i32(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// When the next pod becomes available, and the status with it; `now` and `status` are those of [`next_status`].
///
/// Upstream: `syncReplicaSet`, `pkg/controller/replicaset/replica_set.go`, and `FindMinNextPodAvailabilityCheck`,
/// `pkg/controller/controller_utils.go`.
pub fn next_check(spec: &ReplicaSpec, outcome: &Outcome, status: &ReplicaStatus, now: Timestamp) -> Option<Time> {
    if spec.min_ready_seconds <= 0 || status.ready_replicas == status.available_replicas {
        return None;
    }
    let next = outcome.claimed.iter().filter_map(|pod| pod.readiness.available_at(spec.min_ready_seconds, now)).min();
    // A pod that is ready but does not say since when becomes available at no known time.
    let fallback = || Time::from_second(now.as_second().saturating_add(spec.min_ready_seconds.into()));
    Some(next.unwrap_or_else(fallback))
}
