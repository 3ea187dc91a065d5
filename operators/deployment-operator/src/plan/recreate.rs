//! The strategy Recreate: all old pods go before the first new one comes.

use super::sync::{ReplicaSets, plan_cleanup, plan_creation, plan_revision};
use super::{Draft, Path, Plan, Scale, StatusScope, progress};
use crate::observe::Observed;

/// Upstream: `rolloutRecreate`, `pkg/controller/deployment/recreate.go`.
pub(super) fn plan_rollout(mut draft: Draft<'_>, sets: &ReplicaSets<'_>) -> Plan {
    plan_revision(&mut draft, sets);
    let mut waits = false;
    for old in sets.active_old() {
        draft.scale(old, Scale { from: old.spec.replicas, to: 0 }, "old: all pods are recreated", true);
        waits = true;
    }
    if waits || are_old_pods_running(draft.observed, sets) {
        return draft.finish(Path::Recreate, StatusScope::Rollout);
    }
    let Some(new) = sets.new else {
        plan_creation(&mut draft, sets);
        return draft.finish(Path::Recreate, StatusScope::Decided);
    };
    let (from, to) = (new.spec.replicas, draft.spec().replicas);
    if from != to {
        draft.scale(new, Scale { from, to }, "new: no old pod runs", true);
    }
    if progress::is_complete_as_written(draft.observed) {
        plan_cleanup(&mut draft, sets);
    }
    draft.finish(Path::Recreate, StatusScope::Rollout)
}

/// Whether a pod of an old ReplicaSet may still run, terminating ones included.
///
/// Upstream: `oldPodsRunning`, `recreate.go`.
fn are_old_pods_running(observed: &Observed, sets: &ReplicaSets<'_>) -> bool {
    let new = sets.new.map(|new| new.metadata.uid);
    sets.old.iter().map(|old| i64::from(old.status.replicas)).sum::<i64>() > 0
        || observed.running_pods.iter().any(|(uid, pods)| Some(*uid) != new && *pods > 0)
}
