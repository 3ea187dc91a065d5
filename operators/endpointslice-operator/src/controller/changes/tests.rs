use std::sync::Arc;

use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::api::object::Object;
use shared::runtime::worker::Requeue;
use shared::testing::{ObjectBuilder, forget, object, pod, store, uid};

use super::*;
use crate::controller::{REST, follow, requeue};
use crate::objects::MANAGED_BY;
use crate::observe::Observed;
use crate::plan::topologycache::ServiceHints;
use crate::plan::{Config, plan};

/// Services `app-0` to `app-2`, which select the pods of that app, one that selects two labels, and one without selector.
fn sources() -> Sources {
    let (sources, _) = follow();
    let service =
        |name: &str, selector: Value| object("v1", "Service", name).set(&["spec", "selector"], selector).build();
    for n in 0..3 {
        store(&sources.services, &service(&format!("app-{n}"), json!({ "app": n.to_string() })));
    }
    store(&sources.services, &service("both", json!({ "app": "0", "tier": "web" })));
    store(&sources.services, &service("none", Value::Null));
    sources
}

fn app(name: &str) -> ObjectBuilder {
    let pod = pod("a").label("app", name).set(&["status", "podIP"], "10.0.0.1");
    pod.set(&["status", "podIPs"], json!([{ "ip": "10.0.0.1" }]))
}

fn names(keys: impl IntoIterator<Item = Key>) -> Vec<String> {
    keys.into_iter().map(|key| key.name().to_owned()).collect()
}

/// Upstream: `TestGetPodServicesToUpdate`.
#[test]
fn a_pod_concerns_the_services_that_select_it() {
    let sources = sources();
    let check = |pod: ObjectBuilder, expected: &[&str]| {
        let pod: Arc<Pod> = pod.build();
        assert_eq!(names(sources.pod_changed(Change::Added(&pod))), expected);
        assert_eq!(names(sources.pod_changed(Change::Deleted(&pod))), expected);
    };
    check(app("0"), &["app-0"]);
    check(app("1").label("tier", "web"), &["app-1"]);
    check(app("0").label("tier", "web"), &["app-0", "both"]);
    check(app("3"), &[]);
    check(app("0").namespace("other"), &[]);
    // Nobody could send anything there.
    check(app("0").phase("Failed"), &[]);
    check(pod("a").label("app", "0"), &[]);
}

/// Upstream: `Test_podChanged`, `TestDetermineNeededServiceUpdates`.
#[test]
fn an_update_of_a_pod_concerns_whom_it_makes_a_difference_to() {
    let sources = sources();
    let check = |old: ObjectBuilder, new: ObjectBuilder, expected: &[&str]| {
        let (old, new): (Arc<Pod>, Arc<Pod>) = (old.build(), new.build());
        assert_eq!(names(sources.pod_changed(Change::Updated { old: &old, new: &new })), expected, "{old:?} {new:?}");
    };
    let plain = || app("0");
    let ips = |ips: &[&str]| {
        let all: Vec<Value> = ips.iter().map(|ip| json!({ "ip": ip })).collect();
        plain().set(&["status", "podIP"], ips.first().copied().unwrap_or_default()).set(&["status", "podIPs"], all)
    };
    check(plain(), plain().node("another"), &[]);
    check(plain(), plain().set(&["metadata", "resourceVersion"], "2"), &[]);
    check(plain(), plain().restarts(3), &[]);
    check(ips(&[]), plain(), &["app-0"]);
    check(plain(), ips(&["2.3.4.5"]), &["app-0"]);
    check(ips(&["fd00:10:96::1"]), ips(&["fd00:10:96::2"]), &["app-0"]);
    check(plain(), ips(&["10.0.0.1", "fd00:10:96::1"]), &["app-0"]);
    check(ips(&["10.0.0.1", "fd00::1"]), ips(&["10.0.0.1", "fd00::2"]), &["app-0"]);
    check(ips(&["10.0.0.1", "fd00::1"]), plain(), &["app-0"]);
    check(plain(), plain().ready(), &["app-0"]);
    check(plain(), plain().terminating(), &["app-0"]);
    check(plain(), plain().phase("Failed"), &["app-0"]);
    // Of labels alone, only what it comes to and what it leaves.
    check(plain(), plain().label("label", "new"), &[]);
    check(plain(), plain().label("tier", "web"), &["both"]);
    check(plain().label("tier", "web"), plain(), &["both"]);
    check(plain(), app("1"), &["app-0", "app-1"]);
    check(plain(), app("1").ready(), &["app-0", "app-1"]);
    check(plain().label("tier", "web"), plain().label("tier", "web").label("a", "b").ready(), &["app-0", "both"]);
    // Still nobody could send anything there.
    check(ips(&[]), ips(&[]).ready().label("app", "1"), &[]);
    check(plain().phase("Failed"), plain().phase("Failed").terminating(), &[]);
}

fn slice(name: &str, service: &str) -> ObjectBuilder {
    let slice = object("discovery.k8s.io/v1", "EndpointSlice", name).set(&["addressType"], "IPv4");
    slice.label("kubernetes.io/service-name", service).label("endpointslice.kubernetes.io/managed-by", MANAGED_BY)
}

/// Upstream: `TestOnEndpointSliceUpdate`, `TestServiceControllerKey`, `TestEndpointSliceTrackerUpdate`,
/// `TestEndpointSliceTrackerDeletion`.
#[test]
fn a_slice_concerns_its_service_unless_the_change_is_our_own() {
    let sources = sources();
    let build = |slice: ObjectBuilder| -> Arc<EndpointSlice> { slice.build() };
    let (first, second) = (build(slice("a", "app-0")), build(slice("a", "app-0").generation(2)));
    let updated = || names(sources.slice_changed(Change::Updated { old: &first, new: &second }));
    assert_eq!(names(sources.slice_changed(Change::Added(&first))), ["app-0"]);
    assert_eq!(updated(), ["app-0"]);

    sources.tracker.wrote(first.meta().uid, 1);
    assert!(sources.slice_changed(Change::Added(&first)).is_empty(), "our own creation");
    assert_eq!(updated(), ["app-0"], "somebody else's change of it");
    sources.tracker.wrote(first.meta().uid, 2);
    assert!(updated().is_empty(), "our own change");
    let moved = build(slice("a", "app-1").generation(2));
    let change = Change::Updated { old: &second, new: &moved };
    assert_eq!(names(sources.slice_changed(change)), ["app-1", "app-0"]);

    sources.tracker.deleted(first.meta().uid);
    assert!(sources.tracker.has_deleted(first.meta().uid));
    assert!(updated().is_empty(), "on its way out");
    assert!(sources.slice_changed(Change::Deleted(&second)).is_empty(), "our own deletion");
    assert!(!sources.tracker.has_deleted(first.meta().uid));
    sources.tracker.deleted(first.meta().uid);
    sources.tracker.start_over();
    assert!(!sources.tracker.has_deleted(first.meta().uid), "a restored etcd has it again");
    assert_eq!(names(sources.slice_changed(Change::Deleted(&second))), ["app-0"]);

    let nobodys = build(object("discovery.k8s.io/v1", "EndpointSlice", "b").set(&["addressType"], "IPv4"));
    assert!(sources.slice_changed(Change::Added(&nobodys)).is_empty());
}

/// Upstream: `TestSyncServiceEndpointSlicePendingDeletion`, `Test_dropEndpointSlicesPendingDeletion`.
#[test]
fn what_is_gone_or_going_is_not_observed() {
    let sources = sources();
    for slice in [slice("a", "app-0"), slice("b", "app-0").terminating(), slice("c", "app-1"), slice("d", "app-0")] {
        store(&sources.slices, &slice.build());
    }
    sources.tracker.deleted(uid("d"));
    let observed = sources.observe(&Key::new("default", "app-0")).unwrap();
    assert_eq!(names(observed.slices.iter().map(|slice| slice.metadata.key.clone())), ["a"]);
    assert!(sources.observe(&Key::new("default", "gone")).is_none());
    assert!(sources.observe(&Key::new("default", "none")).unwrap().slices.is_empty());
}

/// Upstream: `TestUpdateNode`, and the zones that its handler tells.
#[test]
fn the_zones_are_told_anew_when_a_node_changes_that_counts() {
    let (sources, _) = follow();
    let node = |name: &str, zone: &str, ready: &str| -> Arc<Node> {
        let node = object("v1", "Node", name).set(&["metadata", "namespace"], "");
        node.label("topology.kubernetes.io/zone", zone)
            .set(&["status", "conditions"], json!([{ "type": "Ready", "status": ready }]))
            .set(&["status", "allocatable", "cpu"], "1")
            .build()
    };
    let (a, b) = (node("a", "a", "True"), node("b", "b", "True"));
    assert!(is_of_zones(Change::Added(&a)) && is_of_zones(Change::Deleted(&a)));
    let differs = |new: &Arc<Node>| is_of_zones(Change::Updated { old: &a, new });
    assert!(!differs(&node("a", "a", "True")));
    assert!(differs(&node("a", "a", "False")));
    assert!(differs(&node("a", "b", "True")));

    store(&sources.nodes, &a);
    assert_eq!(sources.zones(), None);
    store(&sources.nodes, &b);
    assert_eq!(sources.zones(), None, "nobody has said that a node came");
    sources.tracker.forget_zones();
    assert_eq!(sources.zones().map(|zones| zones.len()), Some(2));
    forget(&sources.nodes, &b);
    sources.tracker.forget_zones();
    assert_eq!(sources.zones(), None);
}

#[test]
fn a_node_that_appears_concerns_the_services_that_have_left_out_its_pods() {
    let sources = sources();
    let key = |name: &str| Key::new("default", name);
    let nodes = |names: &[&str]| names.iter().map(|name| Text::new(name)).collect();
    let check = |node: &str, expected: &[&str]| {
        let node: Arc<Node> = object("v1", "Node", node).set(&["metadata", "namespace"], "").build();
        assert_eq!(names(sources.node_changed(Change::Added(&node))), expected);
        assert_eq!(names(sources.node_changed(Change::Updated { old: &node, new: &node })), [""; 0]);
        assert_eq!(names(sources.node_changed(Change::Deleted(&node))), [""; 0]);
    };
    sources.tracker.await_nodes(&key("app-0"), nodes(&["a", "b"]));
    sources.tracker.await_nodes(&key("app-1"), nodes(&["b"]));
    check("a", &["app-0"]);
    check("b", &["app-0", "app-1"]);
    check("c", &[]);
    sources.tracker.await_nodes(&key("app-0"), nodes(&[]));
    sources.tracker.forget(&key("app-1"));
    check("b", &[]);
}

/// A missing node must not freeze the slices of a Service: it is looked at again later, and events go on at their pace.
#[test]
fn a_service_without_some_pods_is_looked_at_again_and_takes_events_meanwhile() {
    let service = object("v1", "Service", "app-0").set(&["spec", "selector"], json!({ "app": "0" })).build();
    let observed = |nodes: &[&str]| Observed {
        service: Arc::clone(&service),
        pods: vec![app("0").node("gone").build()],
        nodes: nodes.iter().map(|node| (Text::new(node), None)).collect(),
        slices: Vec::new(),
        trigger: None,
        zones: None,
        hints: ServiceHints::default(),
    };
    let requeue_with = |nodes: &[&str]| requeue(&plan(&observed(nodes), Config { max_endpoints_per_slice: 100 }));
    assert_eq!(requeue_with(&[]), Requeue::Partly(REST));
    assert_eq!(requeue_with(&["gone"]), Requeue::Rest(REST));
}
