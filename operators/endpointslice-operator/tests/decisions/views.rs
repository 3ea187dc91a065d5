//! The fields that are read of objects, and that odd objects can be read.

use std::sync::Arc;

use endpointslice_operator::objects::{Endpoint, EndpointSlice, Node, Pod, Service};
use serde_json::{Value, json};
use shared::testing::{ObjectBuilder, object};

use crate::world::{new_pod, node, pods, service};

/// Upstream: `Test_hintsEnabled`.
#[test]
fn one_of_two_annotations_asks_for_hints() {
    let check = |annotations: &[(&str, &str)], expected: bool| {
        let service = annotations.iter().fold(service("foo"), |service, (key, value)| service.annotation(key, value));
        assert_eq!(service.build::<Service>().metadata.annotations.is_auto, expected, "{annotations:?}");
    };
    let (hints, mode) = ("service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode");
    check(&[], false);
    check(&[("topology-hints", "enabled")], false);
    for annotation in [hints, mode] {
        for value in ["enabled", "aUto", "disabled", "", "\u{e4}\n"] {
            check(&[(annotation, value)], false);
        }
        check(&[(annotation, "auto")], true);
        check(&[(annotation, "Auto")], true);
    }
    check(&[(mode, "disabled"), (hints, "auto")], true);
    check(&[(mode, "auto"), (hints, "disabled")], false);
}

#[test]
fn a_service_asks_for_the_same_until_something_changes_that_matters() {
    let same = |change: fn(ObjectBuilder) -> ObjectBuilder| {
        let (old, new): (Arc<Service>, Arc<Service>) = (service("foo").build(), change(service("foo")).build());
        old.asks_for_the_same(&new)
    };
    assert!(same(|service| service.set(&["metadata", "resourceVersion"], "2")));
    assert!(same(|service| service.set(&["status", "loadBalancer", "ingress"], json!([{ "ip": "1.1.1.1" }]))));
    assert!(same(|service| service.annotation("a", "b")));
    assert!(!same(|service| service.annotation("service.kubernetes.io/topology-mode", "Auto")));
    assert!(!same(|service| service.label("a", "b")));
    assert!(!same(ObjectBuilder::terminating));
    for (field, value) in [
        ("type", json!("ExternalName")),
        ("selector", json!({ "foo": "baz" })),
        ("ports", Value::Null),
        ("clusterIP", json!("1.1.1.1")),
        ("ipFamilies", json!(["IPv6"])),
        ("publishNotReadyAddresses", json!(true)),
        ("trafficDistribution", json!("PreferClose")),
    ] {
        let (old, new): (Arc<Service>, Arc<Service>) =
            (service("foo").build(), service("foo").set(&["spec", field], value).build());
        assert!(!old.asks_for_the_same(&new), "{field}");
    }
}

#[test]
fn pods_of_one_template_share_their_ports() {
    let with_port = |n| {
        let container =
            json!({ "ports": [{ "name": "http", "containerPort": 80, "protocol": "TCP" }, { "containerPort": 1 }] });
        new_pod(n, true).set(&["spec", "containers"], json!([container])).build::<Pod>()
    };
    let (first, second) = (with_port(1), with_port(2));
    assert_eq!(first.ports.len(), 1);
    assert!(Arc::ptr_eq(&first.ports, &second.ports));
}

#[test]
fn nodes_are_read_without_their_labels() {
    let read = |node: ObjectBuilder| {
        let node: Arc<Node> = node.build();
        assert!(node.metadata.labels.is_empty());
        (node.zone.as_ref().map(ToString::to_string), node.is_ready, node.is_control_plane, node.milli_cpu)
    };
    assert_eq!(read(node("n", "a", "1500m")), (Some("a".to_owned()), true, false, 1500));
    assert_eq!(read(node("n", "", "0")), (None, true, false, 0));
    assert_eq!(read(node("n", "a", "x").label("topology.kubernetes.io/zone", "")), (None, true, false, 0));
    let plane = node("n", "a", "2").label("node-role.kubernetes.io/control-plane", "");
    assert_eq!(read(plane), (Some("a".to_owned()), true, true, 2000));
    assert_eq!(read(object("v1", "Node", "n").label("node-role.kubernetes.io/master", "")), (None, false, true, 0));
    let unready = node("n", "a", "2").set(&["status", "conditions"], json!([{ "type": "Ready", "status": "Unknown" }]));
    assert_eq!(read(unready), (Some("a".to_owned()), false, false, 2000));
}

#[test]
fn whatever_may_be_in_a_slice_is_read_and_is_another_endpoint_than_ours() {
    let ours = {
        let mut world = crate::world::World::new(pods(2));
        world.sync();
        world.read()[0].endpoints[1].clone()
    };
    let check = |change: fn(&mut Value), is_same: bool, is_in_the_same_state: bool| {
        let mut json = json!(ours);
        change(&mut json);
        let read: Endpoint = serde_json::from_value(json).unwrap();
        assert_eq!((ours.is_same(&read), ours.is_in_the_state_of(&read)), (is_same, is_in_the_same_state), "{read:?}");
    };
    check(|_| {}, true, true);
    // Upstream: `TestEndpointsEqualBeyondHash`.
    check(|json| json["targetRef"]["resourceVersion"] = "7".into(), true, true);
    check(|json| json["hints"] = json!({ "forZones": [{ "name": "a" }] }), true, true);
    check(|json| json["deprecatedTopology"] = json!({ "a": "b" }), true, true);
    check(|json| json["targetRef"]["uid"] = "another".into(), true, false);
    check(|json| json["targetRef"]["kind"] = "VirtualMachine".into(), true, false);
    check(|json| json["targetRef"]["fieldPath"] = "spec".into(), true, false);
    check(|json| json["nodeName"] = "node-2".into(), true, false);
    check(|json| json["nodeName"] = Value::Null, true, false);
    check(|json| json["zone"] = "a".into(), true, false);
    check(|json| json["conditions"]["ready"] = Value::Null, true, false);
    check(|json| json["conditions"] = json!({}), true, false);
    check(|json| json["targetRef"]["name"] = "pod2".into(), false, false);
    check(|json| json["targetRef"] = Value::Null, false, false);
    check(|json| json["hostname"] = "a".into(), false, true);
    check(|json| json["addresses"] = json!(["10.2.0.2", "10.2.0.3"]), false, true);
    check(|json| json["addresses"] = json!(["example.com"]), false, true);
    check(|json| json["addresses"] = json!(["010.2.0.2"]), false, true);
}

#[test]
fn a_slice_without_lists_is_an_empty_one() {
    let slice = object("discovery.k8s.io/v1", "EndpointSlice", "a").set(&["addressType"], "FQDN");
    let slice: Arc<EndpointSlice> = slice.set(&["ports"], Value::Null).set(&["endpoints"], Value::Null).build();
    assert_eq!((slice.ports.len(), slice.endpoints.len(), slice.address_type.as_str()), (0, 0, "FQDN"));
    assert_eq!(slice.service(), None);
}
