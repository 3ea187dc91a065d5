//! Short ways to say what there is: built as the JSON that the apiserver would serve.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::api::object::Uid;
use shared::api::time::Time;
use shared::controllers::rejections::{Rejection, Rejections};
use shared::controllers::revisions::ControllerRevision;
use shared::testing::{self, NOW, ObjectBuilder, ago, object, uid};
use statefulset_operator::flags::gates::FeatureGates;
use statefulset_operator::objects::claim::PersistentVolumeClaim;
use statefulset_operator::objects::{POD_INDEX_LABEL, POD_NAME_LABEL, REPLACE_STUCK_PODS, REVISION_LABEL, StatefulSet};
use statefulset_operator::observe::Observed;
use statefulset_operator::plan::claim_owners::OwnerChange;
use statefulset_operator::plan::revisions::Revisions;
use statefulset_operator::plan::{Plan, plan};

/// The revision of pods that are not updated.
pub(crate) const OLD: &str = "web-old";
/// The revision of the template of now.
pub(crate) const NEW: &str = "web-new";

/// The gate for maxUnavailable is on.
pub(crate) const GATE: FeatureGates = FeatureGates { max_unavailable: true };

pub(crate) fn template(image: &str) -> Value {
    json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "name": "c", "image": image }] } })
}

/// A StatefulSet `web`, as the apiserver's defaults leave it.
pub(crate) fn set(replicas: i32) -> ObjectBuilder {
    let spec = json!({
        "replicas": replicas, "selector": { "matchLabels": { "app": "web" } }, "template": template("1"),
        "serviceName": "web", "podManagementPolicy": "OrderedReady", "revisionHistoryLimit": 10,
        "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "partition": 0 } },
        "persistentVolumeClaimRetentionPolicy": { "whenDeleted": "Retain", "whenScaled": "Retain" },
    });
    object("apps/v1", "StatefulSet", "web").set(&["spec"], spec)
}

pub(crate) trait SetBuilder {
    /// Sets one field of the spec.
    fn with(self, field: &str, value: impl Into<Value>) -> Self;
    fn parallel(self) -> Self;
    fn partition(self, partition: i32) -> Self;
    fn on_delete(self) -> Self;
    /// Makes a claim `data` for each pod.
    fn with_claims(self) -> Self;
    fn retention(self, when_scaled: &str, when_deleted: &str) -> Self;
    /// Asks that pods which keep it stuck are replaced.
    fn curable(self) -> Self;
}

impl SetBuilder for ObjectBuilder {
    fn with(self, field: &str, value: impl Into<Value>) -> Self {
        self.set(&["spec", field], value)
    }
    fn parallel(self) -> Self {
        self.with("podManagementPolicy", "Parallel")
    }
    fn partition(self, partition: i32) -> Self {
        self.set(&["spec", "updateStrategy", "rollingUpdate", "partition"], partition)
    }
    fn on_delete(self) -> Self {
        self.with("updateStrategy", json!({ "type": "OnDelete" }))
    }
    fn with_claims(self) -> Self {
        let claim = json!({ "metadata": { "name": "data" }, "spec": { "accessModes": ["ReadWriteOnce"] } });
        self.with("volumeClaimTemplates", json!([claim]))
    }
    fn retention(self, when_scaled: &str, when_deleted: &str) -> Self {
        let policy = json!({ "whenScaled": when_scaled, "whenDeleted": when_deleted });
        self.with("persistentVolumeClaimRetentionPolicy", policy)
    }
    fn curable(self) -> Self {
        self.annotation(REPLACE_STUCK_PODS, "true")
    }
}

/// Its pod of this ordinal, which has been ready for long.
pub(crate) fn pod(ordinal: i64, revision: &str) -> ObjectBuilder {
    unready(ordinal, revision).ready_since(ago(100))
}

/// Its pod of this ordinal, which runs and is not ready.
pub(crate) fn unready(ordinal: i64, revision: &str) -> ObjectBuilder {
    named(&format!("web-{ordinal}"), ordinal, revision)
}

/// The pod as its kubelet has left it when it started it 100 seconds ago: not ready since then.
pub(crate) fn never_ready(pod: ObjectBuilder) -> ObjectBuilder {
    let start = ago(100).to_string();
    let condition = json!({ "type": "Ready", "status": "False", "lastTransitionTime": start });
    pod.set(&["status", "startTime"], start).set(&["status", "conditions"], json!([condition]))
}

/// Its pod of this ordinal, which its node has rejected.
pub(crate) fn rejected(ordinal: i64, revision: &str) -> ObjectBuilder {
    unready(ordinal, revision).phase("Failed").set(&["status", "reason"], "OutOfcpu")
}

pub(crate) fn named(name: &str, ordinal: i64, revision: &str) -> ObjectBuilder {
    let volume = json!({ "name": "data", "persistentVolumeClaim": { "claimName": format!("data-web-{ordinal}") } });
    testing::pod(name)
        .owned_by(&*set(0).build::<StatefulSet>())
        .label("app", "web")
        .label(POD_NAME_LABEL, name)
        .label(POD_INDEX_LABEL, &ordinal.to_string())
        .label(REVISION_LABEL, revision)
        .set(&["spec", "volumes"], json!([volume]))
}

/// A claim `data-web-<ordinal>` without owners.
pub(crate) fn claim(ordinal: i64) -> ObjectBuilder {
    object("v1", "PersistentVolumeClaim", &format!("data-web-{ordinal}"))
}

/// A revision `web-<image>` of [`template`].
pub(crate) fn revision(number: i64, image: &str) -> ObjectBuilder {
    object("apps/v1", "ControllerRevision", &format!("web-{image}"))
        .owned_by(&*set(0).build::<StatefulSet>())
        .label("app", "web")
        .set(&["revision"], number)
        .set(&["data", "spec", "template"], template_data(image))
}

/// [`template`] as a revision keeps it.
pub(crate) fn template_data(image: &str) -> Value {
    let mut template = template(image);
    template["$patch"] = "replace".into();
    template
}

/// The object without owners.
pub(crate) fn orphan(object: ObjectBuilder) -> ObjectBuilder {
    object.set(&["metadata", "ownerReferences"], json!([]))
}

/// An entry of `ownerReferences`.
pub(crate) fn owner(api_version: &str, kind: &str, name: &str, is_controller: bool) -> Value {
    json!({ "apiVersion": api_version, "kind": kind, "name": name, "uid": uid(name), "controller": is_controller,
        "blockOwnerDeletion": true })
}

pub(crate) fn of_set() -> Value {
    owner("apps/v1", "StatefulSet", "web", true)
}

pub(crate) fn of_pod(name: &str) -> Value {
    owner("v1", "Pod", name, true)
}

pub(crate) fn owned(claim: ObjectBuilder, owners: &[Value]) -> ObjectBuilder {
    claim.set(&["metadata", "ownerReferences"], owners.to_vec())
}

/// The owners of a claim after a change, as the apiserver would leave them.
pub(crate) fn after(owners: &[Value], change: &OwnerChange) -> Vec<Value> {
    let is_of = |owner: &Value, uid: Uid| owner["uid"] == uid.to_string();
    let is_added = |owner: &Value| change.add.as_ref().is_some_and(|added| is_of(owner, added.uid));
    let stays = |owner: &&Value| !is_added(owner) && !change.remove.iter().any(|uid| is_of(owner, *uid));
    let added = change.add.iter().map(|added| json!(added.controller_ref()));
    owners.iter().filter(stays).cloned().chain(added).collect()
}

/// A StatefulSet with pods and claims.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) set: ObjectBuilder,
    pub(crate) pods: Vec<ObjectBuilder>,
    pub(crate) claims: BTreeMap<String, Arc<PersistentVolumeClaim>>,
    pub(crate) revisions: Vec<Arc<ControllerRevision>>,
    pub(crate) gates: FeatureGates,
    pub(crate) rejections: Rejections,
}

pub(crate) fn case(set: ObjectBuilder, pods: impl IntoIterator<Item = ObjectBuilder>) -> Case {
    let pods = pods.into_iter().collect();
    let (gates, rejections) = (FeatureGates::default(), Rejections::default());
    Case { set, pods, claims: BTreeMap::new(), revisions: Vec::new(), gates, rejections }
}

impl Case {
    pub(crate) fn claims(mut self, claims: impl IntoIterator<Item = ObjectBuilder>) -> Self {
        let claims = claims.into_iter().map(|claim| claim.build::<PersistentVolumeClaim>());
        self.claims = claims.map(|claim| (claim.metadata.name().to_owned(), claim)).collect();
        self
    }

    pub(crate) fn revisions(mut self, revisions: impl IntoIterator<Item = ObjectBuilder>) -> Self {
        self.revisions = revisions.into_iter().map(|revision| revision.build()).collect();
        self
    }

    pub(crate) fn gates(self, gates: FeatureGates) -> Self {
        Self { gates, ..self }
    }

    /// So many rejections in a row of pods of this revision, seen at this moment.
    pub(crate) fn rejections(mut self, revision: &str, count: usize, at: Timestamp) -> Self {
        let (template, reason) = (Text::new(revision), Text::new("OutOfcpu"));
        let rejection = Rejection { template, reason, created: Some(Time::of(at)) };
        for _ in 0..count {
            self.rejections.note(&rejection, at);
        }
        self
    }

    pub(crate) fn observed(&self) -> Observed {
        let pods = self.pods.iter().map(ObjectBuilder::build).collect();
        let claim = |name: &str| self.claims.get(name).cloned();
        Observed::new(self.set.build(), pods, self.revisions.clone(), claim).with(self.rejections.clone())
    }

    pub(crate) fn plan(&self) -> Plan {
        plan(&self.observed(), &revisions(), self.gates, NOW)
    }

    /// Checks the whole plan.
    #[track_caller]
    pub(crate) fn check(&self, expected: &str) {
        assert_eq!(self.plan().to_string(), expected);
    }
}

pub(crate) fn revisions() -> Revisions {
    Revisions { current: Text::new(OLD), update: Text::new(NEW), collision_count: 0 }
}
