//! Pods. Upstream: `TestPodEvaluatorUsage`, `TestPodEvaluatorUsageResourceResize`, `TestPodEvaluatorMatchingScopes` and
//! `TestPodEvaluatorUsageWithPodLevelResources`, `pkg/quota/v1/evaluator/core/pods_test.go`.

use resourcequota_operator::objects::Pod;
use resourcequota_operator::observe::Objects;
use serde_json::{Value, json};
use shared::testing::{ObjectBuilder, ago, object};

use crate::fixtures::{facts, scope, used};

const ALL: &str = "pods count/pods cpu requests.cpu limits.cpu memory requests.memory limits.memory";

fn pod(spec: &Value) -> ObjectBuilder {
    object("v1", "Pod", "p").set(&["spec"], spec.clone())
}

fn container(resources: &Value) -> Value {
    json!({ "name": "c", "resources": resources })
}

fn requests(cpu: &str) -> Value {
    container(&json!({ "requests": { "cpu": cpu } }))
}

fn limits(cpu: &str) -> Value {
    container(&json!({ "limits": { "cpu": cpu } }))
}

fn pods(pods: &[ObjectBuilder]) -> Objects {
    Objects::Pods(pods.iter().map(facts::<Pod>).collect())
}

#[track_caller]
fn check(pod: &ObjectBuilder, names: &str, expected: &str) {
    assert_eq!(used(&pods(std::slice::from_ref(pod)), names, &[]), expected);
}

#[test]
fn a_pod_takes_what_its_containers_ask_for() {
    // "init container CPU", "container CPU"
    let both = json!({ "requests": { "cpu": "1m" }, "limits": { "cpu": "2m" } });
    let one = "count/pods=1 cpu=1m limits.cpu=2m limits.memory=0 memory=0 pods=1 requests.cpu=1m requests.memory=0";
    check(&pod(&json!({ "initContainers": [container(&both)] })), ALL, one);
    check(&pod(&json!({ "containers": [container(&both)] })), ALL, one);
    // "container MEM"
    let memory = container(&json!({ "requests": { "memory": "1M" }, "limits": { "memory": "2M" } }));
    let expected = "limits.memory=2M memory=1M requests.memory=1M";
    check(&pod(&json!({ "containers": [memory] })), "memory requests.memory limits.memory", expected);
    // "container ephemeral storage"
    let of = |amount: &str| json!({ "ephemeral-storage": amount });
    let storage = container(&json!({ "requests": of("32Mi"), "limits": of("64Mi") }));
    let names = "ephemeral-storage requests.ephemeral-storage limits.ephemeral-storage";
    let expected = "ephemeral-storage=32Mi limits.ephemeral-storage=64Mi requests.ephemeral-storage=32Mi";
    check(&pod(&json!({ "containers": [storage] })), names, expected);
}

#[test]
fn huge_pages_and_extended_resources_count_under_their_own_names() {
    // "container hugepages", "container extended resources", and an implicit one
    let resources = json!({
        "hugepages-2Mi": "100Mi", "example.com/gpu": "3", "deviceclass.resource.kubernetes.io/gpu": "2",
        "kubernetes.io/own": "5",
    });
    let spec = json!({ "containers": [container(&json!({ "requests": resources }))] });
    check(&pod(&spec), "hugepages-2Mi requests.hugepages-2Mi", "hugepages-2Mi=100Mi requests.hugepages-2Mi=100Mi");
    check(&pod(&spec), "requests.example.com/gpu example.com/gpu", "example.com/gpu=0 requests.example.com/gpu=3");
    let implicit = "requests.deviceclass.resource.kubernetes.io/gpu";
    check(&pod(&spec), implicit, &format!("{implicit}=2"));
    check(&pod(&spec), "requests.kubernetes.io/own", "requests.kubernetes.io/own=0");
}

#[test]
fn init_containers_run_one_after_the_other_and_sidecars_with_all() {
    // "init container maximums override sum of containers"
    let spec = json!({
        "initContainers": [requests("4"), requests("1")], "containers": [requests("1"), requests("2")],
    });
    check(&pod(&spec), "cpu", "cpu=4");
    // "sum of containers"
    let spec = json!({ "initContainers": [requests("2")], "containers": [requests("1"), requests("2500m")] });
    check(&pod(&spec), "cpu", "cpu=3500m");
    // "pod with restartable init containers"
    let mut sidecar = requests("1");
    sidecar["restartPolicy"] = "Always".into();
    let spec = json!({ "initContainers": [sidecar, requests("3")], "containers": [requests("2")] });
    check(&pod(&spec), "cpu", "cpu=4");
    let spec = json!({ "initContainers": [requests("3"), sidecar], "containers": [requests("3")] });
    check(&pod(&spec), "requests.cpu", "requests.cpu=4");
}

#[test]
fn overhead_is_added_to_requests_and_to_limits_that_are_there() {
    // "count pod overhead as usage"
    let both = json!({ "requests": { "cpu": "1" }, "limits": { "cpu": "2" } });
    let spec = json!({ "overhead": { "cpu": "1", "memory": "1Mi" }, "containers": [container(&both)] });
    check(&pod(&spec), "cpu limits.cpu memory limits.memory", "cpu=2 limits.cpu=3 limits.memory=0 memory=1Mi");
    let zero = json!({ "overhead": { "cpu": "1" }, "containers": [limits("0")] });
    check(&pod(&zero), "cpu limits.cpu", "cpu=1 limits.cpu=0");
}

#[test]
fn resources_of_the_whole_pod_take_the_place_of_its_containers() {
    let resources = json!({
        "requests": { "cpu": "5", "hugepages-2Mi": "4Mi", "example.com/gpu": "9" }, "limits": { "cpu": "8" },
    });
    let own = json!({ "requests": { "cpu": "1", "memory": "1Gi", "example.com/gpu": "1" }, "limits": { "cpu": "2" } });
    let spec = json!({ "resources": resources, "containers": [container(&own)], "overhead": { "cpu": "1" } });
    check(&pod(&spec), "cpu limits.cpu memory", "cpu=6 limits.cpu=9 memory=1Gi");
    check(&pod(&spec), "hugepages-2Mi requests.example.com/gpu", "hugepages-2Mi=4Mi requests.example.com/gpu=1");
}

#[test]
fn while_a_container_is_resized_the_larger_counts() {
    let own = json!({ "requests": { "cpu": "2" }, "limits": { "cpu": "3" } });
    let resized = |has: Value, allocated: Value, conditions: Value| {
        let status = json!([{ "name": "c", "resources": has, "allocatedResources": allocated }]);
        let pod = pod(&json!({ "containers": [container(&own)] })).set(&["status", "containerStatuses"], status);
        pod.set(&["status", "conditions"], conditions)
    };
    let cpu = |amount: &str| json!({ "cpu": amount });
    let has = |requests: &str, limits: &str| json!({ "requests": { "cpu": requests }, "limits": { "cpu": limits } });
    let names = "cpu limits.cpu";
    check(&resized(has("1", "1"), cpu("1"), json!([])), names, "cpu=2 limits.cpu=3");
    check(&resized(has("4", "5"), cpu("1"), json!([])), names, "cpu=4 limits.cpu=5");
    check(&resized(has("1", "1"), cpu("6"), json!([])), names, "cpu=6 limits.cpu=3");
    check(&resized(Value::Null, cpu("6"), json!([])), names, "cpu=2 limits.cpu=3");
    let pending = |reason: &str| json!([{ "type": "PodResizePending", "status": "True", "reason": reason }]);
    check(&resized(has("1", "1"), cpu("1"), pending("Infeasible")), names, "cpu=1 limits.cpu=1");
    check(&resized(has("1", "1"), cpu("1"), pending("Deferred")), names, "cpu=2 limits.cpu=3");
}

#[test]
fn a_pod_that_has_ended_or_should_have_counts_only_as_an_object() {
    let pod = pod(&json!({ "containers": [requests("1")] }));
    let names = "count/pods cpu pods";
    for phase in ["Failed", "Succeeded"] {
        check(&pod.clone().phase(phase), names, "count/pods=1 cpu=0 pods=0");
    }
    for phase in ["Pending", "Running", "Unknown"] {
        check(&pod.clone().phase(phase), names, "count/pods=1 cpu=1 pods=1");
    }
    let deleted = |before: i64, grace: i64| {
        let pod = pod.clone().set(&["metadata", "deletionTimestamp"], ago(before).to_string());
        pod.set(&["metadata", "deletionGracePeriodSeconds"], grace)
    };
    // "do not count cpu for pods in terminating state and past grace period"
    check(&deleted(31, 30), names, "count/pods=1 cpu=0 pods=0");
    check(&deleted(30, 30), names, "count/pods=1 cpu=1 pods=1");
    check(&deleted(0, 30), names, "count/pods=1 cpu=1 pods=1");
}

#[test]
fn sums_keep_the_format_of_the_first() {
    let of = |memory: &str| pod(&json!({ "containers": [container(&json!({ "requests": { "memory": memory } }))] }));
    let sum = |all: &[&str]| used(&pods(&all.iter().map(|memory| of(memory)).collect::<Vec<_>>()), "memory", &[]);
    assert_eq!(sum(&["512Mi", "512Mi"]), "memory=1Gi");
    assert_eq!(sum(&["1G", "1Ki"]), "memory=1000001024");
    assert_eq!(sum(&["500M", "500M"]), "memory=1G");
    assert_eq!(sum(&["0", "1Gi", "1Gi"]), "memory=2Gi");
    assert_eq!(sum(&["1073741824", "1Gi"]), "memory=2147483648");
    assert_eq!(sum(&["1Gi", "1073741824"]), "memory=2Gi");
    assert_eq!(sum(&[]), "memory=0");
}

#[test]
fn scopes_pick_pods() {
    let plain = pod(&json!({ "containers": [requests("1")] }));
    let deadline = pod(&json!({ "activeDeadlineSeconds": 0, "containers": [limits("1")] }));
    let poor = pod(&json!({ "priorityClassName": "low", "containers": [{ "name": "c" }] }));
    let term = json!({ "topologyKey": "zone", "namespaceSelector": {} });
    let affine = pod(&json!({
        "priorityClassName": "high",
        "affinity": { "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 1, "podAffinityTerm": term }],
        } },
    }))
    .set(&["status", "qosClass"], "Burstable");
    let all = pods(&[plain, deadline, poor, affine]);
    let none: &[&str] = &[];
    let rows: [(&str, &str, &[&str], i32); 12] = [
        ("Terminating", "Exists", none, 1),
        ("NotTerminating", "Exists", none, 3),
        ("BestEffort", "Exists", none, 1),
        ("NotBestEffort", "Exists", none, 3),
        ("CrossNamespacePodAffinity", "Exists", none, 1),
        ("PriorityClass", "Exists", none, 2),
        ("PriorityClass", "DoesNotExist", none, 2),
        ("PriorityClass", "In", &["low", "mid"], 1),
        ("PriorityClass", "NotIn", &["low"], 3),
        ("PriorityClass", "In", none, 0),
        ("VolumeAttributesClass", "Exists", none, 0),
        ("Future", "Exists", none, 0),
    ];
    for (name, operator, values, expected) in rows {
        let found = used(&all, "pods", &[scope(name, operator, values)]);
        assert_eq!(found, format!("pods={expected}"), "{name} {operator} {values:?}");
    }
    let (terminating, not_best_effort) = (scope("Terminating", "Exists", none), scope("NotBestEffort", "Exists", none));
    assert_eq!(used(&all, "pods", &[terminating.clone(), not_best_effort]), "pods=1");
    assert_eq!(used(&all, "count/pods", &[terminating, scope("BestEffort", "Exists", none)]), "count/pods=0");
}

#[test]
fn affinity_is_across_namespaces_where_a_term_names_some_or_selects_any() {
    for (term, expected) in [
        (json!({ "namespaces": ["a"] }), "pods=1"),
        (json!({ "namespaceSelector": {} }), "pods=1"),
        (json!({ "namespaces": [], "namespaceSelector": null }), "pods=0"),
        (json!({ "topologyKey": "zone" }), "pods=0"),
    ] {
        let affinity = json!({ "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } });
        let found = pods(&[pod(&json!({ "affinity": affinity }))]);
        assert_eq!(used(&found, "pods", &[scope("CrossNamespacePodAffinity", "Exists", &[])]), expected, "{term}");
    }
}
