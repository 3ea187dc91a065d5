//! Objects as tests write them, and the few fields that tests read again and again.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Node, NodeSpec, Pod, PodSpec};
use kube::api::ObjectMeta;
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

/// A pod template with one container, labelled `app=NAME`.
pub(crate) fn template(name: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": name}},
        // Tests that delete pods on a real kubelet should not wait for them.
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}],
        },
    })
}

/// A Deployment as people write them; its pods are labelled `app=NAME`.
pub(crate) fn deployment(name: &str, replicas: i32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "progressDeadlineSeconds": 600,
            "revisionHistoryLimit": 10,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "template": template(name),
        },
    })
}

/// A StatefulSet whose pods come in order and are labelled `app=NAME`, with these fields of its spec besides.
pub(crate) fn stateful_set(name: &str, replicas: i32, fields: &Value) -> Value {
    let set = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "selector": {"matchLabels": {"app": name}},
            "template": template(name),
        },
    });
    with_fields(set, fields)
}

/// A DaemonSet whose pods are labelled `app=NAME`, with these fields of its spec besides.
pub(crate) fn daemon_set(name: &str, fields: &Value) -> Value {
    let set = json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template(name)},
    });
    with_fields(set, fields)
}

fn with_fields(mut object: Value, fields: &Value) -> Value {
    for (field, value) in fields.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    object
}

/// A Node whose pods have addresses of this range.
pub(crate) fn routed_node(name: &str, cidr: &str) -> Node {
    Node {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: Some(NodeSpec {
            pod_cidr: Some(cidr.to_owned()),
            pod_cidrs: Some(vec![cidr.to_owned()]),
            ..NodeSpec::default()
        }),
        status: None,
    }
}

/// Whether a Node says that the cloud routes to its pods.
pub(crate) fn has_route(node: &Node) -> bool {
    let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "NetworkUnavailable" && condition.status == "False")
}

pub(crate) fn uid<K: Resource>(object: &K) -> String {
    object.meta().uid.clone().unwrap_or_default()
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Neither ended nor deleted by anybody.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !has_ended(pod) && pod.metadata.deletion_timestamp.is_none()
}

/// The node that a pod takes up until it has ended, deleted or not: the one that it is bound to, or, as a daemon, may
/// be bound to.
pub(crate) fn node_of(pod: &Pod) -> Option<&str> {
    let spec = pod.spec.as_ref().filter(|_| !has_ended(pod))?;
    spec.node_name.as_deref().or_else(|| pinned_to(spec))
}

fn pinned_to(spec: &PodSpec) -> Option<&str> {
    let nodes = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = nodes.required_during_scheduling_ignored_during_execution.as_ref()?;
    let mut fields = required.node_selector_terms.iter().flat_map(|term| term.match_fields.iter().flatten());
    let name = fields.find(|field| field.key == "metadata.name")?;
    name.values.as_ref()?.first().map(String::as_str)
}

/// Active, and ready.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    is_active(pod) && conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The number of replicas in a ReplicaSet's spec.
pub(crate) fn replicas_of(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0)
}

/// The revision that a Deployment or ReplicaSet is at.
pub(crate) fn revision<K: Resource>(object: &K) -> &str {
    object.annotations().get("deployment.kubernetes.io/revision").map_or("", String::as_str)
}

/// The image of the only container.
pub(crate) fn image(deployment: &Deployment) -> &str {
    let spec = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    spec.and_then(|spec| spec.containers.first()).and_then(|container| container.image.as_deref()).unwrap_or("")
}

/// Status and reason of a Deployment's condition.
pub(crate) fn condition<'a>(deployment: &'a Deployment, type_: &str) -> Option<(&'a str, &'a str)> {
    let conditions = deployment.status.as_ref()?.conditions.as_ref()?;
    let condition = conditions.iter().find(|condition| condition.type_ == type_)?;
    Some((condition.status.as_str(), condition.reason.as_deref().unwrap_or("")))
}
