//! What one sync of a Deployment knows: the Deployment, the ReplicaSets that are its own, and whether their pods run.
//!
//! All of it comes from the caches. Left out: adopting and releasing, which writes and so belongs to [`crate::apply`].

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use shared::api::condition::{self, Condition};
use shared::api::intern::Text;
use shared::api::object::{Key, Kind, Uid};
use shared::api::owner::{self, Claim};
use shared::api::selector::{LabelSelector, Selector};
use shared::runtime::cache::{Cache, IndexId, IndexValue};
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
    deployments_by_namespace: IndexId,
    replica_sets_by_controller: IndexId,
    pods_by_controller: IndexId,
}

impl Caches {
    /// Empty caches, and the informers that fill them.
    pub fn new() -> (Self, Informer<Deployment>, Informer<ReplicaSet>, Informer<Pod>) {
        let mut deployments = InformerBuilder::<Deployment>::new();
        let mut replica_sets = InformerBuilder::<ReplicaSet>::new();
        let mut pods = InformerBuilder::<Pod>::new().fields(Pod::UNFINISHED).metadata_only();
        let deployments_by_namespace = deployments.index_by_namespace();
        let replica_sets_by_controller = replica_sets.index_by_controller();
        let pods_by_controller = pods.index_by_controller();
        let (deployments, replica_sets, pods) = (deployments.build(), replica_sets.build(), pods.build());
        let caches = Self {
            deployments: deployments.cache(),
            replica_sets: replica_sets.cache(),
            pods: pods.cache(),
            deployments_by_namespace,
            replica_sets_by_controller,
            pods_by_controller,
        };
        (caches, deployments, replica_sets, pods)
    }

    /// What a Deployment does about its ReplicaSets and the orphans of its namespace. One that would select everything
    /// claims nothing.
    ///
    /// Upstream: `getReplicaSetsForDeployment`, `pkg/controller/deployment/deployment_controller.go`.
    pub fn claim(&self, deployment: &Deployment) -> anyhow::Result<Claim<ReplicaSet>> {
        if deployment.selects_everything() {
            return Ok(Claim::default());
        }
        let meta = &deployment.metadata;
        let selector =
            selector(deployment).with_context(|| format!("deployment {} has invalid label selector", meta.key))?;
        let own = self.replica_sets.controlled_by(self.replica_sets_by_controller, deployment);
        let orphans = self.replica_sets.orphans(self.replica_sets_by_controller, meta.namespace());
        let candidates = own.into_iter().chain(orphans);
        Ok(owner::claim(&deployment.owner(), candidates, |candidate| selector.matches(&candidate.metadata.labels)))
    }

    /// The pods of these ReplicaSets.
    ///
    /// Upstream: `getPodMapForDeployment`, `deployment_controller.go`.
    pub fn pods_of(&self, replica_sets: &[Arc<ReplicaSet>]) -> Vec<Arc<Pod>> {
        let pods_of = |set: &Arc<ReplicaSet>| self.pods.controlled_by(self.pods_by_controller, &**set);
        replica_sets.iter().flat_map(pods_of).collect()
    }

    /// Whether a pod of any of a Deployment's ReplicaSets may still run.
    pub fn runs_pods(&self, deployment: &Deployment) -> bool {
        let own = self.replica_sets.controlled_by(self.replica_sets_by_controller, deployment);
        !self.pods_of(&own).is_empty()
    }

    /// The Deployments that select an orphan; one that would select everything selects nothing.
    ///
    /// Upstream: `GetDeploymentsForReplicaSet`, `pkg/controller/deployment/util/deployment_util.go`.
    pub fn selecting_deployments(&self, orphan: &ReplicaSet) -> Vec<Arc<Deployment>> {
        let labels = &orphan.metadata.labels;
        if labels.is_empty() {
            return Vec::new();
        }
        let namespace = IndexValue::Text(Text::new(orphan.metadata.namespace()));
        let mut deployments = self.deployments.by_index(self.deployments_by_namespace, &namespace);
        deployments.retain(|deployment| {
            selector(deployment).is_ok_and(|selector| !selector.is_empty() && selector.matches(labels))
        });
        deployments
    }

    /// The same, with the ReplicaSet that was in the way, if the cache knows it.
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

fn selector(deployment: &Deployment) -> anyhow::Result<Selector> {
    let selector: Option<LabelSelector> = serde_json::from_str(deployment.spec.selector.text())?;
    selector.map_or_else(|| Ok(Selector::nothing()), |selector| Ok(Selector::parse(&selector)?))
}

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
mod tests {
    use serde_json::json;
    use shared::testing::{ObjectBuilder, object, pod, store};

    use super::*;
    use crate::objects::Pod;

    /// Of two Deployments that select the same.
    fn deployment(name: &str) -> ObjectBuilder {
        object("apps/v1", "Deployment", name)
            .set(&["spec", "selector"], json!({ "matchLabels": { "app": "web" } }))
            .set(&["spec", "strategy", "type"], "Recreate")
    }

    fn replica_set(name: &str) -> ObjectBuilder {
        object("apps/v1", "ReplicaSet", name).set(&["spec"], json!({})).label("app", "web")
    }

    fn owned(name: &str, owner: &str) -> ObjectBuilder {
        replica_set(name).owned_by::<Deployment>(&deployment(owner).build::<Deployment>())
    }

    fn names<T: shared::api::object::Object>(objects: &[Arc<T>]) -> String {
        objects.iter().map(|object| object.meta().name()).collect::<Vec<_>>().join(",")
    }

    #[track_caller]
    fn check(deployment: &ObjectBuilder, replica_sets: &[ObjectBuilder], expected: &str) {
        let (caches, ..) = Caches::new();
        for replica_set in replica_sets {
            store(&caches.replica_sets, &replica_set.build());
        }
        let Claim { owned, adopt, release } = caches.claim(&deployment.build::<Deployment>()).unwrap();
        let found = format!("own {} adopt {} release {}", names(&owned), names(&adopt), names(&release));
        assert_eq!(found, expected);
    }

    /// Upstream: `TestGetReplicaSetsForDeployment`, `TestGetReplicaSetsForDeploymentAdoptRelease`.
    #[test]
    fn a_deployment_claims_its_own_and_the_orphans_it_selects() {
        let both = [owned("a", "web"), owned("b", "other")];
        check(&deployment("web"), &both, "own a adopt  release ");
        check(&deployment("other"), &both, "own b adopt  release ");
        let relabelled = owned("b", "web").label("app", "db");
        check(&deployment("web"), &[replica_set("a"), relabelled.clone()], "own  adopt a release b");
        check(&deployment("web").terminating(), &[replica_set("a"), relabelled], "own  adopt  release ");
        check(&deployment("web"), &[replica_set("a").label("app", "db")], "own  adopt  release ");
    }

    #[test]
    fn what_is_in_another_namespace_is_not_its_own() {
        let elsewhere = [owned("a", "web").namespace("elsewhere"), replica_set("b").namespace("elsewhere")];
        check(&deployment("web"), &elsewhere, "own  adopt  release ");
        let caches = Caches::new().0;
        let own: Arc<ReplicaSet> = owned("a", "web").build();
        store(&caches.pods, &pod("x").namespace("elsewhere").owned_by(&*own).build());
        assert_eq!(names::<Pod>(&caches.pods_of(&[own])), "");
    }

    #[test]
    fn one_that_selects_everything_or_nothing_claims_nothing() {
        let sets = [owned("a", "web"), replica_set("b")];
        check(&deployment("web").set(&["spec", "selector"], json!({})), &sets, "own  adopt  release ");
        check(&deployment("web").set(&["spec", "selector"], json!(null)), &sets[1..], "own  adopt  release ");
        let odd = json!({ "matchExpressions": [{ "key": "app", "operator": "Odd" }] });
        let odd = deployment("web").set(&["spec", "selector"], odd).build::<Deployment>();
        let error = Caches::new().0.claim(&odd).unwrap_err();
        assert_eq!(error.to_string(), "deployment default/web has invalid label selector");
    }

    /// Upstream: `TestGetPodMapForReplicaSets`; pods that have ended are not watched.
    #[test]
    fn its_pods_are_those_of_its_sets() {
        let (caches, ..) = Caches::new();
        let [a, b, other]: [Arc<ReplicaSet>; 3] =
            [owned("a", "web").build(), owned("b", "web").build(), owned("c", "other").build()];
        for pod in [
            pod("a1").owned_by(&*a),
            pod("a2").owned_by(&*a).terminating(),
            pod("b1").owned_by(&*b),
            pod("c1").owned_by(&*other),
            pod("orphan").label("app", "web"),
        ] {
            store(&caches.pods, &pod.build());
        }
        let observed = Observed::new(deployment("web").build(), vec![Arc::clone(&b), Arc::clone(&a)], {
            caches.pods_of(&[Arc::clone(&a), Arc::clone(&b)])
        });
        assert_eq!(observed.running_pods, BTreeMap::from([(a.metadata.uid, 2), (b.metadata.uid, 1)]));
    }
}
