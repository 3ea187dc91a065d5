//! What the provider is asked to do, and which changes lead to it: upstream's cases under their names.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use service_lb_operator::controller::changes::service_changed;
use service_lb_operator::memory::{Capability, Told};
use service_lb_operator::objects::{FINALIZER, Ingress, Node, Nodes, Service};
use service_lb_operator::observe::{Answer, Caches, Observed};
use service_lb_operator::plan::next;
use service_lb_operator::status::next_status;
use shared::following::cache::Change;
use shared::testing::{NOW, ObjectBuilder, object};
use shared::working::effect::Effect;

const EXCLUDE: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
const TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";

/// Upstream: `newService`.
fn service(type_: &str) -> ObjectBuilder {
    object("v1", "Service", "web")
        .set(&["spec", "type"], type_)
        .set(&["spec", "ports"], json!([{ "port": 80, "protocol": "TCP" }]))
}

/// Upstream: `defaultExternalService`.
fn external() -> ObjectBuilder {
    service("LoadBalancer")
}

fn protected(service: ObjectBuilder) -> ObjectBuilder {
    service.set(&["metadata", "finalizers"], json!([FINALIZER]))
}

fn deleted(service: ObjectBuilder) -> ObjectBuilder {
    service.set(&["metadata", "deletionTimestamp"], NOW.to_string())
}

fn addressed(service: ObjectBuilder) -> ObjectBuilder {
    service.set(&["status", "loadBalancer", "ingress"], json!([{ "ip": "8.8.8.8" }]))
}

/// Upstream: `makeNode`.
fn node(name: &str) -> ObjectBuilder {
    let ready = json!([{ "type": "Ready", "status": "True" }]);
    object("v1", "Node", name)
        .namespace("")
        .set(&["spec", "providerID"], "providerID")
        .set(&["status", "conditions"], ready)
}

fn unready(node: ObjectBuilder) -> ObjectBuilder {
    node.set(&["status", "conditions"], json!([{ "type": "Ready", "status": "False" }]))
}

fn tainted(node: ObjectBuilder, key: &str) -> ObjectBuilder {
    node.set(&["spec", "taints"], json!([{ "key": key, "effect": "NoSchedule" }]))
}

fn nodes(nodes: &[ObjectBuilder]) -> Nodes {
    Nodes::of(nodes.iter().map(ObjectBuilder::build::<Node>).collect())
}

/// What is observed of a Service that the provider was told nothing about.
fn observed(service: Option<&ObjectBuilder>) -> Observed {
    Observed {
        service: service.map(ObjectBuilder::build),
        told: None,
        nodes: nodes(&[node("node1"), node("node2")]),
        capability: Capability::Has,
        balancer: Answer::Unasked,
        object: Answer::Unasked,
    }
}

/// The same after an Ensure of this state with these Nodes.
fn told(observed: Observed, service: &ObjectBuilder, nodes: Option<&Nodes>) -> Observed {
    let told = Told { service: service.build(), nodes: nodes.map(|nodes| nodes.digest) };
    Observed { told: Some(told), ..observed }
}

#[track_caller]
fn check(observed: &Observed, expected: &str) {
    assert_eq!(next(observed).to_string(), expected);
}

#[test]
fn a_service_that_others_hold_while_it_is_deleted_gets_no_load_balancer() {
    check(&observed(Some(&deleted(external()))), "nothing (it wants no load balancer of the provider)");
}

#[test]
fn upstreams_test_sync_load_balancer_if_needed() {
    let new = |service: &ObjectBuilder| observed(Some(service));
    let ensure = "ensure the load balancer (the provider was not told about it yet)";
    let with_finalizer = format!("add the finalizer and {ensure}");
    // service doesn't want LB
    check(&new(&service("ClusterIP")), "nothing (it wants no load balancer of the provider)");
    // udp service that wants LB; tcp service that wants LB; sctp service that wants LB
    for protocol in ["UDP", "TCP", "SCTP"] {
        let ports = json!([{ "port": 80, "protocol": protocol }]);
        check(&new(&external().set(&["spec", "ports"], ports)), &with_finalizer);
    }
    // service specifies loadBalancerClass
    let classed = external().set(&["spec", "loadBalancerClass"], "custom-loadbalancer");
    check(&new(&classed), "nothing (it wants no load balancer of the provider)");
    // service with finalizer that no longer wants LB
    let unwanted = new(&addressed(protected(service("ClusterIP"))));
    check(&unwanted, "ask the provider for the load balancer (it wants no load balancer any more)");
    let exists = Observed { balancer: Answer::Exists, ..unwanted.clone() };
    check(&exists, "delete the load balancer and release the Service (it wants no load balancer any more)");
    let absent = Observed { balancer: Answer::Absent, ..unwanted };
    check(&absent, "make sure of no load balancer and release the Service (it wants no load balancer any more)");
    // service that needs cleanup
    let cleanup = Observed { balancer: Answer::Exists, ..new(&deleted(addressed(protected(external())))) };
    check(&cleanup, "delete the load balancer and release the Service (being deleted)");
    // service with finalizer that wants LB
    check(&new(&protected(external())), ensure);
}

#[test]
fn upstreams_test_needs_cleanup() {
    let needs = |service: ObjectBuilder| service.build::<Service>().needs_cleanup();
    // service without finalizer
    assert!(!needs(object("v1", "Service", "web")));
    // service with finalizer without timestamp without LB
    assert!(needs(protected(service("NodePort"))));
    // service with finalizer without timestamp with LB
    assert!(!needs(protected(external())));
    // service with finalizer with timestamp
    assert!(needs(deleted(protected(object("v1", "Service", "web")))));
}

#[test]
fn upstreams_test_needs_update() {
    #[track_caller]
    fn check(old: &ObjectBuilder, new: &ObjectBuilder, expected: bool) {
        let (old, new): (Arc<Service>, Arc<Service>) = (old.build(), new.build());
        assert_eq!(new.needs_update(&old), expected);
    }
    let with = |path: &[&str], value: Value| external().set(path, value);
    let ports = |ports: Value| with(&["spec", "ports"], ports);
    let tcp = |target: Value| ports(json!([{ "port": 80, "protocol": "TCP", "targetPort": target }]));
    let families = |families: Value| with(&["spec", "ipFamilies"], families);
    let app = |protocol: Value| ports(json!([{ "port": 80, "protocol": "TCP", "appProtocol": protocol }]));
    // If the service type is changed from LoadBalancer to ClusterIP
    check(&external(), &service("ClusterIP"), true);
    // If the Ports are different
    check(
        &ports(json!([{ "port": 8000 }, { "port": 9000 }, { "port": 10000 }])),
        &ports(json!([{ "port": 8001 }, { "port": 9001 }, { "port": 10001 }])),
        true,
    );
    // If external ip counts are different; if external ips are different
    let ips = |ips: Value| with(&["spec", "externalIPs"], ips);
    check(&ips(json!(["old.IP.1"])), &ips(json!(["new.IP.1", "new.IP.2"])), true);
    check(&ips(json!(["old.IP.1", "old.IP.2"])), &ips(json!(["new.IP.1", "new.IP.2"])), true);
    // If UID is different
    check(&external(), &external().uid_of("another"), true);
    // If ExternalTrafficPolicy is different
    check(&external(), &with(&["spec", "externalTrafficPolicy"], json!("Local")), true);
    // If HealthCheckNodePort is different
    check(&external(), &with(&["spec", "healthCheckNodePort"], json!(30123)), true);
    // If TargetGroup is different 1 and 2
    check(&tcp(json!(20)), &tcp(json!(21)), true);
    check(&tcp(json!(22)), &tcp(json!("dns")), true);
    // If appProtocol is the same
    check(&external(), &external(), false);
    // If service IPFamilies from single stack to dual stack, back, and not change
    check(&families(json!(["IPv4"])), &families(json!(["IPv4", "IPv6"])), true);
    check(&families(json!(["IPv4", "IPv6"])), &families(json!(["IPv4"])), true);
    check(&families(json!(["IPv4"])), &families(json!(["IPv4"])), false);
    // If appProtocol is set when previously unset, and to a different value
    check(&app(Value::Null), &app(json!("http")), true);
    check(&app(json!("http")), &app(json!("tcp")), true);
}

#[test]
fn every_field_that_a_load_balancer_depends_on_leads_to_an_ensure() {
    for (path, value) in [
        (&["spec", "loadBalancerSourceRanges"][..], json!(["10.0.0.0/8"])),
        (&["spec", "sessionAffinity"], json!("ClientIP")),
        (&["spec", "sessionAffinityConfig"], json!({ "clientIP": { "timeoutSeconds": 1 } })),
        (&["spec", "loadBalancerIP"], json!("192.0.2.7")),
        (&["metadata", "annotations"], json!({ "a": "b" })),
        (&["spec", "ports"], json!([{ "port": 80, "protocol": "TCP", "nodePort": 30080 }])),
        (&["spec", "ports"], json!([{ "port": 80, "protocol": "TCP", "name": "http" }])),
    ] {
        let (old, new) = (external().build::<Service>(), external().set(path, value).build::<Service>());
        assert!(new.needs_update(&old), "{path:?}");
    }
    for (path, value) in [
        (&["metadata", "labels"][..], json!({ "a": "b" })),
        (&["spec", "selector"], json!({ "a": "b" })),
        (&["spec", "allocateLoadBalancerNodePorts"], json!(false)),
        (&["spec", "internalTrafficPolicy"], json!("Local")),
        (&["status", "loadBalancer", "ingress"], json!([{ "ip": "8.8.8.8" }])),
    ] {
        let (old, new) = (external().build::<Service>(), external().set(path, value).build::<Service>());
        assert!(!new.needs_update(&old), "{path:?}");
    }
}

#[test]
fn upstreams_test_node_changes_for_stable_node_set_enabled() {
    let (node1, node2, node3) = (node("node1"), node("node2"), node("node3"));
    let all = [node1.clone(), node2.clone(), node3.clone()];
    let with_node2 = |node2: ObjectBuilder| [node1.clone(), node2, node3.clone()];
    let service = protected(external());
    let after = |before: &[ObjectBuilder], now: &[ObjectBuilder]| {
        let observed = Observed { nodes: nodes(now), ..observed(Some(&service)) };
        next(&told(observed, &service, Some(&nodes(before)))).to_string()
    };
    let same = "nothing (its load balancer is up to date)";
    let has = |count: usize| format!("update the load balancer's nodes ({count} nodes are to be behind it)");
    // No node changes
    assert_eq!(after(&all, &all), same);
    // 1 new node gets added
    assert_eq!(after(&all[..2], &all), has(3));
    // 1 node goes NotReady; 1 node goes Ready
    assert_eq!(after(&all, &with_node2(unready(node("node2")))), same);
    assert_eq!(after(&with_node2(unready(node("node2"))), &all), same);
    // 1 node gets Tainted
    assert_eq!(after(&all, &with_node2(tainted(node("node2"), TO_BE_DELETED))), has(2));
    // 1 node get excluded
    assert_eq!(after(&all, &with_node2(node("node2").label(EXCLUDE, ""))), has(2));
    // 1 old node gets deleted
    assert_eq!(after(&all, &all[..2]), has(2));
    // 1 node marked for deletion
    assert_eq!(after(&all, &with_node2(deleted(node("node2")))), has(2));
    // 1 spurious node update
    assert_eq!(after(&all, &with_node2(tainted(node("node2"), "Other"))), same);
    // 1 new node gets added - with retries: a failure is followed by an Ensure.
    let failed = told(Observed { nodes: nodes(&all), ..observed(Some(&service)) }, &service, None);
    check(&failed, "ensure the load balancer (the last call to the provider did not succeed)");
}

#[test]
fn upstreams_test_nodes_not_equal() {
    let identified = |name: &str, id: &str| node(name).set(&["spec", "providerID"], id);
    let (cumulus1, cumulus2) = (identified("node1", "cumulus/1"), identified("node2", "cumulus/2"));
    let differ = |old: &[ObjectBuilder], new: &[ObjectBuilder]| nodes(old).digest != nodes(new).digest;
    // Nodes with updated providerID
    assert!(differ(&[node("node1"), node("node2")], &[cumulus1.clone(), cumulus2]));
    // Nodes unchanged
    assert!(!differ(&[cumulus1.clone(), node("node2")], &[cumulus1.clone(), node("node2")]));
    // Change node with empty providerID
    assert!(differ(&[cumulus1.clone(), node("node2")], &[cumulus1, node("node3")]));
}

#[test]
fn upstreams_test_update_nodes_in_external_load_balancer() {
    // Services do not have external load balancers: no calls should be made.
    for type_ in ["ClusterIP", "NodePort"] {
        check(&observed(Some(&service(type_))), "nothing (it wants no load balancer of the provider)");
    }
    // Services does have an external load balancer: one call should be made.
    let service = protected(external());
    let updated = told(observed(Some(&service)), &service, Some(&nodes(&[])));
    check(&updated, "update the load balancer's nodes (2 nodes are to be behind it)");
}

/// All but the last predicate of upstream's test, which counts readiness and is used nowhere.
#[test]
fn upstreams_test_responds_to_predicates() {
    let is_behind = |node: ObjectBuilder| node.build::<Node>().is_behind_load_balancers();
    assert!(is_behind(node("node")));
    assert!(is_behind(node("node").set(&["spec", "providerID"], "")));
    assert!(is_behind(node("node").set(&["metadata", "labels"], json!({}))));
    for (excluded, expected) in [("", false), ("false", true), ("true", false), ("foo", false)] {
        assert_eq!(is_behind(node("node").label(EXCLUDE, excluded)), expected, "{excluded:?}");
    }
    assert!(!is_behind(tainted(node("node"), TO_BE_DELETED)));
}

#[track_caller]
fn check_node(name: &str, old: &ObjectBuilder, new: &ObjectBuilder, expected: bool) {
    let (old, new) = (old.build::<Node>(), new.build::<Node>());
    assert_eq!(new.is_to_sync_after(&old), expected, "{name}");
}

#[test]
fn upstreams_test_should_sync_updated_node_individual_predicates() {
    let plain = || node("node");
    let excluded = || node("node").label(EXCLUDE, "");
    let id = |id: &str| node("node").set(&["spec", "providerID"], id);
    let conditions = |conditions: Value| node("node").set(&["status", "conditions"], conditions);
    let pressure = |ready: &str, pressure: &str| {
        conditions(json!([{ "type": "Ready", "status": ready }, { "type": "DiskPressure", "status": pressure }]))
    };
    let other = |status: &str| {
        conditions(json!([{ "type": "Ready", "status": "True" }, { "type": "Other", "status": status }]))
    };
    check_node("nothing changed", &plain(), &plain(), false);
    check_node("excluded F->T", &plain(), &excluded(), true);
    check_node("excluded changed T->F", &excluded(), &plain(), true);
    check_node("excluded changed T->T", &excluded(), &excluded(), false);
    check_node("other taint F->T", &plain(), &tainted(plain(), "other"), false);
    check_node("other taint T->F", &tainted(plain(), "other"), &plain(), false);
    check_node("other label changed F->T", &plain(), &plain().label("other", ""), false);
    check_node("other label changed T->F", &plain().label("other", ""), &plain(), false);
    check_node("readiness changed F->F", &unready(plain()), &unready(plain()), false);
    check_node("readiness changed F->unset", &unready(plain()), &conditions(json!([])), false);
    check_node("readiness changed unset->F", &conditions(json!([])), &unready(plain()), false);
    check_node("readiness changed unset->unset", &conditions(json!([])), &conditions(json!([])), false);
    check_node("ready F, other condition changed F->T", &pressure("False", "False"), &pressure("False", "True"), false);
    check_node("ready F, other condition changed T->F", &pressure("False", "True"), &pressure("False", "False"), false);
    check_node("ready T, other condition changed F->T", &other("False"), &other("True"), false);
    check_node("ready T, other condition changed T->F", &other("True"), &other("False"), false);
    check_node("deletionTimestamp F -> T", &plain(), &deleted(plain()), false);
    check_node("providerID set F -> T", &id(""), &plain(), true);
    check_node("providerID set T-> F", &plain(), &id(""), true);
    check_node("providerID change", &plain(), &id("providerID-2"), true);
}

#[test]
fn upstreams_test_should_sync_updated_node_compounded_predicates() {
    type Tweak = fn(ObjectBuilder) -> ObjectBuilder;
    let (autoscaled, excluded): (Tweak, Tweak) = (|node| tainted(node, TO_BE_DELETED), |node| node.label(EXCLUDE, ""));
    let (anonymous, renamed): (Tweak, Tweak) =
        (|node| node.set(&["spec", "providerID"], ""), |node| node.set(&["spec", "providerID"], "providerID-2"));
    let rows: [(&str, &[Tweak], Tweak, bool); 14] = [
        ("tainted T, excluded", &[autoscaled], excluded, true),
        ("tainted T, providerID set", &[autoscaled], anonymous, true),
        ("tainted T, providerID change", &[autoscaled], renamed, true),
        ("tainted T, ready", &[autoscaled], unready, false),
        ("excluded T, tainted", &[excluded], autoscaled, false),
        ("excluded T, ready", &[excluded], unready, false),
        ("excluded T, providerID set", &[excluded], anonymous, true),
        ("excluded T, providerID change", &[excluded], renamed, true),
        ("ready F, tainted", &[unready], autoscaled, false),
        ("ready F, excluded", &[unready], excluded, true),
        ("ready F, providerID set", &[unready], anonymous, true),
        ("ready F, providerID change", &[unready], renamed, true),
        ("providerID unset, excluded", &[anonymous], excluded, true),
        ("providerID unset, ready or tainted", &[anonymous, unready], autoscaled, false),
    ];
    for (name, first, change, expected) in rows {
        let without = first.iter().fold(node("node"), |node, tweak| tweak(node));
        let with = change(without.clone());
        check_node(&format!("{name} F->T"), &without, &with, expected);
        check_node(&format!("{name} T->F"), &with, &without, expected);
    }
}

#[test]
fn upstreams_test_patch_status() {
    let of = |ingress: Value| serde_json::from_value::<Ingress>(json!({ "ingress": ingress })).unwrap();
    let status = |old: &Ingress, new: &Ingress| next_status(old, new).map(|status| status.get().to_owned());
    let (some, none) = (of(json!([{ "ip": "8.8.8.8" }])), of(json!(null)));
    // no-op add status
    assert_eq!(status(&some, &some), None);
    // add status
    let added = r#"{"loadBalancer":{"ingress":[{"ip":"8.8.8.8"}]}}"#;
    assert_eq!(status(&none, &some).as_deref(), Some(added));
    // no-op clear status
    assert_eq!(status(&none, &of(json!([]))), None);
    // clear status
    assert_eq!(status(&some, &none).as_deref(), Some(r#"{"loadBalancer":{"ingress":null}}"#));
}

#[test]
fn addresses_that_the_apiserver_would_store_alike_are_not_written_again() {
    let of = |entry: Value| serde_json::from_value::<Ingress>(json!({ "ingress": [entry] })).unwrap();
    let stored = of(json!({ "ip": "192.0.2.1", "ipMode": "VIP" }));
    assert_eq!(stored, of(json!({ "ip": "192.0.2.1", "hostname": "", "ports": [] })));
    assert_ne!(stored, of(json!({ "ip": "192.0.2.1", "ipMode": "Proxy" })));
    assert_ne!(stored, of(json!({ "ip": "192.0.2.1", "ports": [{ "port": 80, "protocol": "TCP" }] })));
    assert_eq!(of(json!({ "hostname": "a" })), of(json!({ "hostname": "a", "ipMode": null })));
}

#[test]
fn a_provider_is_asked_first_what_it_can_do() {
    let unknown = Observed { capability: Capability::Unknown, ..observed(Some(&external())) };
    let asks = "ask the provider what it can do (the provider has not said whether it has load balancers)";
    check(&unknown, asks);
    let lacks = Observed { capability: Capability::Lacks("aws".to_owned()), ..observed(Some(&external())) };
    check(&lacks, "wait (the cloud provider aws has no load balancers)");
    let unconcerned = Observed { capability: Capability::Unknown, ..observed(Some(&service("ClusterIP"))) };
    check(&unconcerned, "nothing (it wants no load balancer of the provider)");
}

#[test]
fn the_load_balancer_of_a_service_that_is_gone_is_deleted_once_the_apiserver_says_so() {
    let gone = told(observed(None), &external(), None);
    check(&gone, "read the Service (its Service is gone)");
    check(&Observed { object: Answer::Absent, ..gone.clone() }, "delete the load balancer (its Service is gone)");
    check(&Observed { object: Answer::Exists, ..gone }, "nothing (the apiserver still has the Service)");
    let successor = told(observed(Some(&external().uid_of("another"))), &external(), None);
    check(&successor, "delete the load balancer (its Service was deleted and created again)");
}

#[test]
fn a_service_that_loses_its_finalizer_gets_it_back() {
    let bare = told(observed(Some(&external())), &external(), Some(&observed(None).nodes));
    check(&bare, "add the finalizer and ensure the load balancer (its finalizer was removed)");
    let (old, new) = (protected(external()).build(), external().build());
    assert_eq!(service_changed(Change::Updated { old: &old, new: &new }).len(), 1);
}

#[test]
fn a_service_that_now_has_a_class_is_let_go() {
    let classed = protected(external().set(&["spec", "loadBalancerClass"], "other"));
    let told = told(observed(Some(&classed)), &protected(external()), Some(&observed(None).nodes));
    check(&told, "ask the provider for the load balancer (it wants no load balancer any more)");
}

#[track_caller]
fn is_enqueued(old: Option<&ObjectBuilder>, new: &ObjectBuilder) -> bool {
    let new: Arc<Service> = new.build();
    let old: Option<Arc<Service>> = old.map(ObjectBuilder::build);
    let effects = match &old {
        Some(old) => service_changed(Change::Updated { old, new: &new }),
        None => service_changed(Change::Added(&new)),
    };
    effects.iter().any(|effect| matches!(effect, Effect::Enqueue(..)))
}

#[test]
fn a_change_that_no_load_balancer_depends_on_leads_to_no_sync() {
    assert!(is_enqueued(None, &external()));
    assert!(is_enqueued(None, &protected(service("ClusterIP"))));
    assert!(!is_enqueued(None, &service("ClusterIP")));
    assert!(!is_enqueued(Some(&external()), &protected(addressed(external()))));
    assert!(!is_enqueued(Some(&external()), &external().label("a", "b")));
    assert!(is_enqueued(Some(&external()), &external().annotation("a", "b")));
    assert!(is_enqueued(Some(&external()), &service("NodePort")));
    assert!(is_enqueued(Some(&protected(external())), &deleted(protected(external()))));
}

#[test]
fn a_changed_node_concerns_the_load_balancers_that_there_may_be() {
    let (caches, _) = Caches::new();
    let (plain, heartbeat) = (node("a").build::<Node>(), unready(node("a")).build::<Node>());
    assert_eq!(caches.node_changed(Change::Added(&plain)), []);
    caches.memory.begin(&external().build());
    assert_eq!(caches.node_changed(Change::Added(&plain)).len(), 1);
    assert_eq!(caches.node_changed(Change::Deleted(&plain)).len(), 1);
    assert_eq!(caches.node_changed(Change::Updated { old: &plain, new: &heartbeat }), []);
}

#[test]
fn a_provider_gets_what_a_cloud_reads_of_a_node_and_no_more() {
    let node = node("a")
        .set(&["metadata", "managedFields"], json!([{}]))
        .set(&["spec", "podCIDR"], "10.0.0.0/24")
        .set(&["status", "images"], json!([{ "names": ["a"] }]))
        .set(&["status", "nodeInfo"], json!({ "architecture": "amd64" }))
        .set(&["status", "addresses"], json!([{ "type": "InternalIP", "address": "10.0.0.1" }]));
    let sent: Value = serde_json::from_str(node.build::<Node>().whole.get()).unwrap();
    let mut expected = node.json().clone();
    for (parent, field) in [("", "apiVersion"), ("", "kind"), ("/metadata", "managedFields"), ("/status", "images")] {
        expected.pointer_mut(parent).and_then(Value::as_object_mut).unwrap().remove(field);
    }
    assert_eq!(sent, expected);
}

#[test]
fn a_service_that_is_too_large_for_the_cache_is_identified() {
    let service = external().annotation("large", &"x".repeat(70_000)).build::<Service>();
    assert!(service.whole().is_none());
    let identity: Value = serde_json::from_str(service.identity().get()).unwrap();
    let uid = service.metadata.uid.to_string();
    assert_eq!(identity, json!({ "metadata": { "namespace": "default", "name": "web", "uid": uid } }));
    assert!(external().build::<Service>().whole().is_some());
    let others = object("v1", "Service", "other").build::<Service>();
    assert!(others.whole().is_none(), "nobody asks a provider about it");
}

/// JSON of any shape, with keys that the views read.
fn odd() -> impl Strategy<Value = Value> {
    const KEYS: [&str; 12] = [
        "type",
        "ports",
        "port",
        "targetPort",
        "ipFamilies",
        "loadBalancer",
        "ingress",
        "ip",
        "annotations",
        "taints",
        "key",
        "conditions",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,4}".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let object = prop::collection::btree_map(prop::sample::select(&KEYS[..]), inner.clone(), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            object.prop_map(|fields| fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_object_makes_a_view_panic(spec in odd(), status in odd(), annotations in odd()) {
        let mut object = protected(external()).json().clone();
        object["spec"] = spec;
        object["metadata"]["annotations"] = annotations;
        object["status"] = status.clone();
        let text = object.to_string();
        if let Ok(service) = serde_json::from_str::<Service>(&text) {
            prop_assert!(!service.needs_update(&service));
        }
        if let Ok(node) = serde_json::from_str::<Node>(&text) {
            prop_assert!(serde_json::from_str::<Value>(node.whole.get()).is_ok());
        }
        if let Ok(ingress) = serde_json::from_value::<Ingress>(status) {
            prop_assert!(next_status(&ingress, &ingress).is_none());
        }
    }

    #[test]
    fn the_order_of_nodes_is_irrelevant(names in prop::collection::hash_set("[a-z]{1,3}", 0..8)) {
        let forward: Vec<ObjectBuilder> = names.iter().map(|name| node(name)).collect();
        let backward: Vec<ObjectBuilder> = forward.iter().rev().cloned().collect();
        prop_assert_eq!(nodes(&forward).digest, nodes(&backward).digest);
    }

    #[test]
    fn what_was_told_to_the_provider_needs_no_call(
        is_protected: bool, ports in prop::collection::vec(1..65535_i32, 0..4), count in 0..4_usize,
    ) {
        let ports: Vec<Value> = ports.iter().map(|port| json!({ "port": port, "protocol": "TCP" })).collect();
        let service = external().set(&["spec", "ports"], json!(ports));
        let service = if is_protected { protected(service) } else { service };
        let set = nodes(&(0..count).map(|n| node(&format!("node-{n}"))).collect::<Vec<_>>());
        let before = Observed { nodes: set.clone(), ..observed(Some(&service)) };
        prop_assert!(next(&before).to_string().contains("ensure"));
        let after = told(Observed { nodes: set.clone(), ..observed(Some(&protected(service.clone()))) }, &service, Some(&set));
        prop_assert_eq!(next(&after).to_string(), "nothing (its load balancer is up to date)");
    }
}
