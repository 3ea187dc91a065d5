//! The properties of every plan, from any state.

use std::collections::BTreeSet;
use std::sync::Arc;

use endpointslice_mirroring_operator::objects::{Addresses, EndpointSlice, Endpoints};
use endpointslice_mirroring_operator::plan::{Plan, plan};
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::controllers::endpoints::address::parse_ip;
use shared::testing::properties::comes_to_rest;
use shared::testing::{ObjectBuilder, object};

use crate::world::{World, endpoints, ports, slice};

const MAX: usize = 6;

fn any_address() -> impl Strategy<Value = Value> {
    let ip = prop_oneof![
        4 => (0..12_u8).prop_map(|n| format!("10.0.0.{n}")),
        2 => (0..12_u8).prop_map(|n| format!("fd00::{n:x}")),
        1 => Just("no address".to_owned()),
        1 => Just("010.0.0.1".to_owned()),
    ];
    (ip, any::<bool>(), 0..3_u8).prop_map(|(ip, is_named, pod)| {
        let mut address = json!({ "ip": ip });
        if is_named {
            address["hostname"] = "a".into();
        }
        if pod > 0 {
            address["targetRef"] = json!({ "kind": "Pod", "name": format!("pod-{pod}"), "uid": format!("{pod}") });
        }
        address
    })
}

fn any_subset() -> impl Strategy<Value = Value> {
    let addresses = || proptest::collection::vec(any_address(), 0..5);
    let numbers = prop_oneof![Just(vec![]), Just(vec![80]), Just(vec![80, 443]), Just(vec![8080])];
    (addresses(), addresses(), numbers).prop_map(|(ready, not_ready, numbers)| {
        json!({ "addresses": ready, "notReadyAddresses": not_ready, "ports": ports(&numbers) })
    })
}

fn any_endpoints() -> impl Strategy<Value = ObjectBuilder> {
    let subsets = proptest::collection::vec(any_subset(), 0..4);
    (subsets, 0..3_u8, 0..3_u8, any::<bool>()).prop_map(|(subsets, label, annotation, is_new)| {
        let endpoints = endpoints(&subsets).label("tier", &label.to_string());
        let endpoints = endpoints.annotation("owner", &annotation.to_string());
        if is_new { endpoints.uid_of("recreated") } else { endpoints }
    })
}

/// Slices that somebody has left: of any ports, any type, any addresses.
fn any_slices() -> impl Strategy<Value = Vec<ObjectBuilder>> {
    let one = (any::<bool>(), 0..4_u8, 0..4_u8).prop_map(|(is_v6, number, addresses)| {
        let of = |n: u8| if is_v6 { format!("fd00::{n:x}") } else { format!("10.0.0.{n}") };
        let listed = (0..addresses).map(|n| json!({ "addresses": [of(n)] }));
        (is_v6, number, listed.collect::<Vec<Value>>())
    });
    proptest::collection::vec(one, 0..5).prop_map(|slices| {
        let numbered = slices.into_iter().enumerate();
        let build = |(n, (is_v6, number, listed)): (usize, (bool, u8, Vec<Value>))| {
            let numbers: &[i32] = match number {
                0 => &[],
                1 => &[80],
                2 => &[80, 443],
                _ => &[1],
            };
            slice(&format!("left-{n}"), if is_v6 { "IPv6" } else { "IPv4" }, numbers, json!(listed))
        };
        numbered.map(build).collect()
    })
}

/// Endpoints whose slices come from how they were before, or from somebody else.
fn any_world() -> impl Strategy<Value = World> {
    (any_endpoints(), any_endpoints(), any_slices(), 0..8_u8).prop_map(|(before, now, slices, fate)| {
        let mut world = World { max: MAX, ..World::new(before) };
        world.sync();
        let mut world = world.with(slices);
        world.endpoints = Some(now);
        match fate {
            0 => world.endpoints = None,
            1 => world.service = None,
            2 => {
                let selector = json!({ "a": "b" });
                world.service = Some(object("v1", "Service", "test-ep").set(&["spec", "selector"], selector));
            }
            3 => world.endpoints = world.endpoints.take().map(ObjectBuilder::terminating),
            _ => {}
        }
        world
    })
}

fn ips(slices: &[Arc<EndpointSlice>]) -> BTreeSet<String> {
    let endpoints = slices.iter().flat_map(|slice| &slice.endpoints);
    let ip = |addresses: &Addresses| match addresses {
        Addresses::Ip(ip) => ip.to_string(),
        Addresses::Texts(texts) => format!("{texts:?}"),
    };
    endpoints.map(|endpoint| ip(&endpoint.addresses)).collect()
}

/// The IPs that the Endpoints name, in one form.
fn named(endpoints: &Endpoints) -> BTreeSet<String> {
    let subsets = endpoints.subsets.iter();
    let addresses = subsets.flat_map(|subset| subset.addresses.iter().chain(&subset.not_ready_addresses));
    addresses.filter_map(|address| parse_ip(&address.ip)).map(|ip| ip.to_string()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn planning_again_after_applying_gives_nothing(mut world in any_world()) {
        comes_to_rest(2, || {
            let plan = world.plan();
            world.apply(&plan);
            plan.writes() > 0
        });
        prop_assert_eq!(world.plan().writes(), 0);
    }

    #[test]
    fn no_slice_keeps_an_address_that_is_gone_and_none_is_missing(mut world in any_world()) {
        let is_deleted = world.endpoints.as_ref().is_some_and(|it| it.json()["metadata"]["deletionTimestamp"].is_string());
        let plan = world.plan();
        world.apply(&plan);
        match plan {
            Plan::CleanUp(_) => prop_assert!(world.slices.is_empty()),
            Plan::Mirror(mirrored) => {
                let (found, named) = (ips(&world.read()), named(&mirrored.endpoints));
                prop_assert!(found.is_subset(&named), "{:?} of {:?}", found, named);
                let is_whole = mirrored.skipped == mirrored.invalid && !is_deleted;
                prop_assert!(!is_whole || found == named, "{:?} of {:?}", found, named);
                prop_assert!(world.read().iter().all(|slice| slice.endpoints.len() <= MAX));
            }
        }
    }

    #[test]
    fn the_order_of_what_is_observed_is_irrelevant(world in any_world(), turn in 0..10_usize) {
        let config = endpointslice_mirroring_operator::plan::Config { max_endpoints_per_subset: MAX };
        let mut turned = world.observed();
        turned.slices.reverse();
        let slices = turned.slices.len();
        turned.slices.rotate_left(turn.checked_rem(slices).unwrap_or(0));
        prop_assert_eq!(world.plan(), plan(&turned, config));
    }

    #[test]
    fn nothing_is_touched_twice_or_that_was_not_observed(world in any_world()) {
        let observed = world.observed();
        let known: BTreeSet<String> = observed.slices.iter().map(|slice| slice.metadata.uid.to_string()).collect();
        let touched: Vec<String> = match world.plan() {
            Plan::CleanUp(clean_up) => clean_up.delete.iter().map(|deletion| deletion.uid.to_string()).collect(),
            Plan::Mirror(mirrored) => {
                let updated = mirrored.writes.update.iter().map(|update| update.uid.to_string());
                updated.chain(mirrored.writes.delete.iter().map(|deletion| deletion.uid.to_string())).collect()
            }
        };
        let once: BTreeSet<String> = touched.iter().cloned().collect();
        prop_assert_eq!(once.len(), touched.len());
        prop_assert!(once.is_subset(&known));
    }
}
