//! The observation for one sync: the Deployment and the ReplicaSets that are or may become its own, from the caches;
//! and which of them have pods, by one list, where their statuses do not tell and it matters.
//!
//! Left out: which ReplicaSets are its own in the end, which is [`crate::plan::claim`]'s.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use jiff::Timestamp;
use shared::api::condition::{self, Condition};
use shared::api::intern::Text;
use shared::api::object::{Key, Uid};
use shared::api::pod::LIVE;
use shared::api::resource::PODS;
use shared::controllers::claims::Claims;
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};
use shared::transport::client::Accept;
use shared::working::control::{Control, Selection};

use crate::objects::{Deployment, DeploymentSpec, DeploymentStatus, Pod, ReplicaSet, annotations};

pub struct Caches {
    pub deployments: Arc<Cache<Deployment>>,
    pub replica_sets: Arc<Cache<ReplicaSet>>,
    /// The owners of ReplicaSets, and who may adopt them.
    pub claims: Claims<Deployment, ReplicaSet>,
}

pub(crate) struct Informers {
    pub(crate) deployments: Informer<Deployment>,
    pub(crate) replica_sets: Informer<ReplicaSet>,
}

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        let (claims, deployments, replica_sets) = Claims::new(InformerBuilder::new(), InformerBuilder::new());
        let caches = Self { deployments: deployments.cache(), replica_sets: replica_sets.cache(), claims };
        (caches, Informers { deployments, replica_sets })
    }

    /// Observes the Deployment of this key; `None` if there is none.
    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let deployment = self.deployments.get(key)?;
        let replica_sets = self.claims.candidates(&deployment);
        Some(Observed::new(deployment, replica_sets))
    }
}

/// The pods that have not ended, by the uid of their controller: since when the last one of each has been ending; none
/// where none is to end.
pub type LivePods = BTreeMap<Uid, Option<Timestamp>>;

/// The pods of a Deployment's ReplicaSets, as they are.
///
/// Upstream: `getPodMapForDeployment`, `pkg/controller/deployment/deployment_controller.go`.
pub(crate) async fn live_pods(control: &Control, deployment: &Deployment) -> anyhow::Result<LivePods> {
    let (namespace, label_selector) = (deployment.metadata.namespace(), deployment.selector()?.to_string());
    let selection = Selection { field_selector: LIVE, label_selector: &label_selector, ..Selection::default() };
    let mut pods = LivePods::new();
    let note = |pod: Pod| {
        if let Some(uid) = pod.controller_uid() {
            let since = pods.entry(uid).or_default();
            *since = pod.ending_since().max(*since);
        }
    };
    control
        .list_each(&PODS, namespace, selection, Accept::Metadata, note)
        .await
        .context("list the pods that are left")?;
    Ok(pods)
}

#[derive(Clone, Debug)]
pub struct Observed {
    pub deployment: Arc<Deployment>,
    /// Its own ReplicaSets and the orphans of its namespace, oldest first; once they are [claimed](Self::claimed), its
    /// own.
    pub replica_sets: Vec<Arc<ReplicaSet>>,
    pub is_claimed: bool,
    /// The pods there are, where it was necessary to ask.
    pub live_pods: Option<LivePods>,
    /// The Deployment's status, with what was decided since.
    pub status: DeploymentStatus,
    /// The Deployment's revision annotation, if one was decided since.
    decided_revision: Option<Text>,
}

impl Observed {
    /// From what was read; in any order.
    pub fn new(deployment: Arc<Deployment>, mut replica_sets: Vec<Arc<ReplicaSet>>) -> Self {
        replica_sets.sort_by(|a, b| a.age().cmp(&b.age()));
        let status = deployment.status.clone();
        Self { deployment, replica_sets, is_claimed: false, live_pods: None, status, decided_revision: None }
    }

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
        replica_sets.sort_by(|a, b| a.age().cmp(&b.age()));
        (self.replica_sets, self.is_claimed) = (replica_sets, true);
        self
    }

    #[must_use]
    pub fn with_live_pods(mut self, pods: LivePods) -> Self {
        self.live_pods = Some(pods);
        self
    }

    /// The same, with a whole template of the Deployment.
    #[must_use]
    pub fn with_template(self, deployment: Arc<Deployment>) -> Self {
        Self { deployment, ..self }
    }

    /// The same, with a whole template of this ReplicaSet.
    #[must_use]
    pub fn with_template_of(mut self, replica_set: &Arc<ReplicaSet>) -> Self {
        for known in &mut self.replica_sets {
            if known.metadata.uid == replica_set.metadata.uid {
                known.clone_from(replica_set);
            }
        }
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
        self.replica_sets.sort_by(|a, b| a.age().cmp(&b.age()));
        self
    }
}

#[cfg(test)]
mod tests;
