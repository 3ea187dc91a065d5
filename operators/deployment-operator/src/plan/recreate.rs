//! The strategy Recreate: all old pods go before the first new one comes.

use std::time::Duration;

use jiff::Timestamp;

use super::sync::{ReplicaSets, plan_cleanup, plan_creation, plan_revision};
use super::{Draft, Path, Plan, Scale, StatusScope, plan, progress};
use crate::objects::Strategy;
use crate::observe::{LivePods, Observed};

/// How long a look at pods is good for that no status tells of, at least and at most.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

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
/// Upstream goes by its cache of pods; here the statuses tell, and where one leaves it open, a list does.
///
/// Upstream: `oldPodsRunning`, `recreate.go`.
fn are_old_pods_running(observed: &Observed, sets: &ReplicaSets<'_>) -> bool {
    sets.old.iter().any(|old| match &observed.live_pods {
        None => old.may_run_pods() != Some(false),
        Some(pods) => old.may_run_pods() == Some(true) || pods.contains_key(&old.metadata.uid),
    })
}

/// Whether the plan would be another one if no old pod ran, and only a list can tell.
pub fn depends_on_pods(observed: &Observed, now: Timestamp) -> bool {
    let is_open = observed.replica_sets.iter().any(|replica_set| replica_set.may_run_pods().is_none());
    observed.spec().strategy == Strategy::Recreate
        && is_open
        && plan(observed, now) != plan(&observed.clone().with_live_pods(LivePods::new()), now)
}

/// When to look again at old pods that no status tells of. The longer the last one has been ending, the longer its end may
/// still take.
pub fn next_look(observed: &Observed, now: Timestamp) -> Option<Duration> {
    let pods = observed.live_pods.as_ref()?;
    let sets = ReplicaSets::of(observed);
    let since = sets.old.iter().filter_map(|old| pods.get(&old.metadata.uid)).max()?;
    let ending = since.and_then(|since| Duration::try_from(now.duration_since(since)).ok()).unwrap_or_default();
    let (shortest, longest) = PAUSE;
    Some((ending / 4).clamp(shortest, longest))
}
