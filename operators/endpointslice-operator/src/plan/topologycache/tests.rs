use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};
use shared::testing::object;
use shared::working::events::EventType;

use super::*;
use crate::memory::topology::zone_ratios;
use crate::objects::{EndpointSlice, Node};

/// An endpoint of each pair: its zone (`""` for none) and for which zone it is meant (`""` for none), ready if in capital
/// letters.
fn endpoints(pairs: &[(&str, &str)]) -> Vec<Endpoint> {
    let zone = |text: &str| if text.is_empty() { Value::Null } else { json!(format!("zone-{}", text.to_lowercase())) };
    let endpoints = pairs.iter().enumerate().map(|(n, (own, meant))| {
        let hints = if meant.is_empty() { Value::Null } else { json!({ "forZones": [{ "name": zone(meant) }] }) };
        let is_ready = own.is_empty() || own.chars().all(char::is_uppercase);
        let conditions = json!({ "ready": is_ready });
        json!({ "addresses": [format!("10.0.0.{n}")], "zone": zone(own), "hints": hints, "conditions": conditions })
    });
    serde_json::from_value(endpoints.collect()).unwrap()
}

fn draft(pairs: &[(&str, &str)]) -> Draft<'static> {
    Draft { endpoints: Cow::Owned(endpoints(pairs)), ..Draft::new(&[]) }
}

/// For which zone each endpoint is meant: `a`, or `-`.
fn meant(drafts: &[Draft<'_>]) -> Vec<String> {
    let letter = |endpoint: &Endpoint| match endpoint.hints.as_ref().map(|hints| &*hints.for_zones) {
        Some([zone]) => zone.trim_start_matches("zone-").to_owned(),
        Some(_) | None => "-".to_owned(),
    };
    drafts.iter().map(|draft| draft.endpoints.iter().map(letter).collect()).collect()
}

fn ratios(pairs: &[(&str, f64)]) -> ZoneRatios {
    pairs.iter().map(|(zone, ratio)| (Text::new(&format!("zone-{zone}")), *ratio)).collect()
}

fn counts(pairs: &[(&str, i64)]) -> ZoneCounts {
    pairs.iter().map(|(zone, count)| (Text::new(&format!("zone-{zone}")), *count)).collect()
}

fn some_ratios(pairs: &[(&str, f64)]) -> Option<ZoneRatios> {
    (!pairs.is_empty()).then(|| ratios(pairs))
}

/// Upstream: `TestAddHints`.
#[test]
fn each_zone_gets_endpoints_after_its_cpu() {
    let check = |ratios: &[(&str, f64)],
                 create: &[&[(&str, &str)]],
                 update: &[&[(&str, &str)]],
                 expected: (&[&str], &[&str], &[(&str, i64)]),
                 message: &str| {
        let of = |slices: &[&[(&str, &str)]]| slices.iter().map(|pairs| draft(pairs)).collect();
        let mut drafts = Drafts { create: of(create), update: of(update), unchanged: Vec::new() };
        let mut hints = ServiceHints::default();
        let (service, ratios): (Arc<Service>, _) = (object("v1", "Service", "web").build(), some_ratios(ratios));
        let event = add_hints(&service, ratios.as_ref(), &AddressType::IPv4, &mut drafts, &mut hints).unwrap();
        assert_eq!(meant(&drafts.create), expected.0);
        assert_eq!(meant(&drafts.update), expected.1);
        assert_eq!(hints.allocated.get(&AddressType::IPv4).cloned().unwrap_or_default(), counts(expected.2));
        let is_enabled = !expected.2.is_empty();
        let (kind, reason) = if is_enabled {
            (EventType::Normal, "TopologyAwareHintsEnabled")
        } else {
            (EventType::Warning, "TopologyAwareHintsDisabled")
        };
        assert_eq!((hints.is_enabled, event.kind, event.reason), (is_enabled, kind, reason));
        assert_eq!((event.about, event.message), (service.reference(), format!("{message}, addressType: IPv4")));
    };
    let enabled = "Topology Aware Hints has been enabled";
    let no_nodes = "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes";
    check(&[], &[], &[], (&[], &[], &[]), no_nodes);
    check(&[], &[&[("A", "")]], &[], (&["-"], &[], &[]), no_nodes);
    let too_few = "Insufficient number of endpoints (2 endpoints, 3 zones)";
    let two = [("A", ""), ("B", "")];
    check(&[("a", 0.3), ("b", 0.4), ("c", 0.3)], &[&two], &[], (&["--"], &[], &[]), too_few);
    check(&[("a", 0.45), ("b", 0.55)], &[&two], &[], (&["ab"], &[], &[("a", 1), ("b", 1)]), enabled);
    let and_unready = [("A", ""), ("B", ""), ("b", ""), ("b", "")];
    check(&[("a", 0.45), ("b", 0.55)], &[&and_unready], &[], (&["ab--"], &[], &[("a", 1), ("b", 1)]), enabled);
    check(
        &[("a", 0.35), ("b", 0.35), ("c", 0.30)],
        &[&[("A", ""), ("B", "")], &[("C", ""), ("C", ""), ("A", "")]],
        &[&[("A", ""), ("A", "")], &[("B", ""), ("C", ""), ("A", "")]],
        (&["bb", "cca"], &["aa", "bca"], &[("a", 4), ("b", 3), ("c", 3)]),
        enabled,
    );
    let no_zone = "One or more endpoints do not have a zone specified";
    check(&[("a", 0.5), ("b", 0.5)], &[&[("A", "")], &[("", "")]], &[], (&["-", "-"], &[], &[]), no_zone);
    check(&[("a", 1.0)], &[&two], &[], (&["--"], &[], &[]), "Nodes only ready in one zone");
}

/// Upstream: `TestSetNodes`.
#[test]
fn zones_have_the_share_of_their_ready_nodes() {
    let check = |nodes: &[(&str, &str, bool, bool)], expected: Option<&[(&str, f64)]>| {
        let nodes: Vec<Arc<Node>> = nodes
            .iter()
            .map(|(zone, cpu, is_ready, is_plane)| {
                let node = object("v1", "Node", "n").set(&["status", "allocatable", "cpu"], *cpu);
                let status = if *is_ready { "True" } else { "False" };
                let node = node.set(&["status", "conditions"], json!([{ "type": "Ready", "status": status }]));
                let node = if zone.is_empty() {
                    node
                } else {
                    node.label("topology.kubernetes.io/zone", &format!("zone-{zone}"))
                };
                if *is_plane { node.label("node-role.kubernetes.io/control-plane", "").build() } else { node.build() }
            })
            .collect();
        assert_eq!(zone_ratios(nodes.iter().map(|node| &**node)), expected.map(ratios));
    };
    let (a, b) = (("a", "1000m", true, false), ("b", "1000m", true, false));
    let half = Some([("a", 0.5), ("b", 0.5)].as_slice());
    check(&[], None);
    check(&[a], None);
    check(&[a, a], None);
    check(&[a, b], half);
    check(&[("a", "1000m", false, false), b], None);
    check(&[a, ("b", "1000m", true, true)], None);
    check(&[a, b, ("b", "1000m", false, false)], half);
    check(&[a, b, ("b", "1000m", true, true)], half);
    let (b3, b1, c) = (("b", "3000m", true, false), ("b", "1500m", true, false), ("c", "500m", true, false));
    let uneven = [("a", 0.5), ("b", 0.45), ("c", 0.05)];
    check(&[a, a, a, ("a", "2", true, false), b3, b1, c], Some(&uneven));
    check(&[a, b, ("", "1", true, false)], None);
    check(&[a, b, ("b", "0", true, false)], None);
}

fn desired(pairs: &[(&str, f64)]) -> Allocations {
    let allocation = |desired: &f64| Allocation { minimum: 0, maximum: 0, desired: *desired };
    pairs.iter().map(|(zone, number)| (Text::new(&format!("zone-{zone}")), allocation(number))).collect()
}

/// Upstream: `Test_getGivingAndReceivingZones`.
#[test]
fn zones_with_most_too_many_give_to_zones_with_most_too_few() {
    let check =
        |allocations: &[(&str, f64)], has: &[(&str, i64)], giving: &[(&str, i64)], receiving: &[(&str, i64)]| {
            let (given, received) = giving_and_receiving(&desired(allocations), &counts(has));
            assert_eq!((given, received), (counts(giving), counts(receiving)), "{allocations:?} {has:?}");
        };
    let three = |a, b, c| [("a", a), ("b", b), ("c", c)];
    check(&[], &[], &[], &[]);
    check(&three(1.2, 1.1, 1.0), &[("a", 1), ("b", 1), ("c", 1)], &[], &[]);
    check(&three(5.1, 5.1, 5.8), &[("a", 16)], &[("a", 10)], &[("b", 5), ("c", 5)]);
    check(&three(5.0, 5.6, 5.4), &[("a", 16)], &[("a", 11)], &[("b", 6), ("c", 5)]);
    check(&three(5.0, 5.6, 5.4), &[("b", 8), ("c", 8)], &[("b", 2), ("c", 3)], &[("a", 5)]);
    check(&three(5.0, 5.0, 5.0), &[("a", 6), ("b", 6), ("c", 6)], &[], &[]);
    check(&three(-5.0, -5.0, -5.0), &[("a", 6), ("b", 6), ("c", 6)], &[], &[]);
    check(&three(5.0, 5.0, 5.0), &[("a", -4), ("b", -3), ("c", -2)], &[], &[]);
    check(&three(5.0, 5.0, 5.0), &[("a", -40), ("b", 20), ("c", 20)], &[("b", 15), ("c", 15)], &[("a", 30)]);
}

/// Upstream: `Test_redistributeHints`.
#[test]
fn hints_move_from_giving_to_receiving_zones() {
    let check = |pairs: &[(&str, &str)],
                 giving: &[(&str, i64)],
                 receiving: &[(&str, i64)],
                 expected: &str,
                 differences: &[(&str, i64)]| {
        let mut drafts = [draft(pairs)];
        let moved = redistribute(drafts.iter_mut(), counts(giving), counts(receiving));
        assert_eq!(meant(&drafts), [expected]);
        assert_eq!(moved, counts(differences));
    };
    check(&[], &[], &[], "", &[]);
    check(&[("A", "a")], &[("a", 1)], &[("b", 1)], "b", &[("a", -1), ("b", 1)]);
    let three = [("A", "a"), ("A", "a"), ("A", "a")];
    check(&three, &[("a", 2)], &[("b", 1), ("c", 1)], "bca", &[("a", -2), ("b", 1), ("c", 1)]);
    let unready = [("a", "a"), ("A", "a")];
    check(&unready, &[("a", 2)], &[("b", 2)], "ab", &[("a", -1), ("b", 1)]);
}

/// Upstream: `Test_getHintsByZone`.
#[test]
fn hints_stay_where_they_are_complete_and_no_zone_has_too_many() {
    let check =
        |pairs: &[(&str, &str)], before: &[(&str, i64)], maximum: &[(&str, i64)], expected: Option<&[(&str, i64)]>| {
            let allocation = |maximum: &i64| Allocation { minimum: 0, maximum: *maximum, desired: 0.0 };
            let allocations =
                maximum.iter().map(|(zone, number)| (Text::new(&format!("zone-{zone}")), allocation(number))).collect();
            assert_eq!(hints_by_zone(&draft(pairs), &counts(before), &allocations), expected.map(counts), "{pairs:?}");
        };
    let three = [("a", 3), ("b", 3), ("c", 3)];
    check(&[], &[], &[], Some(&[]));
    check(&[("A", "a")], &[("a", 1)], &three, Some(&[("a", 1)]));
    check(&[("A", "a"), ("a", "a"), ("a", "")], &[("a", 1)], &three, Some(&[("a", 1)]));
    check(&[("A", "a"), ("A", "b"), ("B", "b")], &[("a", 1), ("b", 1), ("c", 1)], &three, Some(&[("a", 1), ("b", 2)]));
    check(&[("A", "x")], &[("a", 1)], &three, None);
    check(&[("A", "")], &[], &three, None);
    check(&[("A", "a"), ("A", "a")], &[("a", 1)], &[("a", 2)], None);
}

/// Upstream: `Test_checkNodeTopologyDistribution`.
#[test]
fn a_service_is_overloaded_where_a_zone_has_too_few_endpoints() {
    let check = |zones: &[(&str, f64)], has: &[(&str, i64)], expected: bool| {
        let allocated = [(AddressType::IPv4, counts(has))].into();
        let hints = ServiceHints { allocated, is_enabled: true };
        assert_eq!(hints.is_overloaded(some_ratios(zones).as_ref()), expected, "{zones:?} {has:?}");
    };
    assert!(!ServiceHints::default().is_overloaded(None));
    let lopsided = [("a", 0.1 / 3.1), ("b", 1.0 / 3.1), ("c", 2.0 / 3.1)];
    check(&lopsided, &[("a", 1), ("b", 2), ("c", 3)], true);
    check(&[("b", 1.0 / 3.0), ("c", 2.0 / 3.0)], &[("a", 1), ("b", 2), ("c", 3)], true);
    let even = [("b", 0.5), ("c", 0.5)];
    check(&even, &[("b", 5), ("c", 4)], false);
    check(&[], &[("b", 5), ("c", 4)], true);
    check(&even, &[("b", 6), ("c", 4)], true);
    check(&lopsided, &[("c", 20), ("b", 10), ("a", 1)], false);
    check(&lopsided, &[("c", 20), ("b", 10), ("a", 0)], true);
    check(&lopsided, &[("c", 20), ("b", 10)], true);
}

#[test]
fn only_slices_with_hints_are_written_to_take_them_away() {
    let slice = |pairs: &[(&str, &str)]| -> Arc<EndpointSlice> {
        let slice = object("discovery.k8s.io/v1", "EndpointSlice", "a").set(&["addressType"], "IPv4");
        slice.set(&["endpoints"], json!(endpoints(pairs))).build()
    };
    let (with, without) = (slice(&[("A", "a"), ("a", "b")]), slice(&[("A", "")]));
    let unchanged = vec![Draft::of(&with), Draft::of(&without)];
    let mut drafts = Drafts { unchanged, ..Drafts::default() };
    remove_hints(&mut drafts);
    assert_eq!((meant(&drafts.update), meant(&drafts.unchanged)), (vec!["--".to_owned()], vec!["-".to_owned()]));
}
