use std::sync::Arc;

use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::api::object::{Key, Object};
use shared::testing::{ObjectBuilder, forget, object, pod, store, uid};
use shared::working::worker::Requeue;

use super::*;
use crate::controller::{REST, requeue};
use crate::memory::Memory;
use crate::memory::topology::ServiceHints;
use crate::objects::MANAGED_BY;
use crate::observe::Observed;
use crate::plan::{Config, plan};

/// Services `app-0` to `app-2`, which select the pods of that app, one that selects two labels, and one without
/// selector.
fn caches() -> Caches {
    let (caches, _) = Caches::new();
    let service =
        |name: &str, selector: Value| object("v1", "Service", name).set(&["spec", "selector"], selector).build();
    for n in 0..3 {
        store(&caches.services, &service(&format!("app-{n}"), json!({ "app": n.to_string() })));
    }
    store(&caches.services, &service("both", json!({ "app": "0", "tier": "web" })));
    store(&caches.services, &service("none", Value::Null));
    caches
}

fn app(name: &str) -> ObjectBuilder {
    let pod = pod("a").label("app", name).set(&["status", "podIP"], "10.0.0.1");
    pod.set(&["status", "podIPs"], json!([{ "ip": "10.0.0.1" }]))
}

/// The delay of the caller; the effects do not depend on it.
const DELAY: Duration = Duration::from_secs(3);

/// The Services that are enqueued.
fn services(effects: Vec<Effect>) -> Vec<String> {
    names(effects.into_iter().map(|effect| {
        let (Effect::Enqueue(service, Cause::Event) | Effect::EnqueueAfter(service, DELAY, _)) = effect else {
            panic!("{effect:?}")
        };
        service
    }))
}

fn key(name: &str) -> Key {
    Key::new("default", name)
}

fn names(keys: impl IntoIterator<Item = Key>) -> Vec<String> {
    keys.into_iter().map(|key| key.name().to_owned()).collect()
}

/// Upstream: `TestGetPodServicesToUpdate`.
#[test]
fn a_pod_concerns_the_services_that_select_it() {
    let caches = caches();
    let check = |pod: ObjectBuilder, expected: &[&str]| {
        let pod: Arc<Pod> = pod.build();
        assert_eq!(services(caches.pod_changed(Change::Added(&pod), DELAY)), expected);
        assert_eq!(services(caches.pod_changed(Change::Deleted(&pod), DELAY)), expected);
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
    let caches = caches();
    let check = |old: ObjectBuilder, new: ObjectBuilder, expected: &[&str]| {
        let (old, new): (Arc<Pod>, Arc<Pod>) = (old.build(), new.build());
        assert_eq!(
            services(caches.pod_changed(Change::Updated { old: &old, new: &new }, DELAY)),
            expected,
            "{old:?} {new:?}"
        );
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
    let caches = caches();
    for service in ["app-0", "app-1"] {
        caches.memory.services.remember(&key(service), &Arc::default());
    }
    let build = |slice: ObjectBuilder| -> Arc<EndpointSlice> { slice.build() };
    let (first, second) = (build(slice("a", "app-0")), build(slice("a", "app-0").generation(2)));
    let updated = || services(caches.endpoint_slice_changed(Change::Updated { old: &first, new: &second }, DELAY));
    assert_eq!(services(caches.endpoint_slice_changed(Change::Added(&first), DELAY)), ["app-0"]);
    assert_eq!(updated(), ["app-0"]);

    caches.memory.slices.wrote(&key("app-0"), first.meta().uid, 1);
    assert!(caches.endpoint_slice_changed(Change::Added(&first), DELAY).is_empty(), "our own creation");
    assert_eq!(updated(), ["app-0"], "somebody else's change of it");
    caches.memory.slices.wrote(&key("app-0"), first.meta().uid, 2);
    assert!(updated().is_empty(), "our own change");
    let moved = build(slice("a", "app-1").generation(2));
    let change = Change::Updated { old: &second, new: &moved };
    assert_eq!(services(caches.endpoint_slice_changed(change, DELAY)), ["app-1", "app-0"]);

    caches.memory.slices.deleted(&key("app-0"), first.meta().uid);
    assert!(caches.memory.slices.has_deleted(&first));
    assert!(updated().is_empty(), "on its way out");
    assert!(caches.endpoint_slice_changed(Change::Deleted(&second), DELAY).is_empty(), "our own deletion");
    caches.memory.slices.deletion_observed(&first);
    assert!(!caches.memory.slices.has_deleted(&first));
    caches.memory.slices.deleted(&key("app-0"), first.meta().uid);
    caches.memory.slices.start_over();
    assert!(!caches.memory.slices.has_deleted(&first), "a restored etcd has it again");
    assert_eq!(services(caches.endpoint_slice_changed(Change::Deleted(&second), DELAY)), ["app-0"]);

    let nobodys = build(object("discovery.k8s.io/v1", "EndpointSlice", "b").set(&["addressType"], "IPv4"));
    assert!(caches.endpoint_slice_changed(Change::Added(&nobodys), DELAY).is_empty());
}

#[test]
fn a_slice_concerns_no_service_that_was_never_looked_at_or_is_gone() {
    let caches = caches();
    let slice: Arc<EndpointSlice> = slice("a", "app-0").build();
    let woken = || {
        let changes = [Change::Added(&slice), Change::Deleted(&slice)];
        changes.map(|change| services(caches.endpoint_slice_changed(change, DELAY)).len())
    };
    assert_eq!(woken(), [0, 0], "its first look is still to come");
    caches.memory.services.remember(&key("app-0"), &Arc::default());
    assert_eq!(woken(), [1, 1]);
    caches.memory.forget(&key("app-0"));
    assert_eq!(woken(), [0, 0]);
}

/// Nobody may follow slices any more when they go: what was written of them goes with what they were written for.
#[test]
fn what_was_written_is_forgotten_with_its_service() {
    let caches = caches();
    let slice: Arc<EndpointSlice> = slice("a", "app-0").generation(1).build();
    let forgets = |forget: &dyn Fn(&Memory)| {
        caches.memory.slices.wrote(&key("app-0"), slice.meta().uid, 1);
        assert!(!caches.memory.slices.is_news(&slice));
        forget(&caches.memory);
        caches.memory.slices.is_news(&slice)
    };
    assert!(forgets(&|memory| memory.forget(&key("app-0"))));
    assert!(forgets(&|memory| memory.slices.forget(&key("app-0"))));
    assert!(!forgets(&|memory| memory.forget(&key("app-1"))));
}

/// Upstream: `TestSyncServiceEndpointSlicePendingDeletion`, `Test_dropEndpointSlicesPendingDeletion`.
#[test]
fn what_is_gone_or_going_is_not_observed() {
    let caches = caches();
    for slice in [slice("a", "app-0"), slice("b", "app-0").terminating(), slice("c", "app-1"), slice("d", "app-0")] {
        store(&caches.endpoint_slices, &slice.build());
    }
    caches.memory.slices.deleted(&key("app-0"), uid("d"));
    let observed = caches.observe(&Key::new("default", "app-0")).unwrap();
    assert_eq!(names(observed.slices.iter().map(|slice| slice.metadata.key.clone())), ["a"]);
    assert!(caches.observe(&Key::new("default", "gone")).is_none());
    assert!(caches.observe(&Key::new("default", "none")).unwrap().slices.is_empty());
}

#[test]
fn observing_changes_nothing_of_what_is_remembered() {
    let caches = caches();
    let observe = || caches.observe(&Key::new("default", "app-0")).unwrap();
    let (first, second) = (observe(), observe());
    assert!(first.trigger.is_some());
    assert_eq!(first.trigger, second.trigger);
    caches.memory.services.remember(&first.service.metadata.key, &first.state);
    assert_eq!(observe().trigger, None);
}

/// Upstream: `TestUpdateNode`, and the zones that its handler tells.
#[test]
fn the_zones_are_told_anew_when_a_node_changes_that_counts() {
    let (caches, _) = Caches::new();
    let node = |name: &str, zone: &str, ready: &str| -> Arc<Node> {
        let node = object("v1", "Node", name).set(&["metadata", "namespace"], "");
        node.label("topology.kubernetes.io/zone", zone)
            .set(&["status", "conditions"], json!([{ "type": "Ready", "status": ready }]))
            .set(&["status", "allocatable", "cpu"], "1")
            .build()
    };
    let (a, b) = (node("a", "a", "True"), node("b", "b", "True"));
    assert!(changes_zones(Change::Added(&a)) && changes_zones(Change::Deleted(&a)));
    let differs = |new: &Arc<Node>| changes_zones(Change::Updated { old: &a, new });
    assert!(!differs(&node("a", "a", "True")));
    assert!(differs(&node("a", "a", "False")));
    assert!(differs(&node("a", "b", "True")));

    store(&caches.nodes, &a);
    assert_eq!(caches.zones(), None);
    caches.memory.remember_zones(None);
    store(&caches.nodes, &b);
    assert_eq!(caches.zones(), None, "nobody has said that a node came");
    caches.memory.forget_zones();
    assert_eq!(caches.zones().map(|zones| zones.len()), Some(2));
    caches.memory.remember_zones(caches.zones());
    forget(&caches.nodes, &b);
    assert_eq!(caches.zones().map(|zones| zones.len()), Some(2), "nobody has said that a node went");
    caches.memory.forget_zones();
    assert_eq!(caches.zones(), None);
    caches.memory.remember_zones(Some(Arc::new([(Text::new("b"), 1.0)].into())));
    forget(&caches.nodes, &a);
    assert_eq!(caches.zones(), None, "nodes are not followed any more");
}

#[test]
fn a_node_that_appears_concerns_the_services_that_have_left_out_its_pods() {
    let caches = caches();
    let nodes = |names: &[&str]| names.iter().map(|name| Text::new(name)).collect();
    let check = |node: &str, expected: &[&str]| {
        let node: Arc<Node> = object("v1", "Node", node).set(&["metadata", "namespace"], "").build();
        assert_eq!(services(caches.node_changed(Change::Added(&node))), expected);
        assert_eq!(services(caches.node_changed(Change::Updated { old: &node, new: &node })), [""; 0]);
        assert_eq!(services(caches.node_changed(Change::Deleted(&node))), [""; 0]);
    };
    caches.memory.await_nodes(&key("app-0"), nodes(&["a", "b"]));
    caches.memory.await_nodes(&key("app-1"), nodes(&["b"]));
    check("a", &["app-0"]);
    check("b", &["app-0", "app-1"]);
    check("c", &[]);
    caches.memory.await_nodes(&key("app-0"), nodes(&[]));
    caches.memory.forget(&key("app-1"));
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
        state: Arc::default(),
        trigger: None,
        zones: None,
        hints: ServiceHints::default(),
    };
    let requeue_with = |nodes: &[&str]| requeue(&plan(&observed(nodes), Config { max_endpoints_per_slice: 100 }));
    assert_eq!(requeue_with(&[]), Requeue::Partly(REST));
    assert_eq!(requeue_with(&["gone"]), Requeue::Rest(REST));
}
