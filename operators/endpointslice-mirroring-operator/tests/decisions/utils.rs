//! What follows from Endpoints alone: upstream's `utils_test.go`.

use std::sync::Arc;

use endpointslice_mirroring_operator::objects::{Address, EndpointSlice, Endpoints, MANAGED_BY};
use endpointslice_mirroring_operator::plan::Plan;
use endpointslice_mirroring_operator::plan::utils::address_to_endpoint;
use serde_json::{Value, json};
use shared::testing::ObjectBuilder;

use crate::world::{LAST_APPLIED, TRIGGER_TIME, World, endpoints, slice, subset};

/// Upstream: `TestNewEndpointSlice`.
#[test]
fn a_new_slice_has_the_labels_and_annotations_of_its_endpoints() {
    let row = |change: fn(ObjectBuilder) -> ObjectBuilder, labels: &[&str], annotations: Value| {
        let endpoints = change(endpoints(&[subset(&["10.0.0.1"], &[80])]));
        let Plan::Mirror(mirrored) = World::new(endpoints).plan() else { panic!("{labels:?}") };
        let mut expected = json!({
            "kubernetes.io/service-name": "test-ep", "endpointslice.kubernetes.io/managed-by": MANAGED_BY,
        });
        for label in labels {
            expected[*label] = "bar".into();
        }
        let creation = &mirrored.writes.create[0];
        assert_eq!((json!(creation.labels), json!(creation.annotations)), (expected, annotations));
    };
    row(|endpoints| endpoints, &[], json!({}));
    row(|endpoints| endpoints.annotation("foo", "bar"), &[], json!({ "foo": "bar" }));
    row(|endpoints| endpoints.label("foo", "bar"), &["foo"], json!({}));
    row(|endpoints| endpoints.label("foo", "bar").annotation("foo2", "bar2"), &["foo"], json!({ "foo2": "bar2" }));
    let timed = |endpoints: ObjectBuilder| {
        endpoints.label("foo", "bar").annotation("foo2", "bar2").annotation(TRIGGER_TIME, "date")
    };
    row(timed, &["foo"], json!({ "foo2": "bar2" }));
    // What is reserved is the slice's own.
    row(|endpoints| endpoints.label("kubernetes.io/service-name", "other"), &[], json!({}));
}

/// Upstream: `TestAddressToEndpoint`.
#[test]
fn an_address_becomes_an_endpoint_with_all_that_it_says() {
    let check = |address: Value, expected: Option<(&str, Value)>| {
        let read: Address = serde_json::from_value(address).unwrap();
        let endpoint = address_to_endpoint(&read, true);
        let found = endpoint.map(|(address_type, endpoint)| (address_type.to_string(), json!(endpoint)));
        assert_eq!(found, expected.map(|(address_type, json)| (address_type.to_owned(), json)));
    };
    let target = json!({
        "apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "foo", "uid": "any", "resourceVersion": "7",
        "fieldPath": "spec",
    });
    let address = json!({ "ip": "10.1.2.3", "hostname": "foo", "nodeName": "node-abc", "targetRef": target });
    let ready = json!({ "ready": true });
    let endpoint = json!({
        "addresses": ["10.1.2.3"], "hostname": "foo", "conditions": ready, "targetRef": target, "nodeName": "node-abc",
    });
    check(address, Some(("IPv4", endpoint)));
    let plain = |ip: &str| json!({ "addresses": [ip], "conditions": ready });
    check(json!({ "ip": "010.001.02.3", "hostname": "" }), Some(("IPv4", plain("10.1.2.3"))));
    check(json!({ "ip": "FD00:0::1" }), Some(("IPv6", plain("fd00::1"))));
    check(json!({ "ip": "::ffff:10.1.2.3" }), Some(("IPv4", plain("10.1.2.3"))));
    check(json!({ "ip": "this-is-not-an-ip" }), None);
}

#[test]
fn whatever_may_be_in_a_slice_or_in_endpoints_is_read() {
    let odd = json!([
        { "addresses": ["10.0.0.1", "10.0.0.2"], "hints": { "forZones": [{ "name": "a" }] }, "zone": "a" },
        { "addresses": ["example.com"], "conditions": {} },
    ]);
    let slice: Arc<EndpointSlice> = slice("a", "FQDN", &[80], odd).set(&["ports"], Value::Null).build();
    assert_eq!((slice.ports.len(), slice.endpoints.len()), (0, 2));
    let nothing: Arc<Endpoints> = endpoints(&[]).set(&["subsets"], Value::Null).build();
    assert_eq!((nothing.subsets.len(), nothing.is_meant()), (0, true));
    let endpoints: Arc<Endpoints> = endpoints(&[]).annotation(LAST_APPLIED, "{}").annotation("a", "b").build();
    let annotations = &endpoints.metadata.annotations;
    assert_eq!((annotations.mirrored.get("a"), annotations.others.len()), (Some("b"), 1));
}
