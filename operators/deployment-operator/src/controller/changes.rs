//! Which Deployments a change concerns.
//!
//! Left out: pods that come or change. A rollout gets on by what ReplicaSets say of theirs; only the end of a pod may be
//! what a Deployment of the strategy Recreate waits for.

use std::sync::Arc;

use shared::api::object::{ControllerRef, Key, Kind};
use shared::runtime::cache::Change;
use shared::runtime::queue::Cause;

use crate::objects::{Deployment, Pod, ReplicaSet, Strategy};
use crate::observe::Caches;

/// A key to sync, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wake {
    pub(super) key: Key,
    pub(super) cause: Cause,
}

fn wake(deployment: &Arc<Deployment>) -> Wake {
    Wake { key: deployment.metadata.key.clone(), cause: Cause::Event }
}

impl Caches {
    /// Upstream: `addDeployment`, `updateDeployment`, `deleteDeployment`,
    /// `pkg/controller/deployment/deployment_controller.go`.
    pub(super) fn deployment_changed(change: Change<'_, Deployment>) -> Wake {
        let edited = match change {
            Change::Added(_) => true,
            // A rollback is asked for by an annotation.
            Change::Updated { old, new } => {
                old.metadata.generation != new.metadata.generation
                    || old.metadata.annotations != new.metadata.annotations
            }
            Change::Deleted(_) => false,
        };
        let cause = if edited { Cause::Edit } else { Cause::Event };
        Wake { key: change.latest().metadata.key.clone(), cause }
    }

    /// Upstream: `addReplicaSet`, `updateReplicaSet`, `deleteReplicaSet`, `deployment_controller.go`.
    pub(super) fn replica_set_changed(&self, change: Change<'_, ReplicaSet>) -> Vec<Wake> {
        match change {
            Change::Added(new) if new.metadata.controller.is_some() || new.metadata.is_being_deleted() => {
                self.owner_of(new)
            }
            Change::Added(new) => self.selecting(new),
            Change::Updated { old, new } => self.replica_set_updated(old, new),
            // Nobody cares for the end of an orphan.
            Change::Deleted(last) => self.owner_of(last),
        }
    }

    fn replica_set_updated(&self, old: &ReplicaSet, new: &ReplicaSet) -> Vec<Wake> {
        if old.metadata.resource_version == new.metadata.resource_version {
            return Vec::new();
        }
        let has_other_owner = old.metadata.controller != new.metadata.controller;
        let mut wakes = if has_other_owner { self.owner_of(old) } else { Vec::new() };
        if new.metadata.controller.is_some() {
            wakes.extend(self.owner_of(new));
        } else if has_other_owner || old.metadata.labels != new.metadata.labels {
            wakes.extend(self.selecting(new));
        }
        wakes
    }

    fn owner_of(&self, replica_set: &ReplicaSet) -> Vec<Wake> {
        self.resolve(replica_set).iter().map(wake).collect()
    }

    /// Upstream: `resolveControllerRef`, `deployment_controller.go`.
    fn resolve(&self, replica_set: &ReplicaSet) -> Option<Arc<Deployment>> {
        let ControllerRef { api_version: _, kind, name, uid } = &**replica_set.metadata.controller.as_ref()?;
        let is_deployment = *kind == *Deployment::RESOURCE.kind;
        self.deployments.get_with_uid(replica_set.metadata.namespace(), name, *uid).filter(|_| is_deployment)
    }

    /// The Deployments that may adopt an orphan. Several are a mistake of their user.
    ///
    /// Upstream: `getDeploymentsForReplicaSet`, `deployment_controller.go`.
    fn selecting(&self, orphan: &ReplicaSet) -> Vec<Wake> {
        let deployments = self.selecting_deployments(orphan);
        if deployments.len() > 1 {
            tracing::warn!(replica_set = %orphan.metadata.key, count = deployments.len(), "several select one replica set");
        }
        deployments.iter().map(wake).collect()
    }

    /// The last pod that ran may be what a Deployment of the strategy Recreate waits for.
    ///
    /// Upstream asks the apiserver for the ReplicaSets and counts pods that are finished too; the caches know as much as
    /// the sync that follows, and a finished pod keeps nothing back there.
    ///
    /// Upstream: `deletePod`, `deployment_controller.go`.
    pub(super) fn pod_changed(&self, change: Change<'_, Pod>) -> Option<Wake> {
        let Change::Deleted(pod) = change else { return None };
        let deployment = self.deployment_of(pod)?;
        let waits = deployment.spec.strategy == Strategy::Recreate && !self.runs_pods(&deployment);
        waits.then(|| wake(&deployment))
    }

    /// Upstream: `getDeploymentForPod`, `deployment_controller.go`.
    fn deployment_of(&self, pod: &Pod) -> Option<Arc<Deployment>> {
        let ControllerRef { api_version: _, kind, name, uid } = &**pod.metadata.controller.as_ref()?;
        let is_replica_set = *kind == *ReplicaSet::RESOURCE.kind;
        let replica_set =
            self.replica_sets.get_with_uid(pod.metadata.namespace(), name, *uid).filter(|_| is_replica_set)?;
        self.resolve(&replica_set)
    }
}

#[cfg(test)]
mod tests;
