//! The states of controllers that keep pods.

use cli::cause::State::{AtRest, InProgress, Stuck};
use cli::evidence::Evidence;
use cli::lookup::Lookup;
use serde_json::{Value, json};

use super::scene::{
    Row, deployment, event, evidence, fails, hidden, object, operator, owned, pod, pods, replica_set, row, says, time,
    with,
};

const QUOTA: &str =
    "pods \"web-6d4-\" is forbidden: exceeded quota: team, requested: pods=1, used: pods=17, limited: pods=17";

/// The state of the issue, with all that is around it.
pub(crate) fn quota() -> Evidence {
    let status = json!({ "status": { "replicas": 17, "readyReplicas": 17, "availableReplicas": 17 } });
    let mut objects = vec![deployment(20, &status), replica_set(20, &status)];
    objects.extend(pods(17));
    objects.push(event("web-6d4", "FailedCreate", QUOTA, -30));
    let amounts = json!({ "hard": { "pods": "17", "cpu": "9" }, "used": { "pods": "17", "cpu": "1" } });
    objects.push(object("v1", "ResourceQuota", "team", &json!({ "status": amounts })));
    let mut evidence = says(evidence(objects), "replicaset-operator", ("replicasets.apps", "web-6d4"), |said| {
        fails(said, "create 3 (17 of 20 active)", QUOTA);
    });
    evidence.unread.push(hidden("nodes"));
    evidence
}

/// A Deployment of two of which one pod is refused with this message, as its ReplicaSet says.
fn refused(message: &str) -> Evidence {
    let condition =
        json!([{ "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message }]);
    let set = replica_set(2, &json!({ "status": { "conditions": condition } }));
    let mut objects = vec![deployment(2, &json!({})), set];
    objects.extend(pods(1));
    evidence(objects)
}

/// A Deployment with so many ready pods.
fn rolled_out(count: usize, of: i64, rest: &Value) -> Evidence {
    let mut objects = vec![deployment(of, rest), replica_set(of, &json!({}))];
    objects.extend(pods(count));
    evidence(objects)
}

fn refusals() -> Vec<Row> {
    vec![
        row(
            quota(),
            Stuck,
            "web: 3 of 20 pods missing: ReplicaSet web-6d4 cannot create pods: quota `team` exceeded (pods 17/17); next retry in 12 s",
        ),
        row(
            refused("pods \"web\" is forbidden: failed quota: team: must specify limits.cpu"),
            Stuck,
            "web: 1 of 2 pods missing: ReplicaSet web-6d4 cannot create pods: quota `team` requires pods to specify limits.cpu",
        ),
        row(
            refused("admission webhook \"pods.acme.example\" denied the request: no team label"),
            Stuck,
            "web: 1 of 2 pods missing: ReplicaSet web-6d4 cannot create pods: denied by webhook `pods.acme.example`: no team label",
        ),
        row(
            refused(
                "Internal error occurred: failed calling webhook \"a.b\": failed to call webhook: connection refused",
            ),
            Stuck,
            "web: 1 of 2 pods missing: ReplicaSet web-6d4 cannot create pods: webhook `a.b` does not answer: connection refused",
        ),
        row(
            refused("pods \"web\" is forbidden: violates PodSecurity \"restricted:latest\": runAsNonRoot != true"),
            Stuck,
            "web: 1 of 2 pods missing: ReplicaSet web-6d4 cannot create pods: denied by Pod Security `restricted:latest`: runAsNonRoot != true",
        ),
        row(
            refused("pods \"web\" is forbidden: maximum memory usage per Pod is 1Gi, but limit is 2Gi"),
            Stuck,
            "web: 1 of 2 pods missing: ReplicaSet web-6d4 cannot create pods: denied by a LimitRange: maximum memory usage per Pod is 1Gi, but limit is 2Gi",
        ),
        row(
            refused(
                "pods \"web-\" is forbidden: error looking up service account team/robot: serviceaccount \"robot\" not found",
            ),
            Stuck,
            "web: 1 of 2 pods missing: ReplicaSet web-6d4 cannot create pods: ServiceAccount `robot` not found",
        ),
        row(
            refused("pods \"web\" is forbidden: no PriorityClass with name high was found"),
            Stuck,
            "web: 1 of 2 pods missing: ReplicaSet web-6d4 cannot create pods: PriorityClass `high` not found",
        ),
        row(
            refused(
                "pods \"web\" is forbidden: ValidatingAdmissionPolicy 'small' with binding 'b' denied request: too big",
            ),
            Stuck,
            "web: 1 of 2 pods missing: ReplicaSet web-6d4 cannot create pods: denied by policy `small`: too big",
        ),
        row(
            refused(
                "pods \"web\" is forbidden: unable to create new content in namespace team because it is being terminated",
            ),
            Stuck,
            "web: 1 of 2 pods missing: ReplicaSet web-6d4 cannot create pods: namespace `team` is being deleted",
        ),
        row(
            refused("Pod \"web\" is invalid: spec.containers[0].image: Required value"),
            Stuck,
            "web: 1 of 2 pods missing: ReplicaSet web-6d4 cannot create pods: invalid: spec.containers[0].image: Required value",
        ),
    ]
}

/// Where the refusal is of before, or of the operator itself.
fn operators_refused() -> Vec<Row> {
    vec![
        row(
            operator(refused(QUOTA), "replicaset-operator", |asked| asked.lease = Lookup::Absent),
            Stuck,
            "web: not reconciled: neither replicaset-operator nor kube-controller-manager's replicaset-controller is running",
        ),
        row(
            refused("pods is forbidden: User \"system:serviceaccount:kube-system:x\" cannot create resource \"pods\""),
            Stuck,
            "web: replicaset-operator lacks a permission: User \"system:serviceaccount:kube-system:x\" cannot create resource \"pods\"",
        ),
    ]
}

fn of_spec() -> Vec<Row> {
    let clash = deployment(1, &json!({ "metadata": { "name": "api", "uid": "api" } }));
    let mut clashing = rolled_out(1, 1, &json!({}));
    clashing.objects.push(clash);
    let selector = |value: Value| rolled_out(1, 1, &json!({ "spec": { "selector": value } }));
    let scaler = json!({
        "spec": { "scaleTargetRef": { "kind": "Deployment", "name": "web" }, "minReplicas": 1, "maxReplicas": 9 },
    });
    let mut scaled = rolled_out(0, 0, &json!({}));
    scaled.objects.push(object("autoscaling/v2", "HorizontalPodAutoscaler", "web", &scaler));
    let mut to_zero = rolled_out(0, 0, &json!({}));
    let scaler = with(scaler, &json!({ "spec": { "minReplicas": 0 } }));
    to_zero.objects.push(object("autoscaling/v2", "HorizontalPodAutoscaler", "web", &scaler));
    vec![
        row(clashing, Stuck, "web: selector overlaps with deployment/api"),
        row(
            selector(json!({ "matchLabels": { "app": "api" } })),
            Stuck,
            "web: invalid selector: app=api does not match the labels of the pod template",
        ),
        row(
            selector(json!({ "matchLabels": null })),
            Stuck,
            "web: invalid selector: it is empty and selects everything",
        ),
        row(
            selector(json!({ "matchExpressions": [{ "key": "app", "operator": "Near", "values": ["a"] }] })),
            Stuck,
            "web: invalid selector: \"Near\" is not a valid label selector operator",
        ),
        row(
            rolled_out(3, 3, &json!({ "spec": { "paused": true }, "status": { "updatedReplicas": 1 } })),
            AtRest,
            "web: rollout paused: 1 of 3 pods updated",
        ),
        row(rolled_out(0, 0, &json!({})), AtRest, "web: scaled to zero (replicas: 0)"),
        row(rolled_out(1, 0, &json!({})), InProgress, "web: scaled to zero (replicas: 0), 1 pod left"),
        row(
            scaled,
            AtRest,
            "web: scaled to zero (replicas: 0); horizontalpodautoscaler/web does not scale up from zero",
        ),
        row(to_zero, AtRest, "web: scaled to zero by horizontalpodautoscaler/web (replicas: 0)"),
    ]
}

fn under_way() -> Vec<Row> {
    let late = json!([{ "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded" }]);
    let late =
        json!({ "spec": { "progressDeadlineSeconds": 60 }, "status": { "updatedReplicas": 1, "conditions": late } });
    let new = json!([{ "type": "Ready", "status": "True", "lastTransitionTime": time(-10) }]);
    let mut young = rolled_out(1, 2, &json!({ "spec": { "minReadySeconds": 30 } }));
    young.objects.push(pod("web-new", &json!({ "status": { "conditions": new } })));
    let edited = rolled_out(2, 2, &json!({ "metadata": { "generation": 5 } }));
    vec![
        row(
            young,
            InProgress,
            "web: 1 of 2 pods ready, but for less than 30 s (minReadySeconds); the next one becomes available in 20 s",
        ),
        row(
            rolled_out(2, 2, &late),
            Stuck,
            "web: rollout made no progress for 60 s (progressDeadlineSeconds): 1 of 2 pods updated",
        ),
        row(
            rolled_out(4, 4, &json!({ "status": { "updatedReplicas": 1, "availableReplicas": 4 } })),
            InProgress,
            "web: rolling out: 1 of 4 pods updated, 3 old, 4 available",
        ),
        row(rolled_out(4, 5, &json!({})), InProgress, "web: scaling: 4 of 5 pods ready, 4 created"),
        row(edited, InProgress, "web: latest spec not yet observed (generation 5, observed 4)"),
        row(rolled_out(20, 20, &json!({})), AtRest, "web: 20 of 20 pods ready"),
        row(rolled_out(1, 1, &json!({})), AtRest, "web: 1 of 1 pod ready"),
    ]
}

fn others() -> Vec<Row> {
    let absent = |similar: &[&str]| {
        let mut nothing = rolled_out(0, 1, &json!({}));
        nothing.objects.clear();
        nothing.similar = similar.iter().map(|name| (*name).to_owned()).collect();
        nothing
    };
    let condition = json!([{ "type": "Ready", "status": "False", "reason": "NoIssuer", "message": "no issuer", "lastTransitionTime": time(-60) }]);
    let custom = |rest: &Value| evidence(vec![object("example.com/v1", "Certificate", "tls", rest)]);
    let claim = object("v1", "PersistentVolumeClaim", "data", &json!({ "status": { "phase": "Pending" } }));
    let told = event("data", "ProvisioningFailed", "no storage class.", -5);
    let daemons = json!({
        "metadata": { "generation": 1 },
        "spec": { "selector": { "matchLabels": { "app": "web" } }, "template": { "metadata": { "labels": { "app": "web" } } } },
        "status": { "observedGeneration": 1, "desiredNumberScheduled": 1, "updatedNumberScheduled": 1 },
    });
    let daemons = evidence(vec![
        object("apps/v1", "DaemonSet", "web-6d4", &daemons),
        with(pod("web-0", &json!({})), &json!({ "metadata": { "labels": { "app": "web" } } })),
    ]);
    let taints = json!([{ "key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule" }]);
    let node = || evidence(vec![object("v1", "Node", "n1", &json!({ "spec": { "taints": taints } }))]);
    let unknown = says(node(), "cloud-node-operator", ("nodes", "n1"), |said| {
        fails(said, "wait for the next try", "cannot initialize the node: the provider does not know its instance");
    });
    let name = "n".repeat(53);
    let long = json!({
        "metadata": { "name": name, "generation": 1 },
        "spec": { "replicas": 1, "selector": { "matchLabels": { "app": "web" } }, "template": { "metadata": { "labels": { "app": "web" } } } },
        "status": { "observedGeneration": 1, "updateRevision": format!("{name}-7cd77cbbd9") },
    });
    let db = |rest: &Value| object("apps/v1", "StatefulSet", "db", &with(long.clone(), rest));
    let running = || owned(pod("db-0", &json!({})), "StatefulSet", "db");
    let of_old = evidence(vec![db(&json!({})), running()]);
    let of_new = evidence(vec![db(&json!({ "status": { "updatedReplicas": 1 } })), running()]);
    let gone = operator(absent(&[]), "deployment-operator", |asked| asked.silence = Some("?".to_owned()));
    vec![
        row(gone, Stuck, "web: Deployment not found in namespace team"),
        row(absent(&["wep"]), Stuck, "web: Deployment not found in namespace team; did you mean wep?"),
        row(
            custom(&json!({ "status": { "conditions": condition } })),
            Stuck,
            "tls: condition Ready has not been true for 60 s: no issuer",
        ),
        row(custom(&json!({})), AtRest, "tls: no problem found"),
        row(node(), Stuck, "n1: not initialized by its cloud: no reason is known"),
        row(
            unknown,
            Stuck,
            "n1: not initialized by its cloud: cannot initialize the node: the provider does not know its instance",
        ),
        row(evidence(vec![claim, told]), InProgress, "data: phase Pending: no storage class"),
        row(
            evidence(vec![db(&json!({ "status": { "updateRevision": format!("{name}-7cd77cbbd9x") } }))]),
            Stuck,
            "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: name too long: the label controller-revision-hash of its pods would have 65 characters, more than 63; use a name of at most 52 characters",
        ),
        row(
            of_old,
            Stuck,
            "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: name too long: the label controller-revision-hash of its pods would have 64 characters, more than 63; use a name of at most 52 characters",
        ),
        row(of_new, AtRest, "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: 1 of 1 pod ready"),
        row(daemons, AtRest, "web-6d4: 1 of 1 pod ready"),
    ]
}

pub(crate) fn rows() -> Vec<Row> {
    [refusals(), operators_refused(), of_spec(), under_way(), others()].concat()
}
