//! Pods that are not ready, as their Deployment's cause and as their own.

use cli::cause::State::{AtRest, InProgress, Stuck};
use cli::evidence::Evidence;
use serde_json::{Value, json};

use super::scene::{Row, deployment, event, evidence, object, pod, pod_in, replica_set, row, time, with};

/// A pod with all that owns it.
pub(crate) fn owned() -> Evidence {
    evidence(vec![pod_in(&json!({}), &json!({})), replica_set(1, &json!({})), deployment(1, &json!({}))])
}

fn of_deployment(pods: Vec<Value>) -> Evidence {
    let mut objects = vec![deployment(3, &json!({})), replica_set(3, &json!({}))];
    objects.extend(pods);
    objects.extend([pod("web-b", &json!({})), pod("web-c", &json!({}))]);
    evidence(objects)
}

fn waiting(reason: &str, message: &str) -> Value {
    json!({ "state": { "waiting": { "reason": reason, "message": message } } })
}

fn terminated(reason: &str, code: i64) -> Value {
    json!({
        "restartCount": 5,
        "state": { "waiting": { "reason": "CrashLoopBackOff" } },
        "lastState": { "terminated": { "reason": reason, "exitCode": code } },
    })
}

fn unscheduled(condition: &Value) -> Value {
    let conditions = if condition.is_null() { json!([]) } else { json!([condition]) };
    let pod = pod("web-a", &json!({ "status": { "phase": "Pending", "conditions": conditions } }));
    with(pod, &json!({ "spec": { "nodeName": null } }))
}

fn of_containers() -> Vec<Row> {
    let row_of = |state: &Value, expected| row(of_deployment(vec![pod_in(state, &json!({}))]), Stuck, expected);
    let limited =
        json!({ "spec": { "containers": [{ "name": "main", "resources": { "limits": { "memory": "128Mi" } } }] } });
    let running = json!({ "state": { "running": { "startedAt": time(-300) } } });
    let unhealthy = event("web-a", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503", -4);
    vec![
        row_of(
            &waiting("ImagePullBackOff", "Back-off pulling image \"web:2\""),
            "web: 1 of 3 pods not ready: web-a: cannot pull image `web:2` (ImagePullBackOff): Back-off pulling image \"web:2\"",
        ),
        row_of(
            &waiting("CreateContainerConfigError", "configmap \"settings\" not found"),
            "web: 1 of 3 pods not ready: web-a: cannot configure container main: configmap \"settings\" not found",
        ),
        row_of(
            &waiting("RunContainerError", "exec: \"serve\": not found"),
            "web: 1 of 3 pods not ready: web-a: cannot start container main: exec: \"serve\": not found",
        ),
        row_of(
            &terminated("Error", 1),
            "web: 1 of 3 pods not ready: web-a: container main keeps exiting (exit code 1, Error; 5 restarts)",
        ),
        row(
            of_deployment(vec![pod_in(&terminated("OOMKilled", 137), &limited)]),
            Stuck,
            "web: 1 of 3 pods not ready: web-a: container main exceeds its memory limit of 128Mi (5 restarts)",
        ),
        row_of(
            &terminated("OOMKilled", 137),
            "web: 1 of 3 pods not ready: web-a: container main was OOM-killed because its node ran out of memory (5 restarts)",
        ),
        row(
            of_deployment(vec![pod_in(&running, &json!({})), unhealthy]),
            Stuck,
            "web: 1 of 3 pods not ready: web-a: container main is not ready: Readiness probe failed: HTTP probe failed with statuscode: 503",
        ),
        row_of(&running, "web: 1 of 3 pods not ready: web-a: container main is not ready"),
    ]
}

fn before_containers() -> Vec<Row> {
    let creating = || pod_in(&waiting("ContainerCreating", ""), &json!({}));
    let message = "0/3 nodes are available: 3 Insufficient cpu.";
    let no_node = json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message });
    let gated = json!({ "type": "PodScheduled", "status": "False", "reason": "SchedulingGated" });
    let gated = with(unscheduled(&gated), &json!({ "spec": { "schedulingGates": [{ "name": "acme.example/gate" }] } }));
    let other = with(unscheduled(&Value::Null), &json!({ "spec": { "schedulerName": "fancy" } }));
    let young = with(other.clone(), &json!({ "metadata": { "creationTimestamp": time(-2) } }));
    let init = json!([
        { "name": "first", "state": { "terminated": { "exitCode": 0 } } },
        { "name": "migrate", "state": { "running": {} } },
    ]);
    let failing = json!([{ "name": "migrate", "restartCount": 2, "state": { "waiting": { "reason": "CrashLoopBackOff" } }, "lastState": { "terminated": { "exitCode": 3, "reason": "Error" } } }]);
    let with_init =
        |init: Value| pod_in(&waiting("PodInitializing", ""), &json!({ "status": { "initContainerStatuses": init } }));
    vec![
        row(
            of_deployment(vec![unscheduled(&no_node)]),
            Stuck,
            "web: 1 of 3 pods not ready: web-a: unschedulable: 0/3 nodes are available: 3 Insufficient cpu",
        ),
        row(
            of_deployment(vec![gated]),
            Stuck,
            "web: 1 of 3 pods not ready: web-a: waiting for scheduling gate acme.example/gate",
        ),
        row(
            of_deployment(vec![other]),
            Stuck,
            "web: 1 of 3 pods not ready: web-a: not yet picked up by scheduler `fancy`",
        ),
        row(of_deployment(vec![young]), InProgress, "web: scaling: 2 of 3 pods ready, 3 created"),
        row(
            of_deployment(vec![
                creating(),
                event("web-a", "FailedMount", "MountVolume.SetUp failed for volume \"data\"", -9),
            ]),
            Stuck,
            "web: 1 of 3 pods not ready: web-a: waiting for a volume: MountVolume.SetUp failed for volume \"data\"",
        ),
        row(
            of_deployment(vec![creating(), event("web-a", "FailedCreatePodSandBox", "no IP addresses", -9)]),
            Stuck,
            "web: 1 of 3 pods not ready: web-a: cannot create the pod sandbox: no IP addresses",
        ),
        row(evidence(vec![with_init(init)]), InProgress, "web-a: init container migrate is running (1 of 2 done)"),
        row(
            of_deployment(vec![with_init(failing)]),
            Stuck,
            "web: 1 of 3 pods not ready: web-a: container migrate keeps exiting (exit code 3, Error; 2 restarts)",
        ),
        row(evidence(vec![creating()]), InProgress, "web-a: its containers are starting"),
    ]
}

fn whole_pods() -> Vec<Row> {
    let gate = json!({
        "spec": { "readinessGates": [{ "conditionType": "acme.example/lb" }] },
        "status": {
            "conditions": [{ "type": "Ready", "status": "False" }, { "type": "ContainersReady", "status": "True" }],
            "containerStatuses": [{ "name": "main", "ready": true }],
        },
    });
    let node = object(
        "v1",
        "Node",
        "n1",
        &json!({ "metadata": { "namespace": null }, "status": { "conditions": [{ "type": "Ready", "status": "Unknown" }] } }),
    );
    let evicted = json!({ "status": { "phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory." } });
    let late = json!([{ "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded" }]);
    let mut late = vec![deployment(3, &json!({ "status": { "conditions": late } })), replica_set(3, &json!({}))];
    late.push(pod_in(&waiting("ErrImagePull", "not found"), &json!({})));
    late.push(pod_in(
        &waiting("ErrImagePull", "not found"),
        &json!({ "metadata": { "name": "web-b", "uid": "web-b" } }),
    ));
    let mut initializing = late[..2].to_vec();
    let init = json!([{ "name": "migrate", "state": { "running": {} } }]);
    initializing.push(pod_in(&waiting("PodInitializing", ""), &json!({ "status": { "initContainerStatuses": init } })));
    let strategy = json!({ "spec": { "strategy": { "type": "Recreate" } } });
    let deleted = json!({ "deletionTimestamp": time(-60), "finalizers": ["acme.example/hold"] });
    let old = pod("web-old", &json!({ "metadata": deleted }));
    let recreated = vec![deployment(1, &strategy), replica_set(1, &json!({})), old];
    let old = pod("web-old", &json!({ "metadata": { "deletionTimestamp": time(20) } }));
    let ending = vec![deployment(1, &strategy), replica_set(1, &json!({})), old];
    vec![
        row(evidence(ending), InProgress, "web: 1 of 1 pod not ready: web-old: its containers are terminating"),
        row(
            evidence(recreated),
            Stuck,
            "web: 1 of 1 pod not ready: web-old: being deleted, but held by finalizer acme.example/hold",
        ),
        row(
            of_deployment(vec![pod("web-a", &gate)]),
            Stuck,
            "web: 1 of 3 pods not ready: web-a: readiness gate acme.example/lb is not true",
        ),
        row(
            of_deployment(vec![pod_in(&json!({}), &json!({})), node]),
            Stuck,
            "web: 1 of 3 pods not ready: web-a: node n1 does not respond",
        ),
        row(
            evidence(vec![pod("web-a", &evicted)]),
            Stuck,
            "web-a: failed (Evicted): The node was low on resource: memory",
        ),
        row(
            evidence(late),
            Stuck,
            "web: 2 of 3 pods not ready: web-a and 1 other: cannot pull image `web:2` (ErrImagePull): not found (progress deadline exceeded)",
        ),
        row(
            evidence(initializing),
            Stuck,
            "web: 1 of 3 pods not ready: web-a: init container migrate is running (0 of 1 done) (progress deadline exceeded)",
        ),
        row(evidence(vec![pod("web-a", &json!({}))]), AtRest, "web-a: ready"),
        row(evidence(vec![pod("web-a", &json!({ "status": { "phase": "Succeeded" } }))]), AtRest, "web-a: completed"),
    ]
}

pub(crate) fn rows() -> Vec<Row> {
    [of_containers(), before_containers(), whole_pods()].concat()
}
