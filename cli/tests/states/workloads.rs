//! The states of controllers that keep pods.

use cli::cause::State::{AtRest, InProgress, Stuck};
use cli::evidence::{Evidence, Seen};
use serde_json::{Value, json};

use super::scene::{
    Row, deployment, event, evidence, fails, hidden, object, operator, pod, pods, replica_set, row, says, time, with,
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
    evidence.hidden.push(hidden("nodes"));
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
            "web: 3 of 20 pods missing: ReplicaSet web-6d4 is refused by quota `team` (pods 17/17), next try in 12 s",
        ),
        row(
            refused("pods \"web\" is forbidden: failed quota: team: must specify limits.cpu"),
            Stuck,
            "web: 1 of 2 pods missing: ReplicaSet web-6d4 is refused by quota `team`: its pods must specify limits.cpu",
        ),
        row(
            refused("admission webhook \"pods.acme.example\" denied the request: no team label"),
            Stuck,
            "web: 1 of 2 pods missing: ReplicaSet web-6d4 is refused by webhook `pods.acme.example`: no team label",
        ),
        row(
            refused(
                "Internal error occurred: failed calling webhook \"a.b\": failed to call webhook: connection refused",
            ),
            Stuck,
            "web: 1 of 2 pods missing: ReplicaSet web-6d4 is refused by webhook `a.b`, which does not answer: connection refused",
        ),
        row(
            refused("pods \"web\" is forbidden: violates PodSecurity \"restricted:latest\": runAsNonRoot != true"),
            Stuck,
            "web: 1 of 2 pods missing: ReplicaSet web-6d4 is refused by Pod Security `restricted:latest`: runAsNonRoot != true",
        ),
        row(
            refused("pods \"web\" is forbidden: maximum memory usage per Pod is 1Gi, but limit is 2Gi"),
            Stuck,
            "web: 1 of 2 pods missing: ReplicaSet web-6d4 is refused by a LimitRange: maximum memory usage per Pod is 1Gi, but limit is 2Gi",
        ),
        row(
            refused(
                "pods \"web-\" is forbidden: error looking up service account team/robot: serviceaccount \"robot\" not found",
            ),
            Stuck,
            "web: 1 of 2 pods missing: ReplicaSet web-6d4 is refused by the apiserver: there is no ServiceAccount `robot`",
        ),
        row(
            refused("pods \"web\" is forbidden: no PriorityClass with name high was found"),
            Stuck,
            "web: 1 of 2 pods missing: ReplicaSet web-6d4 is refused by the apiserver: there is no PriorityClass `high`",
        ),
        row(
            refused(
                "pods \"web\" is forbidden: ValidatingAdmissionPolicy 'small' with binding 'b' denied request: too big",
            ),
            Stuck,
            "web: 1 of 2 pods missing: ReplicaSet web-6d4 is refused by policy `small`: too big",
        ),
        row(
            refused(
                "pods \"web\" is forbidden: unable to create new content in namespace team because it is being terminated",
            ),
            Stuck,
            "web: 1 of 2 pods missing: ReplicaSet web-6d4 is refused by the apiserver: namespace `team` is being deleted",
        ),
        row(
            refused("Pod \"web\" is invalid: spec.containers[0].image: Required value"),
            Stuck,
            "web: 1 of 2 pods missing: ReplicaSet web-6d4 is refused by the apiserver, as invalid: spec.containers[0].image: Required value",
        ),
    ]
}

/// Where the refusal is of before, or of the operator itself.
fn operators_refused() -> Vec<Row> {
    vec![
        row(
            operator(refused(QUOTA), "replicaset-operator", |asked| asked.lease = Seen::Absent),
            Stuck,
            "web: nobody acts on it: neither replicaset-operator nor kube-controller-manager's replicaset-controller runs",
        ),
        row(
            refused("pods is forbidden: User \"system:serviceaccount:kube-system:x\" cannot create resource \"pods\""),
            Stuck,
            "web: replicaset-operator may not do what it has to: User \"system:serviceaccount:kube-system:x\" cannot create resource \"pods\"",
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
        row(clashing, Stuck, "web: its selector also selects the pods of deployment/api"),
        row(
            selector(json!({ "matchLabels": { "app": "api" } })),
            Stuck,
            "web: its selector cannot be used: app=api does not select the pods of its own template",
        ),
        row(
            selector(json!({ "matchLabels": null })),
            Stuck,
            "web: its selector cannot be used: it is empty, and so selects everything",
        ),
        row(
            selector(json!({ "matchExpressions": [{ "key": "app", "operator": "Near", "values": ["a"] }] })),
            Stuck,
            "web: its selector cannot be used: \"Near\" is not a valid label selector operator",
        ),
        row(
            rolled_out(3, 3, &json!({ "spec": { "paused": true }, "status": { "updatedReplicas": 1 } })),
            AtRest,
            "web: its rollout is paused: 1 of 3 pods are of the new template",
        ),
        row(rolled_out(0, 0, &json!({})), AtRest, "web: no pod is asked for (replicas: 0)"),
        row(rolled_out(1, 0, &json!({})), InProgress, "web: no pod is asked for (replicas: 0), 1 still there"),
        row(
            scaled,
            AtRest,
            "web: no pod is asked for (replicas: 0), and horizontalpodautoscaler/web leaves alone what is at zero",
        ),
        row(to_zero, AtRest, "web: no pod is asked for by horizontalpodautoscaler/web (replicas: 0)"),
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
            "web: 1 of 2 pods are ready, but not for 30 s yet (minReadySeconds), the next one counts in 20 s",
        ),
        row(
            rolled_out(2, 2, &late),
            Stuck,
            "web: its rollout did not get on for 60 s (progressDeadlineSeconds): 1 of 2 pods are of the new template",
        ),
        row(
            rolled_out(4, 4, &json!({ "status": { "updatedReplicas": 1, "availableReplicas": 4 } })),
            InProgress,
            "web: rolling out: 1 of 4 pods are of the new template, 3 old, 4 available",
        ),
        row(rolled_out(4, 5, &json!({})), InProgress, "web: 4 of 5 pods are ready, 4 there"),
        row(edited, InProgress, "web: its newest state was not looked at yet (generation 5, looked at 4)"),
        row(rolled_out(20, 20, &json!({})), AtRest, "web: 20 of 20 pods are there and ready"),
        row(rolled_out(1, 1, &json!({})), AtRest, "web: 1 of 1 pod is there and ready"),
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
    let gone = operator(absent(&[]), "deployment-operator", |asked| asked.silence = Some("?".to_owned()));
    vec![
        row(gone, Stuck, "web: there is no such Deployment in namespace team"),
        row(absent(&["wep"]), Stuck, "web: there is no such Deployment in namespace team; there is wep"),
        row(
            custom(&json!({ "status": { "conditions": condition } })),
            Stuck,
            "tls: Ready is not true for 60 s: no issuer",
        ),
        row(custom(&json!({})), AtRest, "tls: nothing says that anything is wrong"),
        row(evidence(vec![claim, told]), InProgress, "data: it is Pending: no storage class"),
        row(daemons, AtRest, "web-6d4: 1 of 1 pod is there and ready"),
    ]
}

pub(crate) fn rows() -> Vec<Row> {
    [refusals(), operators_refused(), of_spec(), under_way(), others()].concat()
}
