//! The writes of a sync: upstream's `endpoints_controller_test.go`.

use endpoints_operator::objects::MANAGED_BY;
use endpoints_operator::observe::{Observed, Seen};
use endpoints_operator::plan::{Next, next};
use jiff::Timestamp;
use serde_json::{Value, json};
use shared::testing::ObjectBuilder;

use crate::world::{OVER_CAPACITY, TRIGGER_TIME, World, address, endpoints, new_pod, pods, service};

fn port(number: i32) -> Value {
    json!({ "port": number, "protocol": "TCP" })
}

/// Somebody else's Endpoints, or those of another time.
fn other() -> Value {
    json!([{ "addresses": [{ "ip": "6.7.8.9", "nodeName": "" }], "ports": [{ "port": 1000 }] }])
}

fn unlabelled(subsets: Value) -> Value {
    let mut unlabelled = endpoints(subsets);
    unlabelled["metadata"]["labels"] = Value::Null;
    unlabelled
}

fn own_labels() -> Value {
    json!({ "endpoints.kubernetes.io/managed-by": MANAGED_BY, "service.kubernetes.io/headless": "" })
}

/// Upstream: `TestSyncEndpointsItemsPreserveNoSelector`, `TestSyncServiceExternalNameType`,
/// `TestSyncEndpointsServiceNotFound`.
#[test]
fn a_service_that_selects_nothing_keeps_its_endpoints_and_one_that_is_gone_does_not() {
    let row = |service: Option<ObjectBuilder>, endpoints: Option<Value>, expected: &str| {
        let mut world = World { service, pods: pods(1, 0), endpoints };
        assert_eq!(world.sync(), expected);
    };
    let without = || service().set(&["spec", "selector"], Value::Null);
    row(Some(without()), Some(unlabelled(other())), "nothing (has no selector)");
    row(Some(service().set(&["spec", "selector"], json!({}))), None, "nothing (has no selector)");
    let external = |service: ObjectBuilder| service.set(&["spec", "type"], "ExternalName");
    row(Some(external(service())), None, "nothing (is an external name)");
    row(Some(external(without()).set(&["spec", "ports"], Value::Null)), None, "nothing (is an external name)");
    row(None, Some(unlabelled(other())), "delete (the service does not exist)");
    row(None, None, "nothing (neither the service nor its endpoints exist)");
    let mut lock = unlabelled(Value::Null);
    lock["metadata"]["annotations"]["control-plane.alpha.kubernetes.io/leader"] = "{}".into();
    row(None, Some(lock), "nothing (the lock of an election)");
}

/// Upstream: `TestSyncEndpointsNewNoSubsets`, `TestSyncEndpointsExistingNilSubsets`,
/// `TestSyncEndpointsExistingEmptySubsets`, `TestSyncEndpointsHeadlessServiceLabel`.
#[test]
fn a_service_without_pods_has_empty_endpoints() {
    let mut world = World::new(service(), Vec::new());
    assert_eq!(world.sync(), "create with 0 ready and 0 not ready in 0 subsets");
    assert_eq!((world.subsets(), world.metadata("labels")), (json!([]), own_labels()));
    for subsets in [Value::Null, json!([])] {
        let mut world = World::new(service(), Vec::new()).with(endpoints(subsets));
        assert_eq!(world.sync(), "nothing (0 ready and 0 not ready in 0 subsets)");
        // Whether the Service has an IP is no reason to write.
        world.service = Some(service().set(&["spec", "clusterIP"], "10.0.0.1"));
        assert_eq!(world.sync(), "nothing (0 ready and 0 not ready in 0 subsets)");
    }
}

/// Upstream: `TestSyncEndpointsItemsPreexisting`, `TestSyncEndpointsProtocolTCP`, `TestSyncEndpointsProtocolUDP`,
/// `TestSyncEndpointsProtocolSCTP`, `TestSyncEndpointsItemsEmptySelectorSelectsAllNotReady`,
/// `TestSyncEndpointsItemsEmptySelectorSelectsAllMixed`; over the wire no selector is empty.
#[test]
fn other_addresses_are_replaced() {
    let row = |protocol: &str, ready: usize, not_ready: usize, expected: Value| {
        let service = service().set(&["spec", "ports"], json!([{ "protocol": protocol, "targetPort": 8080 }]));
        let mut world = World::new(service, pods(ready, not_ready)).with(unlabelled(other()));
        let counts = format!("{ready} ready and {not_ready} not ready in 1 subset");
        assert_eq!(world.sync(), format!("update to {counts} (addresses, labels)"));
        let mut subset = expected;
        subset["ports"] = json!([{ "port": 8080, "protocol": protocol }]);
        assert_eq!((world.subsets(), world.metadata("labels")), (json!([subset]), own_labels()));
    };
    for protocol in ["TCP", "UDP", "SCTP"] {
        row(protocol, 1, 0, json!({ "addresses": [address(0)] }));
    }
    row("TCP", 0, 1, json!({ "notReadyAddresses": [address(0)] }));
    row("TCP", 1, 1, json!({ "addresses": [address(0)], "notReadyAddresses": [address(1)] }));
}

/// Upstream: `TestSyncEndpointsProtocolMultiProtocolSamePort`.
#[test]
fn a_number_may_be_a_port_of_several_protocols() {
    let ports = json!([
        { "name": "tcp", "protocol": "TCP", "targetPort": 8080 },
        { "name": "udp", "protocol": "UDP", "targetPort": 8080 },
    ]);
    let mut world = World::new(service().set(&["spec", "ports"], ports), pods(1, 0));
    assert_eq!(world.sync(), "create with 1 ready and 0 not ready in 1 subset");
    assert_eq!(world.subsets()[0]["ports"].as_array().map(Vec::len), Some(2));
}

/// Upstream: `TestSyncEndpointsItemsPreexistingIdentical`, `TestSyncEndpointsItemsPreexistingIdenticalUnsorted`,
/// `TestSyncEndpointsWithPodResourceVersionUpdateOnly`.
#[test]
fn what_is_the_same_is_not_written() {
    let mut first = address(0);
    first["targetRef"]["resourceVersion"] = "1".into();
    let second = json!({ "notReadyAddresses": [address(1)], "ports": [port(8080)] });
    let whole = json!([{ "addresses": [first], "notReadyAddresses": [address(1)], "ports": [port(8080)] }]);
    let apart = json!([second, { "addresses": [first], "ports": [port(8080)] }]);
    for subsets in [whole, apart] {
        let mut world = World::new(service(), pods(1, 1)).with(endpoints(subsets));
        world.pods[0] = world.pods[0].clone().set(&["metadata", "resourceVersion"], "3");
        let labels = json!({ "endpoints.kubernetes.io/managed-by": MANAGED_BY });
        world.endpoints.as_mut().unwrap()["metadata"]["labels"] = labels;
        assert_eq!(world.sync(), "nothing (1 ready and 1 not ready in 1 subset)");
    }
}

/// Upstream: `TestSyncEndpointsItems`, `TestSyncEndpointsItemsWithLabels`,
/// `TestSyncEndpointsItemsPreexistingLabelsChange`.
#[test]
fn endpoints_have_their_services_labels() {
    let labels = |more: &[(&str, &str)]| {
        let mut labels = own_labels();
        for (key, value) in more {
            labels[key] = (*value).into();
        }
        labels
    };
    let mut world = World::new(service().label("foo", "bar"), pods(3, 0));
    assert_eq!(world.sync(), "create with 3 ready and 0 not ready in 1 subset");
    let all = json!([{ "addresses": [address(0), address(1), address(2)], "ports": [port(8080)] }]);
    assert_eq!((world.subsets(), world.metadata("labels")), (all, labels(&[("foo", "bar")])));
    world.service = Some(service().label("baz", "blah"));
    assert_eq!(world.sync(), "update to 3 ready and 0 not ready in 1 subset (labels)");
    assert_eq!(world.metadata("labels"), labels(&[("baz", "blah")]));
    // Those that are reserved come from nowhere else.
    let reserved = service().label("service.kubernetes.io/headless", "x");
    let reserved = reserved.label("endpoints.kubernetes.io/managed-by", "x");
    world.service = Some(reserved.set(&["spec", "clusterIP"], "10.0.0.1"));
    assert_eq!(world.sync(), "update to 3 ready and 0 not ready in 1 subset (labels)");
    assert_eq!(world.metadata("labels"), json!({ "endpoints.kubernetes.io/managed-by": MANAGED_BY }));
    assert_eq!(world.sync(), "nothing (3 ready and 0 not ready in 1 subset)");
}

/// Upstream: `TestSyncEndpointsHeadlessService`, `TestSyncEndpointsHeadlessWithoutPort`.
#[test]
fn without_ports_only_a_service_without_an_ip_has_addresses() {
    let without = || service().set(&["spec", "ports"], json!([])).set(&["spec", "clusterIP"], "None");
    let mut world = World::new(without(), pods(1, 0)).with(unlabelled(other()));
    assert_eq!(world.sync(), "update to 1 ready and 0 not ready in 1 subset (addresses, labels)");
    assert_eq!(world.subsets(), json!([{ "addresses": [address(0)] }]));
    assert_eq!(world.sync(), "nothing (1 ready and 0 not ready in 1 subset)");
    world.service = Some(without().set(&["spec", "clusterIP"], "10.0.0.1"));
    assert_eq!(world.sync(), "update to 0 ready and 0 not ready in 0 subsets (addresses, labels)");
}

/// Upstream: `TestSyncEndpointsItemsExcludeNotReadyPodsWithRestartPolicyNeverAndPhaseFailed` and those like it.
#[test]
fn a_pod_that_has_ended_is_not_listed() {
    for phase in ["Failed", "Succeeded"] {
        let mut world = World::new(service(), vec![new_pod(0, false).phase(phase)]).with(unlabelled(json!([])));
        assert_eq!(world.sync(), "update to 0 ready and 0 not ready in 0 subsets (labels)");
    }
}

/// Upstream: `TestLastTriggerChangeTimeAnnotation`, `TestLastTriggerChangeTimeAnnotation_AnnotationOverridden`,
/// `TestLastTriggerChangeTimeAnnotation_AnnotationCleared`.
#[test]
fn a_write_says_what_time_it_answers_to() {
    let at = |seconds: i64| Timestamp::from_second(seconds).unwrap();
    let mut world = World::new(service().created(at(2)), pods(1, 0)).with(unlabelled(other()));
    let time = |world: &World| world.metadata("annotations")[TRIGGER_TIME].clone();
    world.sync();
    assert_eq!(time(&world), "1970-01-01T00:00:02Z");
    world.service = Some(service().created(at(5)));
    world.sync();
    assert_eq!(time(&world), "1970-01-01T00:00:02Z", "a time alone is no reason to write");
    world.pods = pods(2, 0);
    world.sync();
    assert_eq!(time(&world), "1970-01-01T00:00:05Z");
    world.service = Some(service().set(&["metadata", "creationTimestamp"], Value::Null));
    world.pods = pods(1, 0);
    world.sync();
    assert_eq!(time(&world), Value::Null);
}

/// Endpoints with so many addresses and this annotation become those of so many ready and other pods.
#[track_caller]
fn check_capacity(annotation: Option<&str>, existing: usize, desired: [usize; 2], expected: [usize; 2], is_over: bool) {
    let addresses: Vec<Value> = (0..existing).map(address).collect();
    let mut before = unlabelled(json!([{ "addresses": addresses, "ports": [port(8080)] }]));
    if let Some(annotation) = annotation {
        before["metadata"]["annotations"][OVER_CAPACITY] = annotation.into();
    }
    let mut world = World::new(service(), pods(desired[0], desired[1])).with(before);
    world.sync();
    let found = ["addresses", "notReadyAddresses"].map(|field| {
        let subsets = world.subsets();
        let subsets = subsets.as_array().unwrap().iter();
        subsets.map(|subset| subset[field].as_array().map_or(0, Vec::len)).sum::<usize>()
    });
    assert_eq!(found, expected);
    let truncated = if is_over { "truncated".into() } else { Value::Null };
    assert_eq!(world.metadata("annotations")[OVER_CAPACITY], truncated);
    let again = world.sync();
    assert!(again.starts_with("nothing ("), "{again}");
}

/// Upstream: `TestSyncServiceOverCapacity`.
#[test]
fn endpoints_say_when_addresses_are_left_out() {
    check_capacity(None, 0, [0, 0], [0, 0], false);
    check_capacity(None, 999, [997, 4], [997, 3], true);
    check_capacity(None, 999, [1000, 10], [1000, 0], true);
    check_capacity(Some("truncated"), 999, [999, 0], [999, 0], false);
    check_capacity(Some("warning"), 1000, [1000, 0], [1000, 0], false);
    check_capacity(Some("warning"), 1001, [1001, 0], [1000, 0], true);
    check_capacity(Some("truncated"), 1000, [1000, 0], [1000, 0], false);
    check_capacity(Some("invalid"), 1001, [1001, 0], [1000, 0], true);
}

#[test]
fn the_apiserver_is_asked_where_it_matters() {
    let check = |world: World, expected: bool| {
        let unseen = Observed { endpoints: Seen::NotCached, ..world.observed() };
        assert_eq!(matches!(next(&unseen), Next::Ask(_)), expected);
        assert!(matches!(next(&world.observed()), Next::Execute(_)));
    };
    check(World::new(service(), pods(1, 0)), true);
    check(World { service: None, pods: Vec::new(), endpoints: None }, true);
    check(World::new(service().set(&["spec", "selector"], Value::Null), Vec::new()), false);
    check(World::new(service().set(&["spec", "type"], "ExternalName"), Vec::new()), false);
}
