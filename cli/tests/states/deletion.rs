//! Objects that are deleted and still there, and objects without their owner.

use cli::cause::State::{InProgress, Stuck};
use cli::evidence::Evidence;
use cli::lookup::Lookup;
use serde_json::{Value, json};

use super::scene::{
    Row, cache, deployment, event, evidence, fails, lease, object, operator, owned, pod, replica_set, row, says, time,
    with,
};

const COLLECTOR: &str = "garbage-collector-operator";
const TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// Deleted five minutes ago, with these finalizers.
fn deleted(finalizers: &Value) -> Value {
    json!({ "metadata": { "deletionTimestamp": time(-300), "finalizers": finalizers } })
}

fn namespace(conditions: &Value) -> Evidence {
    let rest = json!({
        "metadata": { "namespace": null, "deletionTimestamp": time(-300) },
        "spec": { "finalizers": ["kubernetes"] },
        "status": { "phase": "Terminating", "conditions": conditions },
    });
    evidence(vec![with(object("v1", "Namespace", "team", &json!({})), &rest)])
}

fn namespaces() -> Vec<Row> {
    let condition =
        |name: &str, message: &str| json!({ "type": name, "status": "True", "reason": "Some", "message": message });
    let content = condition(
        "NamespaceContentRemaining",
        "Some resources are remaining: widgets.acme.example has 1 resource instances",
    );
    let held = condition(
        "NamespaceFinalizersRemaining",
        "Some content in the namespace has finalizers remaining: acme.example/hold in 1 resource instances",
    );
    let unknown = condition(
        "NamespaceDeletionDiscoveryFailure",
        "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: metrics.k8s.io/v1beta1: stale",
    );
    let blind = operator(namespace(&json!([])), "namespace-operator", |asked| asked.lease = Lookup::Absent);
    // The conditions in its status are old.
    let left = operator(namespace(&json!([content, held])), "namespace-operator", |asked| asked.lease = lease("", -2));
    let died = operator(namespace(&json!([unknown])), "namespace-operator", |asked| asked.lease = lease("op-0_1", -60));
    vec![
        row(
            namespace(&json!([content, held])),
            Stuck,
            "team: deleted 5 min ago; not empty: widgets.acme.example has 1 resource instances; finalizers: acme.example/hold in 1 resource instances; `acme.example/hold` is removed by whoever put it there (acme.example)",
        ),
        row(
            namespace(&json!([condition(
                "NamespaceContentRemaining",
                "Some resources are remaining: pods. has 2 resource instances"
            )])),
            InProgress,
            "team: deleted 5 min ago; not empty: pods has 2 resource instances",
        ),
        row(
            namespace(&json!([unknown])),
            Stuck,
            "team: deleted, but its content is unknown because APIService v1beta1.metrics.k8s.io does not answer (NamespaceDeletionDiscoveryFailure): Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: metrics.k8s.io/v1beta1: stale",
        ),
        row(namespace(&json!([])), InProgress, "team: deleted 5 min ago; its content is being deleted"),
        row(
            blind,
            Stuck,
            "team: not reconciled: neither namespace-operator nor kube-controller-manager's namespace-controller is running",
        ),
        row(left, Stuck, "team: not reconciled: no replica of namespace-operator holds its Lease"),
        row(died, Stuck, "team: not reconciled: the Lease of namespace-operator expired 45 s ago (last holder op-0)"),
    ]
}

fn finalizers() -> Vec<Row> {
    let of = |finalizers: Value| deployment(1, &deleted(&finalizers));
    let claim = with(
        object("v1", "PersistentVolumeClaim", "data", &json!({})),
        &deleted(&json!(["kubernetes.io/pvc-protection"])),
    );
    let held = replica_set(1, &deleted(&json!(["acme.example/hold"])));
    vec![
        row(
            evidence(vec![of(json!(["acme.example/hold"]))]),
            Stuck,
            "web: deleted 5 min ago; waiting for finalizer `acme.example/hold`, removed by whoever put it there (acme.example)",
        ),
        row(
            evidence(vec![claim]),
            Stuck,
            "data: deleted 5 min ago; waiting for finalizer `kubernetes.io/pvc-protection`, removed by persistentvolumeclaim-protection-operator (once no pod uses the claim)",
        ),
        row(
            evidence(vec![of(json!(["foregroundDeletion"])), replica_set(1, &json!({}))]),
            InProgress,
            "web: deleted 5 min ago in the foreground; waiting for 1 dependent: replicaset/web-6d4",
        ),
        row(
            evidence(vec![of(json!(["foregroundDeletion"])), held]),
            Stuck,
            "web: deleted 5 min ago in the foreground; waiting for 1 dependent: replicaset/web-6d4, held by finalizer `acme.example/hold`, removed by whoever put it there (acme.example)",
        ),
        row(
            evidence(vec![of(json!(["foregroundDeletion"]))]),
            InProgress,
            "web: deleted 5 min ago in the foreground; no blocking dependent found, waiting for garbage-collector-operator",
        ),
        row(
            evidence(vec![of(json!(["orphan"])), replica_set(1, &json!({}))]),
            InProgress,
            "web: deleted 5 min ago; garbage-collector-operator orphans its 1 dependent first (finalizer orphan)",
        ),
        row(
            evidence(vec![deployment(1, &deleted(&json!([])))]),
            InProgress,
            "web: deleted 5 min ago; nothing blocks it",
        ),
    ]
}

/// A Deployment that is deleted in the foreground, and its ReplicaSet.
fn foreground(set: &Value, pods: Vec<Value>) -> Evidence {
    let mut objects = vec![deployment(1, &deleted(&json!(["foregroundDeletion"]))), replica_set(1, set)];
    objects.extend(pods);
    evidence(objects)
}

fn dependents() -> Vec<Row> {
    let ends = deleted(&json!(["foregroundDeletion"]));
    let denied = "replicasets.apps \"web-6d4\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: nothing is deleted here";
    let refused = says(foreground(&json!({}), Vec::new()), COLLECTOR, ("replicasets.apps", "web-6d4"), |said| {
        fails(said, "delete", denied);
    });
    let held = || pod("web-a", &deleted(&json!(["acme.example/hold"])));
    let ending = |seconds: i64| pod("web-a", &json!({ "metadata": { "deletionTimestamp": time(seconds) } }));
    let of_set = |pods: Vec<Value>| evidence([vec![replica_set(1, &ends)], pods].concat());
    vec![
        row(
            operator(foreground(&json!({}), Vec::new()), COLLECTOR, |asked| asked.lease = Lookup::Absent),
            Stuck,
            "web: not reconciled: neither garbage-collector-operator nor kube-controller-manager's garbage-collector-controller is running",
        ),
        row(
            refused,
            Stuck,
            "web: garbage-collector-operator failed 4 times in a row, next retry in 12 s: denied by policy `p`: nothing is deleted here",
        ),
        row(
            foreground(&ends, vec![held()]),
            Stuck,
            "web: deleted 5 min ago in the foreground; waiting for 1 dependent: replicaset/web-6d4; pod/web-a is held by finalizer `acme.example/hold`, removed by whoever put it there (acme.example)",
        ),
        row(
            foreground(&ends, vec![ending(-60)]),
            Stuck,
            "web: deleted 5 min ago in the foreground; waiting for 1 dependent: replicaset/web-6d4; pod/web-a is past its grace period, but node n1 has not removed it",
        ),
        row(
            of_set(vec![ending(-60)]),
            Stuck,
            "web-6d4: deleted 5 min ago in the foreground; waiting for 1 dependent: pod/web-a, past its grace period, but node n1 has not removed it",
        ),
        row(
            of_set(vec![ending(20)]),
            InProgress,
            "web-6d4: deleted 5 min ago in the foreground; waiting for 1 dependent: pod/web-a",
        ),
    ]
}

/// A pod that was deleted, and that job-operator has not counted.
fn tracked() -> Evidence {
    let job = object("batch/v1", "Job", "load", &json!({}));
    evidence(vec![owned(pod("web-a", &deleted(&json!([TRACKING]))), "Job", "load"), job])
}

fn removers() -> Vec<Row> {
    let job = object("batch/v1", "Job", "load", &deleted(&json!(["foregroundDeletion"])));
    let waiting = evidence([vec![job], tracked().objects[..1].to_vec()].concat());
    vec![
        row(
            tracked(),
            Stuck,
            "web-a: deleted 5 min ago; waiting for finalizer `batch.kubernetes.io/job-tracking`, removed by job-operator",
        ),
        row(
            operator(tracked(), "job-operator", |asked| asked.lease = Lookup::Absent),
            Stuck,
            "web-a: not reconciled: neither job-operator nor kube-controller-manager's job-controller is running",
        ),
        row(
            says(tracked(), "job-operator", ("jobs.batch", "load"), |said| {
                fails(said, "count web-a", "etcdserver: request timed out");
            }),
            Stuck,
            "web-a: job-operator failed 4 times in a row, next retry in 12 s: etcdserver: request timed out",
        ),
        row(
            operator(waiting, "job-operator", |asked| asked.lease = Lookup::Absent),
            Stuck,
            "load: not reconciled: neither job-operator nor kube-controller-manager's job-controller is running",
        ),
    ]
}

fn pods() -> Vec<Row> {
    let ending = |seconds: i64| {
        let metadata = json!({ "deletionTimestamp": time(seconds), "deletionGracePeriodSeconds": 30 });
        evidence(vec![pod("web-a", &json!({ "metadata": metadata }))])
    };
    vec![
        row(ending(20), InProgress, "web-a: deleted; its containers on node n1 are terminating (deadline in 20 s)"),
        row(ending(-60), Stuck, "web-a: deleted 90 s ago; past its grace period, but node n1 has not removed it"),
    ]
}

fn owners() -> Vec<Row> {
    let orphan = || {
        let mut alone = evidence(vec![owned(object("v1", "ConfigMap", "settings", &json!({})), "Deployment", "web")]);
        alone.absent_owners.push("web".to_owned());
        alone
    };
    let mut elsewhere = orphan();
    let message =
        "ownerRef [apps/v1/Deployment, namespace: team, name: web, uid: web] does not exist in namespace \"team\"";
    elsewhere.objects.push(event("settings", "OwnerRefInvalidNamespace", message, -5));
    // The garbage collector follows every kind, and needs but this one's.
    let beside = |broken: &str| {
        let mut notes = evidence(vec![owned(object("v1", "ConfigMap", "notes", &json!({})), "Deployment", "web")]);
        notes.absent_owners.push("web".to_owned());
        says(notes, COLLECTOR, ("configmaps", "notes"), |said| {
            said.caches = ["configmaps", "configmaps.acme.example"].map(cache).to_vec();
            let found = said.caches.iter_mut().find(|cache| cache.resource == broken);
            found.expect(broken).failing = Some("conversion webhook: connection refused".to_owned());
        })
    };
    let mut replaced = orphan();
    replaced.objects.push(deployment(1, &json!({ "metadata": { "uid": "other" } })));
    vec![
        row(
            elsewhere,
            Stuck,
            "settings: owner deployment/web does not exist in its namespace; it will be garbage-collected: ownerRef [apps/v1/Deployment, namespace: team, name: web, uid: web] does not exist in namespace \"team\"",
        ),
        row(orphan(), InProgress, "settings: owner deployment/web is gone: garbage-collector-operator deletes it"),
        row(
            beside("configmaps.acme.example"),
            InProgress,
            "notes: owner deployment/web is gone: garbage-collector-operator deletes it",
        ),
        row(
            beside("configmaps"),
            Stuck,
            "notes: garbage-collector-operator cannot list or watch configmaps: conversion webhook: connection refused",
        ),
        row(
            replaced,
            InProgress,
            "settings: owner deployment/web was replaced by another object of that name: garbage-collector-operator deletes it",
        ),
    ]
}

pub(crate) fn rows() -> Vec<Row> {
    [namespaces(), finalizers(), dependents(), removers(), pods(), owners()].concat()
}
