//! The deletion of old ReplicaSets beyond the history limit.

use super::reasons::Why;
use super::replica_sets::ReplicaSets;
use super::revision::revision;
use super::step::{ReplicaSetDeletion, Step};
use crate::objects::{DeploymentSpec, ReplicaSet};

/// Upstream: `cleanupDeployment`, `pkg/controller/deployment/sync.go`.
pub(super) fn clean_up(spec: &DeploymentSpec, sets: &ReplicaSets<'_>) -> Vec<Step> {
    let Some(limit) = spec.revision_history_limit.filter(|limit| *limit != i32::MAX) else { return Vec::new() };
    let mut cleanable: Vec<&ReplicaSet> =
        sets.old.iter().map(|old| &***old).filter(|old| !old.metadata.is_being_deleted()).collect();
    let surplus = cleanable.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
    let why = Why::BeyondHistoryLimit { limit, old: cleanable.len() };
    // If a revision is not a number, order all by age; upstream mixes the two orders.
    let have_revisions = cleanable.iter().all(|old| revision(old).is_some());
    cleanable.sort_by_key(|old| (revision(old).filter(|_| have_revisions), old.age()));
    let is_settled = |old: &&ReplicaSet| old.metadata.generation <= old.status.observed_generation;
    let is_empty = |old: &&ReplicaSet| old.status.replicas == 0 && old.spec.replicas == 0;
    let deletion = |old: &ReplicaSet| {
        Step::DeleteReplicaSet(ReplicaSetDeletion {
            key: old.metadata.key.clone(),
            uid: old.metadata.uid,
            resource_version: old.metadata.resource_version,
            why,
        })
    };
    cleanable.into_iter().take(surplus).filter(|old| is_empty(old) && is_settled(old)).map(deletion).collect()
}
