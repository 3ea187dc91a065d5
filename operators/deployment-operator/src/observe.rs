//! What one sync of a Deployment knows: the Deployment, the ReplicaSets that are or may become its own, and whether their
//! pods run.
//!
//! All of it comes from the caches. Left out: which ReplicaSets are its own in the end, which is [`crate::plan::claim`]'s.

use std::collections::BTreeMap;
use std::sync::Arc;

use shared::api::condition::{self, Condition};
use shared::api::intern::Text;
use shared::api::object::{Key, Uid};
use shared::controllers::claims::Claims;
use shared::runtime::cache::{Cache, IndexId};
use shared::runtime::informer::{Informer, InformerBuilder};

use crate::objects::{Deployment, DeploymentSpec, DeploymentStatus, Pod, ReplicaSet, annotations};
use crate::plan::sync::{Creation, age};

/// What is known of all Deployments and what belongs to them.
pub struct Caches {
    /// Every Deployment.
    pub deployments: Arc<Cache<Deployment>>,
    /// Every ReplicaSet, whoever's.
    pub replica_sets: Arc<Cache<ReplicaSet>>,
    /// Every pod that has not finished, whoever's.
    pub pods: Arc<Cache<Pod>>,
    /// Whose a ReplicaSet is, or may become.
    pub claims: Claims<Deployment, ReplicaSet>,
    pods_by_controller: IndexId,
}

/// What is followed.
pub(crate) struct Informers {
    pub(crate) deployments: Informer<Deployment>,
    pub(crate) replica_sets: Informer<ReplicaSet>,
    pub(crate) pods: Informer<Pod>,
}

impl Caches {
    /// Empty caches, and the informers that fill them.
    pub(crate) fn new() -> (Self, Informers) {
        let mut pods = InformerBuilder::<Pod>::new().fields(Pod::UNFINISHED).metadata_only();
        let pods_by_controller = pods.index_by_controller();
        let pods = pods.build();
        let (claims, deployments, replica_sets) = Claims::new(InformerBuilder::new(), InformerBuilder::new());
        let caches = Self {
            deployments: deployments.cache(),
            replica_sets: replica_sets.cache(),
            pods: pods.cache(),
            claims,
            pods_by_controller,
        };
        (caches, Informers { deployments, replica_sets, pods })
    }

    /// What is known of the Deployment of this key; `None` if there is none.
    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let deployment = self.deployments.get(key)?;
        let replica_sets = self.claims.candidates(&deployment);
        let pods = self.pods_of(&replica_sets);
        Some(Observed::new(deployment, replica_sets, pods))
    }

    /// The pods of these ReplicaSets.
    ///
    /// Upstream: `getPodMapForDeployment`, `pkg/controller/deployment/deployment_controller.go`.
    fn pods_of(&self, replica_sets: &[Arc<ReplicaSet>]) -> Vec<Arc<Pod>> {
        let pods_of = |set: &Arc<ReplicaSet>| self.pods.controlled_by(self.pods_by_controller, &**set);
        replica_sets.iter().flat_map(pods_of).collect()
    }

    /// Whether a pod of any of a Deployment's ReplicaSets may still run.
    pub fn runs_pods(&self, deployment: &Deployment) -> bool {
        !self.pods_of(&self.claims.owned(deployment)).is_empty()
    }

    /// The same creation, with the ReplicaSet that was in the way, if the cache knows it.
    pub fn known(&self, creation: Creation, observed: &Observed, name: &str) -> Creation {
        match creation {
            Creation::AlreadyExists(None) => {
                let key = Key::new(observed.deployment.metadata.namespace(), name);
                Creation::AlreadyExists(self.replica_sets.get(&key))
            }
            Creation::AlreadyExists(Some(_))
            | Creation::Created(_)
            | Creation::NamespaceTerminating
            | Creation::Failed(_) => creation,
        }
    }
}

/// One Deployment and what belongs to it.
#[derive(Clone, Debug)]
pub struct Observed {
    /// As the cache has it.
    pub deployment: Arc<Deployment>,
    /// Its own ReplicaSets and the orphans of its namespace, oldest first; once they are [claimed](Self::claimed), its own.
    pub replica_sets: Vec<Arc<ReplicaSet>>,
    /// How many pods of each ReplicaSet may still run.
    pub running_pods: BTreeMap<Uid, usize>,
    /// The Deployment's status, with what was decided since.
    pub status: DeploymentStatus,
    /// The Deployment's revision annotation, if one was decided since.
    decided_revision: Option<Text>,
}

impl Observed {
    /// From what was read; in any order.
    pub fn new(
        deployment: Arc<Deployment>,
        mut replica_sets: Vec<Arc<ReplicaSet>>,
        pods: impl IntoIterator<Item = Arc<Pod>>,
    ) -> Self {
        replica_sets.sort_by(|a, b| age(a).cmp(&age(b)));
        let mut running_pods = BTreeMap::new();
        for pod in pods {
            if let Some(uid) = pod.metadata.controller_uid() {
                *running_pods.entry(uid).or_default() += 1;
            }
        }
        let status = deployment.status.clone();
        Self { deployment, replica_sets, running_pods, status, decided_revision: None }
    }

    /// What is asked for.
    pub fn spec(&self) -> &DeploymentSpec {
        &self.deployment.spec
    }

    /// The Deployment's revision annotation, as it is or will be; `""` if there is none.
    pub fn revision(&self) -> &str {
        let written = || self.deployment.metadata.annotations.get(annotations::REVISION);
        self.decided_revision.as_deref().or_else(written).unwrap_or_default()
    }

    /// The Deployment's revision annotation, if it is to be written.
    pub fn decided_revision(&self) -> Option<&Text> {
        self.decided_revision.as_ref()
    }

    /// The same, with those ReplicaSets alone that are the Deployment's own now.
    #[must_use]
    pub fn claimed(mut self, mut replica_sets: Vec<Arc<ReplicaSet>>) -> Self {
        replica_sets.sort_by(|a, b| age(a).cmp(&age(b)));
        let is_own = |uid: &Uid| replica_sets.iter().any(|set| set.metadata.uid == *uid);
        self.running_pods.retain(|uid, _| is_own(uid));
        self.replica_sets = replica_sets;
        self
    }

    /// The same, with what a plan decided about the Deployment.
    #[must_use]
    pub fn decided(mut self, revision: Option<Text>, progressing: Option<Condition>) -> Self {
        self.decided_revision = revision.or(self.decided_revision);
        if let Some(progressing) = progressing {
            condition::set(&mut self.status.conditions, progressing);
        }
        self
    }

    /// The same, with one more collision of names.
    #[must_use]
    pub fn collided(mut self, count: Option<i32>) -> Self {
        self.status.collision_count = count.or(self.status.collision_count);
        self
    }

    /// The same, with the ReplicaSet that was created.
    #[must_use]
    pub fn with_replica_set(mut self, replica_set: Arc<ReplicaSet>) -> Self {
        self.replica_sets.push(replica_set);
        self.replica_sets.sort_by(|a, b| age(a).cmp(&age(b)));
        self
    }
}

#[cfg(test)]
mod tests;
