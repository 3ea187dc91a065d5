//! The ReplicaSets of a Deployment, old and new.

use std::sync::Arc;

use crate::objects::ReplicaSet;
use crate::observe::Observed;

/// The ReplicaSets of a Deployment, told apart by template.
pub struct ReplicaSets<'a> {
    pub new: Option<&'a Arc<ReplicaSet>>,
    /// All others, oldest first.
    pub old: Vec<&'a Arc<ReplicaSet>>,
}

impl<'a> ReplicaSets<'a> {
    /// Upstream: `FindNewReplicaSet`, `FindOldReplicaSets`, `pkg/controller/deployment/util/deployment_util.go`.
    pub fn of(observed: &'a Observed) -> Self {
        let template = &observed.spec().template;
        let new = observed.replica_sets.iter().find(|candidate| candidate.spec.template.equals_ignoring_hash(template));
        let is_old = |candidate: &&Arc<ReplicaSet>| new.is_none_or(|new| new.metadata.uid != candidate.metadata.uid);
        Self { new, old: observed.replica_sets.iter().filter(is_old).collect() }
    }

    /// Old ones first, as upstream appends the new one.
    pub fn all(&self) -> impl Iterator<Item = &'a ReplicaSet> {
        self.old.iter().copied().chain(self.new).map(|replica_set| &**replica_set)
    }

    /// The old ones that are to have pods, oldest first.
    pub fn active_old(&self) -> impl DoubleEndedIterator<Item = &'a ReplicaSet> {
        self.old.iter().map(|replica_set| &***replica_set).filter(|replica_set| replica_set.is_active())
    }
}
