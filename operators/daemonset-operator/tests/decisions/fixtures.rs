//! Short ways to say what there is: built as the JSON that the apiserver would serve.

use std::sync::Arc;

use daemonset_operator::objects::{DaemonSet, REVISION_LABEL};
use daemonset_operator::observe::Observed;
use daemonset_operator::plan::{Plan, plan};
use serde_json::{Value, json};
use shared::controllers::revisions::ControllerRevision;
use shared::testing::{self, NOW, ObjectBuilder, ago, object};

/// The hash of pods of an earlier template.
pub(crate) const OLD: &str = "old";
/// The hash of pods of the template of now.
pub(crate) const NEW: &str = "new";

pub(crate) fn template(image: &str) -> Value {
    json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "name": "c", "image": image }] } })
}

/// A DaemonSet `web`, as the apiserver's defaults leave it.
pub(crate) fn set() -> ObjectBuilder {
    let spec = json!({
        "selector": { "matchLabels": { "app": "web" } }, "template": template("1"), "revisionHistoryLimit": 10,
        "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 1, "maxSurge": 0 } },
    });
    object("apps/v1", "DaemonSet", "web").set(&["spec"], spec)
}

pub(crate) trait SetBuilder {
    /// Sets one field of the spec.
    fn with(self, field: &str, value: impl Into<Value>) -> Self;
    /// Sets one field of the spec of the template.
    fn with_pod(self, field: &str, value: impl Into<Value>) -> Self;
    fn unavailable(self, max: impl Into<Value>) -> Self;
    fn surge(self, max: impl Into<Value>) -> Self;
    fn on_delete(self) -> Self;
}

impl SetBuilder for ObjectBuilder {
    fn with(self, field: &str, value: impl Into<Value>) -> Self {
        self.set(&["spec", field], value)
    }
    fn with_pod(self, field: &str, value: impl Into<Value>) -> Self {
        self.set(&["spec", "template", "spec", field], value)
    }
    fn unavailable(self, max: impl Into<Value>) -> Self {
        let rolling = json!({ "maxUnavailable": max.into() });
        self.with("updateStrategy", json!({ "type": "RollingUpdate", "rollingUpdate": rolling }))
    }
    fn surge(self, max: impl Into<Value>) -> Self {
        let rolling = json!({ "maxUnavailable": 0, "maxSurge": max.into() });
        self.with("updateStrategy", json!({ "type": "RollingUpdate", "rollingUpdate": rolling }))
    }
    fn on_delete(self) -> Self {
        self.with("updateStrategy", json!({ "type": "OnDelete" }))
    }
}

pub(crate) fn node(name: &str) -> ObjectBuilder {
    object("v1", "Node", name).set(&["metadata", "namespace"], "")
}

pub(crate) fn taint(key: &str, effect: &str) -> Value {
    json!({ "key": key, "effect": effect })
}

pub(crate) fn tainted(name: &str, key: &str, effect: &str) -> ObjectBuilder {
    node(name).set(&["spec", "taints"], json!([taint(key, effect)]))
}

/// Its pod on this node, which runs and is not ready.
pub(crate) fn unready(name: &str, node: &str, hash: &str) -> ObjectBuilder {
    testing::pod(name).node(node).owned_by(&*set().build::<DaemonSet>()).label("app", "web").label(REVISION_LABEL, hash)
}

/// Its pod on this node, which has been ready for long.
pub(crate) fn pod(name: &str, node: &str, hash: &str) -> ObjectBuilder {
    unready(name, node, hash).ready_since(ago(100))
}

/// A required node affinity of these terms.
pub(crate) fn required(terms: &Value) -> Value {
    let required = json!({ "nodeSelectorTerms": terms });
    json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": required } })
}

/// Its pod that waits for the scheduler to bind it to this node.
pub(crate) fn pinned(name: &str, node: &str, hash: &str) -> ObjectBuilder {
    let by_name = json!({ "key": "metadata.name", "operator": "In", "values": [node] });
    let pod = unready(name, "", hash).phase("Pending");
    pod.set(&["spec", "affinity"], required(&json!([{ "matchFields": [by_name] }])))
}

/// A revision `web-<image>` of [`template`], whose hash is the image.
pub(crate) fn revision(number: i64, image: &str) -> ObjectBuilder {
    let mut template = template(image);
    template["$patch"] = "replace".into();
    object("apps/v1", "ControllerRevision", &format!("web-{image}"))
        .owned_by(&*set().build::<DaemonSet>())
        .label("app", "web")
        .label(REVISION_LABEL, image)
        .set(&["revision"], number)
        .set(&["data", "spec", "template"], template)
}

/// The object without owners.
pub(crate) fn orphan(object: ObjectBuilder) -> ObjectBuilder {
    object.set(&["metadata", "ownerReferences"], json!([]))
}

/// A DaemonSet with nodes, pods and revisions.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) set: ObjectBuilder,
    pub(crate) nodes: Vec<ObjectBuilder>,
    pub(crate) pods: Vec<ObjectBuilder>,
    pub(crate) revisions: Vec<Arc<ControllerRevision>>,
}

pub(crate) fn case(
    set: ObjectBuilder,
    nodes: impl IntoIterator<Item = ObjectBuilder>,
    pods: impl IntoIterator<Item = ObjectBuilder>,
) -> Case {
    let (nodes, pods) = (nodes.into_iter().collect(), pods.into_iter().collect());
    Case { set, nodes, pods, revisions: Vec::new() }
}

impl Case {
    pub(crate) fn revisions(mut self, revisions: impl IntoIterator<Item = ObjectBuilder>) -> Self {
        self.revisions = revisions.into_iter().map(|revision| revision.build()).collect();
        self
    }

    pub(crate) fn observed(&self) -> Observed {
        let nodes = self.nodes.iter().map(ObjectBuilder::build).collect();
        let pods = self.pods.iter().map(ObjectBuilder::build).collect();
        Observed::new(self.set.build(), nodes, pods, self.revisions.clone())
    }

    pub(crate) fn plan(&self) -> Plan {
        plan(&self.observed(), NEW, NOW)
    }

    /// Checks the steps of the plan.
    #[track_caller]
    pub(crate) fn check(&self, expected: &str) {
        let plan = self.plan();
        assert_eq!(plan.to_string(), format!("{expected} ({})", plan.reason));
    }
}
