//! What one sync of a Deployment knows: the Deployment, the ReplicaSets that are its own, and whether their pods run.
//!
//! All of it comes from the caches. Left out: the claiming of ReplicaSets, which writes and so belongs to
//! [`crate::apply`].

use std::collections::BTreeMap;
use std::sync::Arc;

use shared::condition::{self, Condition};
use shared::intern::Text;
use shared::object::Uid;

use crate::objects::{Deployment, DeploymentSpec, DeploymentStatus, Pod, ReplicaSet, annotations};
use crate::plan::sync::age;

/// One Deployment and what belongs to it.
#[derive(Clone, Debug)]
pub struct Observed {
    /// As the cache has it.
    pub deployment: Arc<Deployment>,
    /// Its own ReplicaSets, oldest first.
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
        for pod in pods.into_iter().filter(|pod| !pod.is_finished()) {
            if let Some(uid) = pod.meta.controller_uid() {
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
        let written = || self.deployment.meta.annotations.get(annotations::REVISION);
        self.decided_revision.as_deref().or_else(written).unwrap_or_default()
    }

    /// The Deployment's revision annotation, if it is to be written.
    pub fn decided_revision(&self) -> Option<&Text> {
        self.decided_revision.as_ref()
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
