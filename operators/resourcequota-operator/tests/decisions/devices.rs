//! Extended resources that stand for devices. Upstream: `TestResourceClaimEvaluatorUsageWithExtendedResource`,
//! `pkg/quota/v1/evaluator/core/resource_claims_test.go`.

use resourcequota_operator::objects::{DeviceClass, Evaluator, Pod, ResourceClaim};
use resourcequota_operator::observe::{Known, Objects};
use resourcequota_operator::plan::plan;
use serde_json::{Value, json};
use shared::testing::{NOW, ObjectBuilder, ago, object, uid};

use crate::fixtures::{facts, observed, quota, text};

const GPU: &str = "requests.example.com/gpu";
const IMPLICIT: &str = "requests.deviceclass.resource.kubernetes.io/gpu";
const DEVICES: &str = "gpu.deviceclass.resource.k8s.io/devices";

fn class(name: &str, resource: Value) -> ObjectBuilder {
    object("resource.k8s.io/v1", "DeviceClass", name).set(&["spec", "extendedResourceName"], resource)
}

fn claim(name: &str, count: i64) -> ObjectBuilder {
    let exactly = json!({ "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count });
    let requests = json!([{ "name": "r", "exactly": exactly }]);
    object("resource.k8s.io/v1", "ResourceClaim", name).set(&["spec", "devices", "requests"], requests)
}

/// A claim in place of the extended resources of the pod `p`.
fn in_place(name: &str, count: i64, seconds_ago: i64) -> ObjectBuilder {
    let owner =
        json!({ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid("p").to_string(), "controller": true });
    claim(name, count)
        .set(&["metadata", "ownerReferences"], json!([owner]))
        .set(&["metadata", "creationTimestamp"], ago(seconds_ago).to_string())
        .annotation("resource.kubernetes.io/extended-resource-claim", "true")
}

fn pod(count: &str) -> ObjectBuilder {
    let resources = json!({ "requests": { "example.com/gpu": count } });
    let pod = object("v1", "Pod", "p").set(&["spec", "containers"], json!([{ "name": "c", "resources": resources }]));
    pod.set(&["metadata", "uid"], uid("p").to_string())
}

#[track_caller]
fn check(classes: &[ObjectBuilder], pods: &[ObjectBuilder], claims: &[ObjectBuilder], expected: [&str; 3]) {
    let limits = json!({ GPU: "100", IMPLICIT: "100", DEVICES: "100" });
    let of = |evaluator: Evaluator, objects| (evaluator, Known::Listed(objects));
    let observed = observed(
        &quota(&limits),
        vec![
            of(Evaluator::DeviceClasses, Objects::DeviceClasses(classes.iter().map(facts::<DeviceClass>).collect())),
            of(Evaluator::Pods, Objects::Pods(pods.iter().map(facts::<Pod>).collect())),
            of(Evaluator::ResourceClaims, Objects::ResourceClaims(claims.iter().map(facts::<ResourceClaim>).collect())),
        ],
    );
    let [gpu, implicit, devices] = expected;
    assert_eq!(text(&plan(&observed, NOW).counted), format!("{DEVICES}={devices} {IMPLICIT}={implicit} {GPU}={gpu}"));
}

#[test]
fn claims_count_under_the_extended_resource_that_stands_for_their_class() {
    let named = [class("gpu", json!("example.com/gpu"))];
    let three = [claim("c", 3)];
    check(&named, &[], &three, ["3", "3", "3"]);
    check(&[class("gpu", Value::Null)], &[], &three, ["0", "3", "3"]);
    check(&[class("other", json!("example.com/gpu"))], &[], &three, ["0", "0", "3"]);
    check(&[], &[pod("2")], &three, ["2", "0", "3"]);
    // One that is not made for the pod counts besides.
    check(&named, &[pod("2")], &three, ["5", "3", "3"]);
}

#[test]
fn what_a_pod_counts_its_own_claim_does_not_count_again() {
    let named = [class("gpu", json!("example.com/gpu"))];
    check(&named, &[pod("2")], &[in_place("c", 2, 9)], ["2", "2", "2"]);
    check(&named, &[pod("2")], &[in_place("c", 3, 9)], ["3", "3", "3"]);
    check(&named, &[], &[in_place("c", 3, 9)], ["3", "3", "3"]);
    // Until the pod names its claim, it is the first one.
    let two = [in_place("c", 2, 5), in_place("d", 2, 9)];
    check(&named, &[pod("2")], &two, ["4", "4", "4"]);
    let named_by = |claim: &str| pod("2").set(&["status", "extendedResourceClaimStatus", "resourceClaimName"], claim);
    check(&named, &[named_by("c")], &two[..1], ["2", "2", "2"]);
    check(&named, &[named_by("elsewhere")], &two[..1], ["4", "2", "2"]);
    check(&named, &[pod("2").phase("Failed")], &two[..1], ["2", "2", "2"]);
}
