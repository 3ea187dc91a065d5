//! Which Deployments a change concerns.
//!
//! Left out: pods. A rollout progresses by the statuses of ReplicaSets.

use std::sync::Arc;

use shared::api::labels::Labels;
use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::{Deployment, ReplicaSet};
use crate::observe::Caches;

fn enqueue(deployment: &Arc<Deployment>) -> Effect {
    Effect::Enqueue(deployment.metadata.key.clone(), Cause::Event)
}

/// Upstream: `addDeployment`, `updateDeployment`, `deleteDeployment`,
/// `pkg/controller/deployment/deployment_controller.go`.
pub(super) fn deployment_changed(change: Change<'_, Deployment>) -> Vec<Effect> {
    let meta = &change.latest().metadata;
    let cause = match change {
        Change::Added(_) => Cause::Edit,
        // A rollback is asked for by an annotation.
        Change::Updated { old, new }
            if old.metadata.generation != new.metadata.generation
                || old.metadata.annotations != new.metadata.annotations =>
        {
            Cause::Edit
        }
        Change::Updated { .. } => Cause::Event,
        Change::Deleted(_) => {
            return vec![Effect::Forget(meta.key.clone(), meta.uid), Effect::Enqueue(meta.key.clone(), Cause::Event)];
        }
    };
    vec![Effect::Enqueue(meta.key.clone(), cause)]
}

impl Caches {
    /// Upstream: `addReplicaSet`, `updateReplicaSet`, `deleteReplicaSet`, `deployment_controller.go`.
    pub(super) fn replica_set_changed(&self, change: Change<'_, ReplicaSet>) -> Vec<Effect> {
        match change {
            Change::Added(new) if new.metadata.controller.is_some() || new.metadata.is_being_deleted() => {
                self.owner_of(new)
            }
            Change::Added(new) => self.selecting(new),
            Change::Updated { old, new } => self.replica_set_updated(old, new),
            // The deletion of an orphan concerns no Deployment.
            Change::Deleted(last) => self.owner_of(last),
        }
    }

    fn replica_set_updated(&self, old: &ReplicaSet, new: &ReplicaSet) -> Vec<Effect> {
        if old.metadata.resource_version == new.metadata.resource_version {
            return Vec::new();
        }
        let has_other_owner = old.metadata.controller != new.metadata.controller;
        let mut effects = if has_other_owner { self.owner_of(old) } else { Vec::new() };
        if new.metadata.controller.is_some() {
            effects.extend(self.owner_of(new));
        } else if has_other_owner || old.metadata.labels != new.metadata.labels {
            effects.extend(self.selecting(new));
        }
        effects
    }

    fn owner_of(&self, replica_set: &ReplicaSet) -> Vec<Effect> {
        self.claims.resolve(replica_set).iter().map(enqueue).collect()
    }

    /// One that would select everything selects nothing.
    ///
    /// Upstream: `getDeploymentsForReplicaSet`, `deployment_controller.go`.
    fn selecting(&self, orphan: &ReplicaSet) -> Vec<Effect> {
        let selects = |deployment: &Deployment, labels: &Labels| {
            deployment.selector().is_ok_and(|selector| !selector.is_empty() && selector.matches(labels))
        };
        self.claims.selecting(orphan, selects).iter().map(enqueue).collect()
    }
}

#[cfg(test)]
mod tests;
