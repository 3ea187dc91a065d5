//! What pods request. Rows have the names of upstream's.
//!
//! Upstream: `TestCalculateRequests`, `pkg/controller/podautoscaler/replica_calculator_test.go`. Rows of the gate that is
//! on here say what the others say there.

use horizontal_pod_autoscaler_operator::plan::requests::calculate_requests;
use serde_json::{Value, json};
use shared::testing::pod;

use crate::fixtures::read_pod;

fn of(name: &str, requests: &Value) -> Value {
    json!({ "name": name, "resources": { "requests": requests } })
}

fn cpu(name: &str, millis: i32) -> Value {
    of(name, &json!({ "cpu": format!("{millis}m") }))
}

#[track_caller]
fn row(name: &str, spec: &Value, (container, resource): (&str, &str), expected: &str) {
    let pods = [read_pod(&pod("test-pod").set(&["spec"], spec.clone()))];
    let found = match calculate_requests(&pods, container, resource) {
        Ok(requests) => format!("{requests:?}"),
        Err(error) => error,
    };
    assert_eq!(found, expected, "{name}");
}

#[test]
fn requests_are_summed_up_as_upstream_sums_them_up() {
    let two = json!([cpu("container1", 100), cpu("container2", 50)]);
    let of_pod = json!({ "requests": { "cpu": "800m" } });
    row(
        "Pod-level resources are enabled, but not set: fallback to sum container requests",
        &json!({ "containers": two }),
        ("", "cpu"),
        r#"{"test-pod": 150}"#,
    );
    row(
        "Pod-level resources override container requests when feature enabled and pod resources specified",
        &json!({ "containers": two, "resources": of_pod }),
        ("", "cpu"),
        r#"{"test-pod": 800}"#,
    );
    row(
        "Fail if at least one of the containers is missing requests and pod-level feature/requests are not set",
        &json!({ "containers": [{ "name": "container1" }, cpu("container2", 50)] }),
        ("", "cpu"),
        "missing request for cpu in container container1 of Pod test-pod",
    );
    row(
        "Pod-level resources override missing container requests when feature enabled and pod resources specified",
        &json!({ "containers": [{ "name": "container1" }, cpu("container2", 50)], "resources": of_pod }),
        ("", "cpu"),
        r#"{"test-pod": 800}"#,
    );
    row(
        "Container: if a container name is specified, calculate requests only for that container and ignore pod-level \
         requests",
        &json!({ "containers": two, "resources": of_pod }),
        ("container1", "cpu"),
        r#"{"test-pod": 100}"#,
    );
    row(
        "pod with restartable init containers",
        &json!({
            "containers": [cpu("container1", 100)],
            "initContainers": [
                cpu("init-container1", 20),
                { "name": "restartable", "restartPolicy": "Always", "resources": { "requests": { "cpu": "50m" } } },
            ],
        }),
        ("", "cpu"),
        r#"{"test-pod": 150}"#,
    );
    row(
        "TestCalculatePodRequestsFromContainers_NonExistentContainer",
        &json!({ "containers": [cpu("container1", 100)] }),
        ("non-existent-container", "cpu"),
        "container non-existent-container not found in Pod test-pod",
    );
}

#[test]
fn a_pod_that_has_ended_needs_no_requests() {
    let ended =
        |name: &str, phase: &str| pod(name).phase(phase).set(&["spec"], json!({ "containers": [{ "name": "c" }] }));
    let pods = ["Succeeded", "Failed"].map(|phase| read_pod(&ended("test", phase)));
    assert_eq!(calculate_requests(&pods, "", "cpu"), Ok([].into()));
    assert_eq!(calculate_requests(&pods, "main", "cpu"), Ok([].into()));
    assert!(calculate_requests(&[read_pod(&ended("test", "Running"))], "", "cpu").is_err());
}

#[test]
fn what_a_pod_does_not_request_itself_its_containers_do() {
    let memory = |name: &str, amount: &str| of(name, &json!({ "memory": amount }));
    let spec = json!({
        "resources": { "requests": { "cpu": "1" } },
        "containers": [memory("a", "1Gi"), memory("b", "1Gi")],
        "initContainers": [
            { "name": "beside", "restartPolicy": "Always", "resources": { "requests": { "memory": "1Gi" } } },
            memory("large", "4Gi"),
        ],
        "overhead": { "memory": "1Gi" },
    });
    // The init container beside its sidecar needs the most, and the runtime something more.
    row("memory", &spec, ("", "memory"), &format!("{{\"test-pod\": {}}}", 6_i64 * 1024 * 1024 * 1024 * 1000));
    row("ephemeral", &spec, ("", "hugepages-2Mi"), "missing pod-level request for hugepages-2Mi in Pod test-pod");
}
