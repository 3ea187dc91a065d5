//! The strategy Recreate: all old pods end before the first new one is created.

use std::sync::Arc;

use shared::api::intern::Text;

use super::new_replica_set::create;
use super::reasons::{Reason, Why};
use super::replica_sets::ReplicaSets;
use super::step::Resize;
use super::{Decision, StatusScope, history, progress};
use crate::objects::ReplicaSet;
use crate::observe::Observed;

/// Upstream: `rolloutRecreate`, `pkg/controller/deployment/recreate.go`.
pub(super) fn recreate<'a>(observed: &Observed, sets: &ReplicaSets<'a>) -> Decision<'a> {
    let (spec, wanted) = (observed.spec(), observed.spec().replicas);
    let reason = Reason::recreate(spec, sets);
    let shrunk: Vec<Resize<'_>> = sets.active_old().map(|old| Resize::new(old, 0, Why::Recreated)).collect();
    if !shrunk.is_empty() {
        return Decision { resizes: shrunk, ..Decision::new(reason, StatusScope::Rollout) };
    }
    let running = may_run(observed, sets);
    if !running.is_empty() {
        let is_waiting = sets.new.is_none_or(|new| new.spec.replicas != wanted);
        let reason = if is_waiting { Reason::WaitingForOldPods { replica_sets: running } } else { reason };
        return Decision::new(reason, StatusScope::Rollout);
    }
    let Some(new) = sets.new else { return Decision::only(reason, create(observed, sets)) };
    let is_to_grow = new.spec.replicas != wanted;
    let resize = is_to_grow.then(|| Resize::new(new, wanted, Why::NoOldPod { wanted }));
    let then = if progress::is_complete_as_written(observed) { history::clean_up(spec, sets) } else { Vec::new() };
    Decision { reason, resizes: resize.into_iter().collect(), then, status: StatusScope::Rollout }
}

/// The old ReplicaSets of which a pod may still run, terminating ones included.
///
/// Upstream goes by its cache of pods; here the statuses tell, and where one leaves it open, a list does.
///
/// Upstream: `oldPodsRunning`, `recreate.go`.
fn may_run(observed: &Observed, sets: &ReplicaSets<'_>) -> Vec<Text> {
    let may_run = |old: &&&Arc<ReplicaSet>| match &observed.live_pods {
        None => old.may_run_pods() != Some(false),
        Some(pods) => old.may_run_pods() == Some(true) || pods.contains_key(&old.metadata.uid),
    };
    names(sets.old.iter().filter(may_run).copied())
}

pub(super) fn names<'a>(replica_sets: impl IntoIterator<Item = &'a Arc<ReplicaSet>>) -> Vec<Text> {
    replica_sets.into_iter().map(|replica_set| Text::new(replica_set.metadata.name())).collect()
}
