//! What is mirrored at all: upstream's `endpointslicemirroring_controller_test.go`.

use endpointslice_mirroring_operator::plan::Plan;
use serde_json::{Value, json};
use shared::testing::{ObjectBuilder, object};

use crate::world::{World, endpoints, slice, subset};

/// `generateAddresses`.
fn many(count: usize) -> Value {
    let addresses = (0..count).map(|n| json!({ "ip": format!("10.0.{}.{}", n / 255, n % 255) }));
    json!({ "addresses": addresses.collect::<Vec<Value>>(), "ports": [{ "port": 80 }] })
}

/// Upstream: `TestSyncEndpoints`; slices of other managers are never observed.
#[test]
fn endpoints_of_services_without_a_selector_are_mirrored() {
    let one = || endpoints(&[json!({ "addresses": [{ "ip": "10.0.0.1" }], "ports": [{ "port": 80 }] })]);
    let empty = || endpoints(&[json!({ "ports": [{ "port": 80 }] })]);
    let row = |endpoints: ObjectBuilder, expected: &str| assert_eq!(World::new(endpoints).sync(), expected);
    row(empty(), "nothing (0 endpoints in 0 slices)");
    row(
        one().label("endpointslice.kubernetes.io/skip-mirror", "true"),
        "nothing (the label of the endpoints excludes them)",
    );
    row(one().label("endpointslice.kubernetes.io/skip-mirror", "false"), "create IPv4 of 1");
    row(one().annotation("control-plane.alpha.kubernetes.io/leader", "{}"), "nothing (the lock of an election)");
    let of = |service: Option<ObjectBuilder>| World { service, ..World::new(one()) }.sync();
    assert_eq!(of(None), "nothing (the service does not exist)");
    let service = |selector: Value| Some(object("v1", "Service", "test-ep").set(&["spec", "selector"], selector));
    assert_eq!(of(service(json!({ "foo": "bar" }))), "nothing (has a selector)");
    assert_eq!(of(service(json!({}))), "create IPv4 of 1", "the API has no empty one");
    assert_eq!(World::new(empty()).with([slice("a", "IPv4", &[80], json!([]))]).sync(), "delete a (ports unwanted)");
    row(endpoints(&[many(1000)]), "create IPv4 of 1000");
    row(endpoints(&[many(1001)]), "create IPv4 of 1000, record TooManyAddressesToMirror");
}

#[test]
fn what_was_mirrored_goes_when_nothing_is_to_be_mirrored_any_more() {
    let check = |change: fn(&mut World), why: &str| {
        let mut world = World::new(endpoints(&[subset(&["10.0.0.1", "fd00::1"], &[80])]));
        assert_eq!(world.sync(), "create IPv4 of 1, create IPv6 of 1");
        change(&mut world);
        assert_eq!(world.sync(), format!("delete new-1, new-2 ({why})"));
        assert_eq!((world.shown(), world.sync()), (Vec::new(), format!("nothing ({why})")));
    };
    check(|world| world.service = None, "the service does not exist");
    check(|world| world.endpoints = None, "the endpoints do not exist, or their label excludes them");
    check(
        |world| {
            world.service = Some(object("v1", "Service", "test-ep").set(&["spec", "selector"], json!({ "a": "b" })));
        },
        "has a selector",
    );
    let lock = |world: &mut World| {
        let locked = world.endpoints.take().unwrap().annotation("control-plane.alpha.kubernetes.io/leader", "{}");
        world.endpoints = Some(locked);
    };
    check(lock, "the lock of an election");
}

#[test]
fn people_are_told_in_upstreams_words_what_is_left_out() {
    let told = |subset: Value, max: usize| -> Vec<(&'static str, String)> {
        let Plan::Mirror(mirrored) = (World { max, ..World::new(endpoints(&[subset])) }).plan() else {
            panic!("{max}")
        };
        mirrored.events.into_iter().map(|event| (event.reason, event.message)).collect()
    };
    let invalid = "Skipped 2 invalid IP addresses when mirroring to EndpointSlices".to_owned();
    let too_many = |skipped: usize| {
        let of = "A max of 1 addresses can be mirrored to EndpointSlices per Endpoints subset.";
        ("TooManyAddressesToMirror", format!("{of} {skipped} addresses were skipped"))
    };
    assert_eq!(told(subset(&["no", "10.0.0.1", "nor this"], &[80]), 1000), [("InvalidIPAddress", invalid)]);
    assert_eq!(told(subset(&["10.0.0.1", "10.0.0.2", "10.0.0.3"], &[80]), 1), [too_many(2)]);
    // Those after the last that is mirrored are not looked at.
    let one = "Skipped 1 invalid IP addresses when mirroring to EndpointSlices".to_owned();
    assert_eq!(told(subset(&["0no", "10.0.0.1", "nor this"], &[80]), 1), [("InvalidIPAddress", one), too_many(2)]);
}
