//! What is read of claims and pods, and what they share.

use std::sync::Arc;

use device_taint_eviction_operator::objects::{Consumer, Pod, ResourceClaim, ResourceSlice};
use device_taint_eviction_operator::status::marked_status;
use serde_json::{Value, json};
use shared::testing::{NOW, object, uid};

use crate::fixtures::{allocated, claim_of, in_status, pod, pod_with_template, slice, something, toleration};

#[test]
fn devices_that_tolerate_the_same_share_it() {
    let tolerations =
        [toleration("a", None, Some(300)), json!({ "key": "b", "operator": "Exists", "effect": "NoSchedule" })];
    let [a, b] = ["a", "b"].map(|name| {
        let claim: Arc<ResourceClaim> = claim_of(name, &[allocated("instance", &tolerations)], &[]).build();
        claim
    });
    assert!(Arc::ptr_eq(&a.devices[0].tolerations, &b.devices[0].tolerations));
    assert_eq!(a.devices[0].tolerations.len(), 1, "the other one is about another effect");
}

#[test]
fn consumers_of_other_kinds_are_skipped() {
    let consumer =
        |group: &str, resource: &str| json!({ "apiGroup": group, "resource": resource, "name": "a", "uid": uid("a") });
    let all = json!([
        consumer("", "pods"),
        consumer("x", "pods"),
        consumer("scheduling.k8s.io", "podgroups"),
        consumer("", "podgroups")
    ]);
    let claim: Arc<ResourceClaim> = claim_of("a", &[], &[]).set(&["status", "reservedFor"], all).build();
    let [pod, group] = &*claim.consumers else { panic!("{claim:?}") };
    assert_eq!(*pod, Consumer::Pod { name: "a".into(), uid: uid("a") });
    assert_eq!(*group, Consumer::PodGroup { name: "a".into() });
}

#[test]
fn what_is_null_or_missing_is_empty() {
    let claim: Arc<ResourceClaim> = object("resource.k8s.io/v1", "ResourceClaim", "a")
        .set(&["status"], json!({ "allocation": null, "reservedFor": null }))
        .build();
    assert!(!claim.is_allocated() && claim.consumers.is_empty());
    let slice: Arc<ResourceSlice> = slice(&[]).set(&["spec", "devices"], Value::Null).build();
    assert!(slice.devices.is_empty() && slice.tainted.is_empty());
    let pod: Arc<Pod> = shared::testing::pod("a").build();
    assert!(pod.claims.is_empty() && pod.group.is_none());
}

#[test]
fn a_slice_keeps_the_names_of_all_devices_and_their_no_execute_taints() {
    let slice: Arc<ResourceSlice> = slice(&[something()]).build();
    assert_eq!(slice.devices.len(), 3);
    assert_eq!(slice.tainted.iter().map(|device| device.name.as_str()).collect::<Vec<_>>(), ["instance"]);
}

/// Upstream: `Name`.
#[test]
fn a_claim_from_a_template_is_known_by_the_status() {
    let names = |pod: Arc<Pod>| {
        pod.claims.iter().map(|claim| (claim.name.to_string(), claim.is_from_template)).collect::<Vec<_>>()
    };
    assert_eq!(names(pod().build()), [("my-claim".to_owned(), false)]);
    assert_eq!(names(pod_with_template(&in_status()).build()), [("my-claim".to_owned(), true)]);
    let neither = pod().set(&["spec", "resourceClaims"], json!([{ "name": "my-resource" }]));
    assert_eq!(names(neither.build()), []);
}

/// Upstream: `TestEviction`.
#[test]
fn a_pod_is_marked_as_upstream_marks_it() {
    let condition = json!([{
        "type": "DisruptionTarget", "status": "True", "reason": "DeletionByDeviceTaintManager",
        "message": "Device Taint manager: deleting due to NoExecute taint", "lastTransitionTime": "2026-01-01T12:00:00Z",
    }]);
    let unmarked: Arc<Pod> = pod().build();
    assert_eq!(marked_status(&unmarked, NOW), Some(json!({ "status": { "conditions": condition } })));
    let marked: Arc<Pod> = pod().set(&["status", "conditions"], condition).build();
    assert_eq!(marked_status(&marked, NOW), None);
}
