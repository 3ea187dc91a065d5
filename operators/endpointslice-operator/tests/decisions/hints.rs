//! For whom endpoints are meant: what concerns hints of upstream's `reconciler_test.go`, and `trafficdist_test.go`.

use std::collections::BTreeMap;

use endpointslice_operator::plan::Plan;
use serde_json::{Value, json};
use shared::testing::ObjectBuilder;

use crate::world::{World, new_pod, node, service};

const MODE: &str = "service.kubernetes.io/topology-mode";

/// How many endpoints are meant for each zone and each node; `-` is nobody in particular.
fn hints(world: &World) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for endpoint in world.read().iter().flat_map(|slice| &slice.endpoints) {
        let hints = endpoint.hints.as_deref();
        let names: Vec<String> = hints
            .iter()
            .flat_map(|hints| hints.for_zones.iter().chain(&hints.for_nodes))
            .map(ToString::to_string)
            .collect();
        for name in if names.is_empty() { vec!["-".to_owned()] } else { names } {
            *counts.entry(name).or_default() += 1;
        }
    }
    counts
}

/// How many endpoints are meant for another zone than their own.
fn crossing(world: &World) -> usize {
    let slices = world.read();
    let endpoints = slices.iter().flat_map(|slice| &slice.endpoints);
    let is_crossing = |endpoint: &&endpointslice_operator::objects::Endpoint| {
        endpoint.hints.as_ref().is_some_and(|hints| hints.for_zones.first() != endpoint.zone.as_ref())
    };
    endpoints.filter(is_crossing).count()
}

/// Checks the plan, its events, and the zones in the endpoints' hints afterwards; then there is nothing more to do.
#[track_caller]
fn check(mut world: World, expected: &str, expected_hints: &[(&str, usize)], expected_crossing: usize) -> World {
    let Plan::Write(slices) = world.plan() else { panic!("no slices") };
    let told: Vec<String> =
        slices.families.iter().flat_map(|family| &family.events).map(|n| format!("! {}", n.message)).collect();
    let planned: Vec<String> = std::iter::once(world.sync()).chain(told).collect();
    assert_eq!(planned.join("\n"), expected);
    assert_eq!(hints(&world), expected_hints.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect());
    assert_eq!(crossing(&world), expected_crossing);
    let Plan::Write(again) = world.plan() else { panic!("no slices") };
    for family in again.families {
        assert_eq!(family.writes.count(), 0, "again: {family}");
    }
    world
}

/// `TestReconcileTopology`: three zones, ten nodes in each, one pod on each node.
struct Topology {
    nodes: Vec<ObjectBuilder>,
    pods: Vec<ObjectBuilder>,
}

impl Topology {
    fn new() -> Self {
        let (mut nodes, mut pods) = (Vec::new(), Vec::new());
        for (i, zone) in ["zone-a", "zone-b", "zone-c"].into_iter().enumerate() {
            for j in 0..10 {
                let name = format!("node-{zone}-{j}");
                nodes.push(node(&name, zone, "100m"));
                pods.push(new_pod(i * 100 + j, true).node(&name));
            }
        }
        Self { nodes, pods }
    }

    fn pods(&self, numbers: &[usize]) -> Vec<ObjectBuilder> {
        numbers.iter().map(|n| self.pods[*n].clone()).collect()
    }

    /// Slices with these pods, under the given value of the annotation.
    fn world(&self, slices: &[(&str, &[usize])], annotation: &str) -> World {
        let all: Vec<usize> = slices.iter().flat_map(|(_, pods)| pods.iter().copied()).collect();
        let world = World { nodes: self.nodes.clone(), ..World::new(self.pods(&all)) };
        let world = slices.iter().fold(world, |world, (name, pods)| world.with_slice(name, &self.pods(pods)));
        world.with_service(service("foo").annotation(MODE, annotation))
    }
}

const ZONE_A_B: (&str, &[usize]) = ("zone-a-b", &[7, 8, 16, 17, 18]);
const ZONE_A_C: (&str, &[usize]) = ("zone-a-c", &[5, 6, 25, 26]);
const ZONE_C: (&str, &[usize]) = ("zone-c", &[27, 28, 29]);

/// Upstream: `TestReconcileTopology`.
#[test]
fn endpoints_are_spread_over_zones_where_that_is_possible() {
    let topology = Topology::new();
    let enabled = "record TopologyAwareHintsEnabled\n! Topology Aware Hints has been enabled, addressType: IPv4";
    let each = |count| [("zone-a", count), ("zone-b", count), ("zone-c", count)];

    let expected = format!("IPv4: update zone-c to 3 (3 changed), {enabled}");
    let world = check(topology.world(&[ZONE_C], "auto"), &expected, &each(1), 2);

    // Once told, it is told no more; and all is taken back with the annotation.
    let world = check(world, "IPv4: nothing (3 in 1)", &each(1), 2);
    let expected = "IPv4: update zone-c to 3 (3 changed), record TopologyAwareHintsDisabled\n\
                    ! Topology Aware Hints has been disabled, addressType: IPv4";
    let world = check(world.with_service(service("foo").annotation(MODE, "Disabled")), expected, &[("-", 3)], 0);
    check(world, "IPv4: nothing (3 in 1)", &[("-", 3)], 0);

    let expected = "IPv4: nothing (4 in 1), record TopologyAwareHintsDisabled\n\
                    ! Unable to allocate minimum required endpoints to each zone without exceeding overload threshold \
                    (4 endpoints, 3 zones), addressType: IPv4";
    check(topology.world(&[ZONE_A_C], "auto"), expected, &[("-", 4)], 0);

    let expected = format!("IPv4: update zone-a-b to 5 (5 changed), update zone-a-c to 4 (4 changed), {enabled}");
    check(topology.world(&[ZONE_A_C, ZONE_A_B], "Auto"), &expected, &each(3), 1);
    check(topology.world(&[ZONE_A_C, ZONE_A_B], "disabled"), "IPv4: nothing (9 in 2)", &[("-", 9)], 0);
}

#[test]
fn hints_follow_the_zones_that_are_left_and_go_when_these_cannot_be_told() {
    let topology = Topology::new();
    let mut world = topology.world(&[("zone-c", &[24, 25, 26, 27, 28, 29])], "Auto");
    world.sync();
    assert_eq!(hints(&world).into_values().collect::<Vec<_>>(), [2, 2, 2]);
    world.nodes.retain(|node| !node.json()["metadata"]["name"].as_str().unwrap().starts_with("node-zone-a"));
    let mut world = check(world, "IPv4: update zone-c to 6 (3 changed)", &[("zone-b", 3), ("zone-c", 3)], 3);
    world.nodes.push(node("odd", "", "1"));
    let expected = "IPv4: update zone-c to 6 (6 changed), record TopologyAwareHintsDisabled\n\
                    ! Insufficient Node information: allocatable CPU or zone not specified on one or more nodes, \
                    addressType: IPv4";
    check(world, expected, &[("-", 6)], 0);
}

/// `TestReconcile_TrafficDistribution`: one pod in the first zone, three in the second, two in the third.
fn six_pods(distribution: Value, annotation: &str) -> World {
    let nodes = [0, 1, 2].map(|n| node(&format!("node-{n}"), ["zone-a", "zone-b", "zone-c"][n], "100m"));
    let pods = [0, 1, 1, 1, 2, 2].iter().enumerate().map(|(n, node)| new_pod(n, true).node(&format!("node-{node}")));
    let service = service("foo").set(&["spec", "trafficDistribution"], distribution).annotation(MODE, annotation);
    World { nodes: nodes.to_vec(), ..World::new(pods.collect()) }.with_service(service)
}

/// Upstream: `TestReconcile_TrafficDistribution`.
#[test]
fn traffic_distribution_keeps_clients_near_by() {
    let same_zone = [("zone-a", 1), ("zone-b", 3), ("zone-c", 2)];
    check(six_pods(json!("PreferClose"), "Disabled"), "IPv4: create 6", &same_zone, 0);
    check(six_pods(json!("PreferSameZone"), "Disabled"), "IPv4: create 6", &same_zone, 0);
    let expected = "IPv4: create 6, record TopologyAwareHintsEnabled\n\
                    ! Topology Aware Hints has been enabled, addressType: IPv4";
    let spread = [("zone-a", 2), ("zone-b", 2), ("zone-c", 2)];
    let world = check(six_pods(json!("PreferClose"), "Auto"), expected, &spread, 1);
    let expected = "IPv4: update new-1 to 6 (1 changed), record TopologyAwareHintsDisabled\n\
                    ! Topology Aware Hints has been disabled, addressType: IPv4";
    check(world.with_service(six_pods(json!("PreferClose"), "").service), expected, &same_zone, 0);

    check(six_pods(Value::Null, ""), "IPv4: create 6", &[("-", 6)], 0);
    check(six_pods(json!("Unknown"), ""), "IPv4: create 6", &[("-", 6)], 0);
    let same_node = [("node-0", 1), ("node-1", 3), ("node-2", 2), ("zone-a", 1), ("zone-b", 3), ("zone-c", 2)];
    let world = check(six_pods(json!("PreferSameNode"), "Disabled"), "IPv4: create 6", &same_node, 0);

    // It follows what is asked for.
    let to = |distribution| six_pods(distribution, "").service;
    let expected = "IPv4: update new-1 to 6 (6 changed)";
    let world = check(world.with_service(to(json!("PreferSameZone"))), expected, &same_zone, 0);
    let world = check(world.with_service(to(json!("PreferClose"))), "IPv4: nothing (6 in 1)", &same_zone, 0);
    check(world.with_service(to(json!("Unknown"))), expected, &[("-", 6)], 0);
}

/// Upstream: `TestReconcileHints`.
#[test]
fn only_ready_endpoints_are_meant_for_somebody_and_only_wrong_hints_are_written() {
    let with_hints = |hints: Value| {
        let mut world = six_pods(json!("PreferClose"), "");
        world.pods.truncate(2);
        world.sync();
        world.slices.get_mut("new-1").unwrap()["endpoints"][0]["hints"] = hints;
        world
    };
    let update = "IPv4: update new-1 to 2 (1 changed)";
    let right = [("zone-a", 1), ("zone-b", 1)];
    check(with_hints(json!({ "forZones": [{ "name": "zone-a" }] })), "IPv4: nothing (2 in 1)", &right, 0);
    check(with_hints(json!({ "forZones": [{ "name": "zone-c" }] })), update, &right, 0);
    check(with_hints(json!({ "forZones": [{ "name": "zone-a" }, { "name": "zone-b" }] })), update, &right, 0);
    let with_node = json!({ "forZones": [{ "name": "zone-a" }], "forNodes": [{ "name": "node-0" }] });
    check(with_hints(with_node), update, &right, 0);
    check(with_hints(Value::Null), update, &right, 0);

    let without_zones = |distribution: &str| {
        let mut world = six_pods(json!(distribution), "");
        world.pods.truncate(2);
        world.nodes = ["node-0", "node-1"].map(|name| node(name, "", "1")).to_vec();
        world
    };
    check(without_zones("PreferClose"), "IPv4: create 2", &[("-", 2)], 0);
    check(without_zones("PreferSameNode"), "IPv4: create 2", &[("node-0", 1), ("node-1", 1)], 0);

    let mut unready = six_pods(json!("PreferSameNode"), "");
    unready.pods = vec![new_pod(0, false).node("node-0"), new_pod(1, true).node("node-1")];
    let world = check(unready, "IPv4: create 2", &[("-", 1), ("node-1", 1), ("zone-b", 1)], 0);
    let mut stale = world;
    stale.slices.get_mut("new-1").unwrap()["endpoints"][0]["hints"] = json!({ "forZones": [{ "name": "zone-c" }] });
    check(stale, "IPv4: nothing (2 in 1)", &[("node-1", 1), ("zone-b", 1), ("zone-c", 1)], 1);
}
