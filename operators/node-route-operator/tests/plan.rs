//! Which routes Nodes get and what they say: upstream's cases, and rules that hold for any routes.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloud::{NodeAddress, Route};
use node_route_operator::memory::Known;
use node_route_operator::objects::{ListedRoute, NETWORK_UNAVAILABLE, Network, Node};
use node_route_operator::observe::{Caches, Observed};
use node_route_operator::plan::plan;
use node_route_operator::plan::round::plan_round;
use node_route_operator::status::{after, before, network_status};
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::api::cidr::Cidr;
use shared::api::object::Key;
use shared::following::cache::Change;
use shared::testing::{NOW, ObjectBuilder, ago, object, store};
use shared::working::effect::Effect;
use shared::working::queue::Cause;

const IPV4: &str = "10.120.0.0/16";
const DUAL: &str = "10.120.0.0/16,ace:cab:deca::/8";

fn ranges(texts: &str) -> Box<[Cidr]> {
    texts.split(',').map(|text| text.parse().unwrap()).collect()
}

fn node(name: &str, cidrs: &[&str], address: &str) -> ObjectBuilder {
    let addresses = json!([{ "type": "InternalIP", "address": address }]);
    let bare = object("v1", "Node", name).namespace("");
    bare.set(&["spec", "podCIDRs"], json!(cidrs)).set(&["status", "addresses"], addresses)
}

fn saying(node: ObjectBuilder, status: &str, reason: &str) -> ObjectBuilder {
    let condition = json!({ "type": NETWORK_UNAVAILABLE, "status": status, "reason": reason });
    node.set(&["status", "conditions"], json!([{ "type": "Ready", "status": "True" }, condition]))
}

/// A route of a cloud that does not compare addresses.
fn route(node: &str, cidr: &str, address: &str) -> Route {
    let address = NodeAddress { type_: "InternalIP".to_owned(), address: address.to_owned() };
    Route {
        name: format!("{node}-{cidr}"),
        target_node: node.to_owned(),
        target_node_addresses: Some(address).filter(|is| !is.address.is_empty()).into_iter().collect(),
        destination_cidr: cidr.to_owned(),
        ..Route::default()
    }
}

fn comparing(route: Route) -> Route {
    Route { enable_node_addresses: true, ..route }
}

fn blackhole(route: Route) -> Route {
    Route { blackhole: true, ..route }
}

/// `node-1 10.120.0.0/24 10.0.1.1`.
fn shown(route: &Route) -> String {
    let addresses: Vec<&str> = route.target_node_addresses.iter().map(|is| is.address.as_str()).collect();
    format!("{} {} {}", route.target_node, route.destination_cidr, addresses.join(","))
}

/// A cluster and its cloud.
struct World {
    caches: Caches,
    nodes: BTreeMap<String, ObjectBuilder>,
    cloud: Vec<Route>,
}

impl World {
    fn new(cluster_cidrs: &str, nodes: &[ObjectBuilder], cloud: &[Route]) -> Self {
        let (caches, _) = Caches::new(ranges(cluster_cidrs));
        let mut world = Self { caches, nodes: BTreeMap::new(), cloud: cloud.to_vec() };
        for node in nodes {
            world.see(node.clone());
        }
        world
    }

    fn see(&mut self, node: ObjectBuilder) {
        let built: Arc<Node> = node.build();
        store(&self.caches.nodes, &built);
        self.nodes.insert(built.metadata.name().to_owned(), node);
    }

    fn list(&self) {
        self.caches.routes.begin();
        self.caches.routes.listed(self.cloud.clone());
    }

    fn observed(&self, name: &str) -> Observed {
        self.caches.observe(&Key::new("", name)).unwrap()
    }

    fn delete(&mut self, route: &Arc<ListedRoute>) {
        self.cloud.retain(|other| *other != route.route);
        self.caches.routes.deleted(route);
    }

    fn say(&mut self, name: &str, network: Network) {
        let node = self.nodes[name].clone();
        self.see(saying(node, network.status(), network.reason()));
    }

    /// A sync of this Node, without a failure.
    fn sync(&mut self, name: &str) -> String {
        let Some(observed) = self.caches.observe(&Key::new("", name)) else { return String::new() };
        let plan = plan(&observed, self.caches.cluster_cidrs(), NOW);
        let text = plan.to_string();
        if let Some(network) = before(&observed) {
            self.say(name, network);
        }
        plan.delete.iter().for_each(|(route, _)| self.delete(route));
        for cidr in &plan.create {
            let addresses = observed.node.as_ref().unwrap().addresses.iter().map(Into::into).collect();
            let route = Route { target_node_addresses: addresses, ..route(name, &cidr.to_string(), "") };
            self.caches.routes.created(route.clone());
            self.cloud.push(route);
        }
        if let Some(network) = after(&observed, plan.wait.len()) {
            self.say(name, network);
        }
        text
    }

    /// A round, and the syncs that it leads to.
    fn round(&mut self) -> Vec<String> {
        self.list();
        let round = plan_round(&self.caches.observe_round(), self.caches.cluster_cidrs(), NOW);
        round.delete.iter().for_each(|route| self.delete(route));
        round.sync.iter().map(|key| format!("{}: {}", key.name(), self.sync(key.name()))).collect()
    }

    fn settle(&mut self) {
        for _ in 0..3 {
            self.round();
        }
        assert_eq!(self.round(), Vec::<String>::new(), "it does not come to rest");
    }

    /// `node-1: RouteCreated` of each Node that says something.
    fn said(&self) -> Vec<String> {
        let nodes = self.nodes.keys().map(|name| self.caches.nodes.get(&Key::new("", name)).unwrap());
        let said =
            nodes.filter_map(|node| Some(format!("{}: {}", node.metadata.name(), node.network.as_ref()?.reason)));
        said.collect()
    }
}

/// The routes and the conditions at the end.
#[track_caller]
fn check(cluster_cidrs: &str, nodes: &[ObjectBuilder], cloud: &[Route], expected: &[&str], said: &[&str]) {
    let mut world = World::new(cluster_cidrs, nodes, cloud);
    world.settle();
    let mut routes: Vec<String> = world.cloud.iter().map(shown).collect();
    routes.sort();
    assert_eq!(routes, expected);
    assert_eq!(world.said(), said);
}

fn node1() -> ObjectBuilder {
    node("node-1", &["10.120.0.0/24"], "10.0.1.1")
}

fn node2() -> ObjectBuilder {
    node("node-2", &["10.120.1.0/24"], "10.0.2.1")
}

const ROUTES: [&str; 2] = ["node-1 10.120.0.0/24 10.0.1.1", "node-2 10.120.1.0/24 10.0.2.1"];
const SAID: [&str; 2] = ["node-1: RouteCreated", "node-2: RouteCreated"];

fn route1() -> Route {
    route("node-1", "10.120.0.0/24", "10.0.1.1")
}

fn route2() -> Route {
    route("node-2", "10.120.1.0/24", "10.0.2.1")
}

/// Upstream: `TestReconcile`, its rows without dual stack.
#[test]
fn each_node_gets_the_route_of_its_cidr_and_no_other_is_left() {
    let nodes = [node1(), node2()];
    let check = |cloud: &[Route]| check(IPV4, &nodes, cloud, &ROUTES, &SAID);
    // single cidr 2 nodes and routes created
    check(&[route1(), route2()]);
    // single cidr node ips changed so routes should be updated
    let old = |node, cidr, address| comparing(route(node, cidr, address));
    check(&[old("node-1", "10.120.0.0/24", "10.0.1.2"), old("node-2", "10.120.1.0/24", "10.0.2.2")]);
    // single cidr 2 nodes and one route created
    check(&[route1()]);
    // single cidr 2 nodes and no routes
    check(&[]);
    // single cidr 2 nodes and too many routes
    let others = [route("node-3", "10.120.2.0/24", "10.0.3.1"), route("node-4", "10.120.3.0/24", "10.0.4.1")];
    check(&[&[route1(), route2()], &others[..]].concat());
    // single cidr 2 nodes and 2 routes with 1 incorrect
    check(&[route1(), route("node-3", "10.120.2.0/24", "10.0.2.1")]);
    // single cidr 2 nodes and an extra blackhole route in our range
    check(&[route1(), route2(), blackhole(route("", "10.120.2.0/24", "10.0.100.1"))]);
}

/// Upstream: `TestReconcile`, "an extra blackhole route not in our range".
#[test]
fn a_route_out_of_the_ranges_is_nobodys() {
    let out = " 10.1.2.0/24 10.0.100.1";
    let cloud = [route1(), route2(), blackhole(route("", "10.1.2.0/24", "10.0.100.1"))];
    check(IPV4, &[node1(), node2()], &cloud, &[out, ROUTES[0], ROUTES[1]], &SAID);
    let unreadable = route("node-1", "10.120.0.0", "");
    check(IPV4, &[node1()], &[route1(), unreadable], &["node-1 10.120.0.0 ", ROUTES[0]], &SAID[..1]);
}

/// Upstream: `TestReconcile`, "one node without cidr assigned".
#[test]
fn a_node_without_a_cidr_says_nothing_until_it_has_lost_a_route() {
    let unassigned = || node("node-2", &[], "10.0.5.1");
    check(IPV4, &[node1(), unassigned()], &[], &ROUTES[..1], &SAID[..1]);
    // Upstream: the branch of `reconcile` without actions.
    check(IPV4, &[node1(), unassigned()], &[route2()], &ROUTES[..1], &[SAID[0], "node-2: NoRouteCreated"]);
}

/// Upstream: `TestReconcile`, "duplicate pod cidr".
#[test]
fn a_cidr_that_a_node_has_twice_gets_one_route() {
    let twice = node("node-4", &["10.120.1.0/24", "10.120.1.0/24"], "10.0.4.1");
    check(IPV4, &[twice], &[], &["node-4 10.120.1.0/24 10.0.4.1"], &["node-4: RouteCreated"]);
}

/// Upstream: `TestReconcile`, its rows with dual stack.
#[test]
fn each_node_gets_a_route_for_each_of_its_cidrs() {
    let nodes = [
        node("node-3", &["10.120.0.0/24", "a00:100::/24"], "10.0.3.1"),
        node("node-4", &["10.120.1.0/24", "a00:200::/24"], "10.0.4.1"),
    ];
    let expected = [
        "node-3 10.120.0.0/24 10.0.3.1",
        "node-3 a00:100::/24 10.0.3.1",
        "node-4 10.120.1.0/24 10.0.4.1",
        "node-4 a00:200::/24 10.0.4.1",
    ];
    let check = |cloud: &[Route]| {
        check(DUAL, &nodes, cloud, &expected, &["node-3: RouteCreated", "node-4: RouteCreated"]);
    };
    let routes = |address3: &str, address4: &str| {
        vec![
            route("node-3", "10.120.0.0/24", address3),
            route("node-4", "10.120.1.0/24", address4),
            route("node-3", "a00:100::/24", address3),
            route("node-4", "a00:200::/24", address4),
        ]
    };
    // routes have no TargetNodeAddresses at the beginning
    check(&routes("", "").into_iter().map(comparing).collect::<Vec<_>>());
    // routes' TargetNodeAddresses changed
    check(&routes("10.0.13.1", "10.0.14.1").into_iter().map(comparing).collect::<Vec<_>>());
    // multicidr 2 nodes and no routes
    check(&[]);
    // multicidr 2 nodes and all routes created
    check(&routes("10.0.3.1", "10.0.4.1"));
    // multicidr 2 nodes and few wrong routes
    check(&[
        route("node-3", "10.120.1.0/24", "10.0.3.1"),
        route("node-4", "10.120.0.0/24", "10.0.4.1"),
        route("node-3", "a00:200::/24", "10.0.3.1"),
        route("node-4", "a00:100::/24", "10.0.4.1"),
    ]);
    // multicidr 2 nodes and some routes created
    check(&[route("node-3", "10.120.0.0/24", "10.0.3.1"), route("node-4", "a00:200::/24", "10.0.4.1")]);
    // multicidr 2 nodes and too many routes
    let others = [route("node-x", "10.120.2.0/24", "10.0.5.1"), route("node-y", "a00:300::/24", "10.0.6.1")];
    check(&[routes("10.0.3.1", "10.0.4.1"), others.to_vec()].concat());
}

/// Upstream: `TestIsResponsibleForRoute`.
#[test]
fn a_route_is_ours_if_its_first_or_its_last_address_is_in_a_range() {
    let check = |range: &str, destination: &str, expected: bool| {
        let route = ListedRoute::from(route("a", destination, ""));
        assert_eq!(route.is_ours(&ranges(range)), expected, "{destination} in {range}");
    };
    check("10.244.0.0/16", "10.244.0.0/24", true);
    check("10.244.0.0/16", "10.244.10.0/24", true);
    check("10.244.0.0/16", "10.244.255.0/24", true);
    check("10.244.0.0/14", "10.244.0.0/24", true);
    check("10.244.0.0/14", "10.247.255.0/24", true);
    check("a00:100::/10", "a00:100::/24", true);
    check("10.244.0.0/16", "10.224.0.0/24", false);
    check("10.244.0.0/16", "10.0.10.0/24", false);
    check("10.244.0.0/16", "10.255.255.0/24", false);
    check("10.244.0.0/14", "10.248.0.0/24", false);
    check("10.244.0.0/14", "10.243.255.0/24", false);
    check("a00:100::/10", "b00:100::/24", false);
    // One that has the whole range in its middle leads elsewhere too.
    check("10.244.0.0/16", "10.0.0.0/8", false);
    check("10.0.0.0/16", "10.0.0.0/8", true);
    check("10.244.0.0/16,fd00::/48", "fd00::/64", true);
    check("10.244.0.0/16", "10.244.0.0", false);
}

/// Upstream: `TestUpdateNetworkingCondition` and `TestUpdateNetworkingConditionWithCalicoScenario`.
#[test]
fn a_condition_with_another_status_or_reason_is_written() {
    let check = |is: Option<(&str, &str)>, missing: usize, expected: Option<Network>| {
        let bare = node1();
        let node = is.map_or_else(|| bare.clone(), |(status, reason)| saying(bare.clone(), status, reason));
        let world = World::new(IPV4, &[node], &[]);
        world.list();
        assert_eq!(after(&world.observed("node-1"), missing), expected, "{is:?} {missing}");
    };
    check(None, 0, Some(Network::Routed));
    check(None, 1, Some(Network::Unrouted));
    check(Some(("False", "RouteCreated")), 0, None);
    check(Some(("False", "CalicoIsUp")), 0, Some(Network::Routed));
    check(Some(("False", "ExternalCNI")), 0, Some(Network::Routed));
    check(Some(("True", "SomeOtherReason")), 1, Some(Network::Unrouted));
    check(Some(("False", "RouteCreated")), 1, Some(Network::Unrouted));
    check(Some(("True", "NoRouteCreated")), 1, None);
    check(Some(("True", "NoRouteCreated")), 0, Some(Network::Routed));
}

#[test]
fn the_condition_is_upstreams() {
    let condition = |network| network_status(network, NOW)["status"]["conditions"][0].clone();
    let at = json!(shared::api::time::Time::of(NOW));
    let expected = |status, reason, message| -> Value {
        json!({ "type": "NetworkUnavailable", "status": status, "reason": reason, "message": message,
                "lastHeartbeatTime": at, "lastTransitionTime": at })
    };
    assert_eq!(condition(Network::Routed), expected("False", "RouteCreated", "RouteController created a route"));
    let failed = expected("True", "NoRouteCreated", "RouteController failed to create a route");
    assert_eq!(condition(Network::Unrouted), failed);
}

/// Upstream: `TestHandleNodeUpdate`.
#[test]
fn a_change_of_cidrs_or_addresses_is_due_at_once() {
    let world = World::new(IPV4, &[], &[]);
    let enqueue = || vec![Effect::Enqueue(Key::new("", "node-1"), Cause::Edit)];
    let check = |new: ObjectBuilder, expected: Vec<Effect>| {
        let (old, new): (Arc<Node>, Arc<Node>) = (node1().build(), new.build());
        assert_eq!(world.caches.node_changed(Change::Updated { old: &old, new: &new }), expected);
    };
    let moved = || node("node-1", &["10.120.0.0/24"], "10.0.1.2");
    // Before the routes are listed, nothing can be decided.
    check(moved(), Vec::new());
    world.list();
    check(moved(), enqueue());
    check(node("node-1", &["10.121.0.0/24"], "10.0.1.1"), enqueue());
    check(node1(), Vec::new());
    check(node1().set(&["status", "images"], json!([{ "names": ["pause"], "sizeBytes": 239_840 }])), Vec::new());
    check(saying(node1(), "False", "CalicoIsUp"), Vec::new());
    let new: Arc<Node> = node1().build();
    assert_eq!(world.caches.node_changed(Change::Added(&new)), enqueue());
    let forget = vec![Effect::Forget(new.metadata.key.clone(), new.metadata.uid)];
    assert_eq!(world.caches.node_changed(Change::Deleted(&new)), forget);
    let unassigned: Arc<Node> = node("node-1", &[], "10.0.1.1").build();
    assert_eq!(world.caches.node_changed(Change::Added(&unassigned)), Vec::new());
}

#[track_caller]
fn check_plan(world: &World, name: &str, expected: &str) {
    assert_eq!(plan(&world.observed(name), world.caches.cluster_cidrs(), NOW).to_string(), expected);
}

#[test]
fn a_plan_says_what_it_changes_and_why() {
    let cloud = [
        route1(),
        comparing(route("node-2", "10.120.1.0/24", "10.0.2.9")),
        route("node-2", "10.120.7.0/24", "10.0.2.1"),
        blackhole(route("node-3", "10.120.2.0/24", "")),
        route("gone", "10.120.4.0/24", ""),
    ];
    let nodes = [
        node1(),
        node2(),
        node("node-3", &["10.120.2.0/24"], "10.0.3.1"),
        node("node-4", &["10.120.4.0/24", "10.120.5.0/24"], "10.0.4.1"),
        node("node-5", &[], "10.0.5.1"),
    ];
    let world = World::new(IPV4, &nodes, &cloud);
    check_plan(&world, "node-1", "keep (the cloud has not listed its routes yet)");
    world.list();
    check_plan(&world, "node-1", "keep (has its routes, CIDRs: 1)");
    check_plan(
        &world,
        "node-2",
        "delete 10.120.1.0/24 (to old addresses), delete 10.120.7.0/24 (not a CIDR of its Node), create 10.120.1.0/24 \
         (routes: 2 stale, 1 missing, 0 waiting)",
    );
    check_plan(
        &world,
        "node-3",
        "delete 10.120.2.0/24 (leads nowhere), create 10.120.2.0/24 (routes: 1 stale, 1 missing, 0 waiting)",
    );
    check_plan(
        &world,
        "node-4",
        "create 10.120.5.0/24, wait for 10.120.4.0/24 (routes: 0 stale, 1 missing, 1 waiting)",
    );
    check_plan(&world, "node-5", "keep (has no CIDR yet)");
    check_plan(&world, "gone", "delete 10.120.4.0/24 (its Node is gone) (is gone)");
    assert_eq!(world.caches.observe(&Key::new("", "unknown")), None);
}

#[test]
fn a_pause_of_the_cloud_ends_in_time_or_when_the_clock_is_set_back() {
    let world = World::new(IPV4, &[node1()], &[]);
    world.list();
    world.caches.routes.pause("node-1", Duration::from_secs(60), NOW);
    let planned = |now| plan(&world.observed("node-1"), world.caches.cluster_cidrs(), now).to_string();
    let waits = "keep (the cloud wants no call before 2026-01-01T12:01:00Z)";
    assert_eq!([planned(NOW), planned(ago(-59))], [waits, waits]);
    let missing = "create 10.120.0.0/24 (routes: 0 stale, 1 missing, 0 waiting)";
    assert_eq!([planned(ago(-60)), planned(ago(8 * 3600))], [missing, missing]);
}

#[test]
fn a_route_in_the_way_is_deleted_before_its_destination_gets_another() {
    let mut world = World::new(IPV4, &[node1()], &[route("old", "10.120.0.0/24", "10.0.9.9")]);
    world.list();
    assert_eq!(world.sync("node-1"), "wait for 10.120.0.0/24 (routes: 0 stale, 0 missing, 1 waiting)");
    assert_eq!(world.said(), ["node-1: NoRouteCreated"]);
    world.sync("old");
    assert_eq!(world.sync("node-1"), "create 10.120.0.0/24 (routes: 0 stale, 1 missing, 0 waiting)");
    assert_eq!(world.said(), ["node-1: RouteCreated"]);
    // Of two Nodes with one CIDR, the cloud decides, as upstream.
    let world = World::new(IPV4, &[node1(), node("b", &["10.120.0.0/24"], "10.0.2.1")], &[route1()]);
    world.list();
    check_plan(&world, "b", "create 10.120.0.0/24 (routes: 0 stale, 1 missing, 0 waiting)");
}

#[test]
fn a_destination_in_another_form_is_the_same() {
    let ipv6 = node("node-1", &["a00:100::/24"], "10.0.1.1");
    let world = World::new(DUAL, &[ipv6], &[route("node-1", "0A00:0100:0::0/24", "10.0.1.1")]);
    world.list();
    check_plan(&world, "node-1", "keep (has its routes, CIDRs: 1)");
}

#[test]
fn addresses_are_a_set_and_compared_only_where_the_cloud_uses_them() {
    let two = json!([{ "type": "InternalIP", "address": "10.0.1.1" }, { "type": "Hostname", "address": "a" }]);
    let check = |has: Value, expected: bool| {
        let node: Arc<Node> = node1().set(&["status", "addresses"], two.clone()).build();
        let route = Route { target_node_addresses: serde_json::from_value(has.clone()).unwrap(), ..route1() };
        assert!(ListedRoute::from(route.clone()).leads_to(&node.addresses));
        assert_eq!(ListedRoute::from(comparing(route)).leads_to(&node.addresses), expected, "{has}");
    };
    check(two.clone(), true);
    check(json!([two[1], two[0]]), true);
    check(json!([two[0]]), false);
    check(json!([two[0], { "type": "InternalIP", "address": "a" }]), false);
    check(json!([]), false);
}

#[test]
fn what_was_changed_while_a_list_was_answered_stays_changed() {
    let mut world = World::new(IPV4, &[node1(), node2()], &[route("gone", "10.120.9.0/24", ""), route2()]);
    world.list();
    let yesterday = world.cloud.clone();
    world.caches.routes.begin();
    world.sync("node-1");
    world.sync("gone");
    world.caches.routes.listed(yesterday.clone());
    check_plan(&world, "node-1", "keep (has its routes, CIDRs: 1)");
    assert_eq!(world.caches.routes.of_node("gone"), Known::Routes(Vec::new()));
    // The next list began after them, and is believed.
    world.caches.routes.begin();
    world.caches.routes.listed(yesterday);
    check_plan(&world, "node-1", "create 10.120.0.0/24 (routes: 0 stale, 1 missing, 0 waiting)");
}

#[test]
fn a_cloud_without_routes_is_reported_once_and_may_learn_them() {
    let world = World::new(IPV4, &[node1()], &[]);
    assert_eq!([world.caches.routes.unsupported(), world.caches.routes.unsupported()], [true, false]);
    check_plan(&world, "node-1", "keep (the cloud has no routes to keep)");
    world.list();
    check_plan(&world, "node-1", "create 10.120.0.0/24 (routes: 0 stale, 1 missing, 0 waiting)");
}

fn any_route() -> impl Strategy<Value = Route> {
    let node = prop::sample::select(vec!["", "node-0", "node-1", "node-2", "gone"]);
    let cidr = prop::sample::select(vec![
        "10.120.0.0/24",
        "10.120.1.0/24",
        "10.120.2.0/24",
        "10.1.0.0/24",
        "a00:100::/24",
        "x",
    ]);
    let address = prop::sample::select(vec!["", "10.0.0.1", "10.0.0.9"]);
    (node, cidr, address, any::<bool>(), any::<bool>()).prop_map(|(node, cidr, address, compares, leads_nowhere)| {
        Route { enable_node_addresses: compares, blackhole: leads_nowhere, ..route(node, cidr, address) }
    })
}

fn any_nodes() -> impl Strategy<Value = Vec<ObjectBuilder>> {
    let cidrs = vec![vec![], vec!["10.120.0.0/24"], vec!["10.120.1.0/24", "a00:100::/24"], vec!["10.120.2.0/24"]];
    prop::collection::vec(prop::sample::select(cidrs), 0..3).prop_map(|nodes| {
        let named = nodes.into_iter().enumerate();
        named.map(|(number, cidrs)| node(&format!("node-{number}"), &cidrs, "10.0.0.1")).collect()
    })
}

proptest! {
    #[test]
    fn any_cloud_comes_to_rest_with_the_routes_of_the_nodes(nodes in any_nodes(), cloud in prop::collection::vec(any_route(), 0..6)) {
        let mut world = World::new(DUAL, &nodes, &cloud);
        world.settle();
        for route in cloud.iter().filter(|route| !ListedRoute::from((*route).clone()).is_ours(&ranges(DUAL))) {
            prop_assert!(world.cloud.contains(route), "{route:?} is not ours");
        }
        for node in &nodes {
            let node: Arc<Node> = node.build();
            for cidr in &node.pod_cidrs {
                let leads = |route: &&Route| {
                    let route = ListedRoute::from((*route).clone());
                    route.destination == *cidr && route.route.target_node == node.metadata.name() && route.leads_to(&node.addresses)
                };
                prop_assert!(world.cloud.iter().any(|route| leads(&route)), "{cidr} of {} is not routed", node.metadata.name());
            }
        }
        let ours = world.cloud.iter().cloned().map(ListedRoute::from).filter(|route| route.is_ours(&ranges(DUAL)));
        for route in ours {
            let target = world.caches.nodes.get(&Key::new("", &route.route.target_node));
            prop_assert!(target.is_some_and(|node| node.pod_cidrs.contains(&route.destination)), "{route:?} is stale");
        }
    }
}

#[test]
fn a_node_that_waits_is_synced_for_its_condition_alone() {
    let cloud = [route("gone", "10.120.0.0/24", "")];
    for (reason, expected) in [("RouteCreated", vec!["node-1"]), ("NoRouteCreated", vec![])] {
        let status = if reason == "RouteCreated" { "False" } else { "True" };
        let world = World::new(IPV4, &[saying(node1(), status, reason)], &cloud);
        world.list();
        let round = plan_round(&world.caches.observe_round(), world.caches.cluster_cidrs(), NOW);
        let synced: Vec<&str> = round.sync.iter().map(Key::name).filter(|name| *name != "gone").collect();
        assert_eq!(synced, expected, "{reason}");
    }
}
