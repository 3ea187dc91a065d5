//! The properties of every plan, from any state.

use std::collections::BTreeSet;

use endpointslice_operator::objects::{AddressType, SERVICES};
use endpointslice_operator::observe::Observed;
use endpointslice_operator::plan::utils::address_types;
use endpointslice_operator::plan::{Config, Plan, plan};
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::testing::ObjectBuilder;
use shared::testing::properties::comes_to_rest;

use crate::world::{World, foreign, ips, new_pod, node, service};

/// A pod: ready or not, ending or ended, on some node, with one of several port lists and of several sets of addresses.
fn any_pod(n: usize) -> impl Strategy<Value = ObjectBuilder> {
    (any::<bool>(), 0..8_u8, 0..4_usize, 0..3_u8, 0..4_u8).prop_map(move |(ready, life, node, port, families)| {
        let pod = new_pod(n, ready).node(&format!("node-{node}"));
        let pod = match life {
            0 => pod.terminating(),
            1 => pod.phase("Failed"),
            2 => pod.label("foo", "baz"),
            _ => pod,
        };
        let (v4, v6) = (format!("10.0.0.{n}"), format!("fd00::{n}"));
        let pod = match families {
            0 => ips(pod, &[]),
            1 => ips(pod, &[&v4]),
            2 => ips(pod, &[&v6]),
            _ => ips(pod, &[&v6, &v4]),
        };
        let port = json!({ "name": "http", "containerPort": 8080 + i32::from(port), "protocol": "TCP" });
        pod.set(&["spec", "containers"], json!([{ "ports": [port] }]))
    })
}

fn any_pods() -> impl Strategy<Value = Vec<ObjectBuilder>> {
    proptest::collection::vec(0..3_u8, 0..40).prop_flat_map(|present| {
        let numbers = present.iter().enumerate().filter(|(_, present)| **present > 0).map(|(n, _)| n);
        numbers.map(any_pod).collect::<Vec<_>>()
    })
}

fn any_service() -> impl Strategy<Value = ObjectBuilder> {
    let families =
        prop_oneof![Just(json!(["IPv4"])), Just(json!(["IPv6"])), Just(json!(["IPv6", "IPv4"])), Just(Value::Null),];
    let distribution =
        prop_oneof![Just(Value::Null), Just(json!("PreferClose")), Just(json!("PreferSameNode")), Just(json!("Odd")),];
    let target = prop_oneof![Just(json!("http")), Just(json!(80)), Just(json!("none"))];
    (families, distribution, target, any::<bool>(), any::<bool>(), 0..3_u8).prop_map(
        |(families, distribution, target, auto, publishes, label)| {
            let ports = json!([
                { "name": "http", "protocol": "TCP", "targetPort": target },
                { "name": "metrics", "protocol": "TCP", "targetPort": 9090 },
            ]);
            service("foo")
                .set(&["spec", "ipFamilies"], families)
                .set(&["spec", "trafficDistribution"], distribution)
                .set(&["spec", "ports"], ports)
                .set(&["spec", "publishNotReadyAddresses"], publishes)
                .annotation("service.kubernetes.io/topology-mode", if auto { "Auto" } else { "" })
                .label("tier", ["a", "b", "c"][usize::from(label)])
        },
    )
}

/// Nodes 0 to 2 are there, with more or less CPU; node 3 is not.
fn any_nodes() -> impl Strategy<Value = Vec<ObjectBuilder>> {
    (1..5_u8, 1..5_u8, 0..3_u8).prop_map(|(first, second, third)| {
        let zone = ["zone-a", "zone-b", ""][usize::from(third)];
        vec![
            node("node-0", "zone-a", &first.to_string()),
            node("node-1", "zone-b", &second.to_string()),
            node("node-2", zone, "1"),
        ]
    })
}

/// A Service whose slices come from how it was before, and before that; one of them may be another Service's.
fn any_world() -> impl Strategy<Value = World> {
    let state = || (any_service(), any_pods(), any_nodes());
    (proptest::collection::vec(state(), 1..4), 1..12_usize, any::<bool>()).prop_map(|(mut states, max, is_foreign)| {
        let now = states.pop();
        let mut world = World { max, ..World::new(Vec::new()) };
        for (service, pods, nodes) in states {
            (world.service, world.pods, world.nodes) = (service, pods, nodes);
            world.sync();
        }
        if let Some(slice) = world.slices.values_mut().next().filter(|_| is_foreign) {
            *slice = foreign(slice.clone());
        }
        let (service, pods, nodes) = now.unwrap();
        World { service, pods, nodes, ..world }
    })
}

fn writes(plan: &Plan) -> usize {
    let Plan::Write(slices) = plan else { return 0 };
    slices.families.iter().map(|family| family.writes.count()).sum::<usize>() + slices.unsupported.len()
}

fn settle(world: &mut World) {
    comes_to_rest(3, || {
        let plan = world.plan();
        world.apply(&plan);
        writes(&plan) > 0
    });
}

/// The pods that are to be listed with addresses of this type.
fn wanted(observed: &Observed, address_type: &AddressType) -> BTreeSet<String> {
    let is_wanted = |pod: &&std::sync::Arc<endpointslice_operator::objects::Pod>| {
        let is_known = observed.nodes.contains_key(&pod.node) || observed.service.publishes_not_ready;
        pod.is_listed() && is_known && pod.ips.iter().any(|ip| address_type.includes(*ip))
    };
    observed.pods.iter().filter(is_wanted).map(|pod| pod.metadata.name().to_owned()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn planning_again_after_applying_gives_nothing(mut world in any_world()) {
        settle(&mut world);
    }

    #[test]
    fn each_pod_is_listed_exactly_once_per_family_and_no_slice_is_too_full(mut world in any_world()) {
        world.sync();
        let observed = world.observed();
        for address_type in address_types(&observed.service) {
            let slices: Vec<_> = observed.slices.iter().filter(|slice| slice.address_type == address_type).collect();
            prop_assert!(!slices.is_empty());
            prop_assert!(slices.iter().all(|slice| slice.endpoints.len() <= world.max));
            let listed: Vec<String> = slices
                .iter()
                .flat_map(|slice| &slice.endpoints)
                .map(|endpoint| endpoint.target.as_ref().unwrap().key.name().to_owned())
                .collect();
            let distinct: BTreeSet<String> = listed.iter().cloned().collect();
            prop_assert_eq!(listed.len(), distinct.len());
            prop_assert_eq!(distinct, wanted(&observed, &address_type));
        }
    }

    #[test]
    fn the_order_of_what_is_observed_is_irrelevant(world in any_world(), turn in 0..40_usize) {
        let config = Config { max_endpoints_per_slice: world.max };
        let observed = world.observed();
        let mut turned = world.observed();
        turned.pods.reverse();
        turned.slices.reverse();
        let (pods, slices) = (turned.pods.len(), turned.slices.len());
        turned.pods.rotate_left(turn.checked_rem(pods).unwrap_or(0));
        turned.slices.rotate_left(turn.checked_rem(slices).unwrap_or(0));
        prop_assert_eq!(plan(&observed, config), plan(&turned, config));
    }

    #[test]
    fn nothing_is_touched_that_was_not_observed_or_would_stay_as_it_is(world in any_world()) {
        let observed = world.observed();
        let Plan::Write(slices) = world.plan() else { panic!("no slices") };
        let of = |key: &shared::api::object::Key| observed.slices.iter().find(|slice| slice.metadata.key == *key);
        for family in &slices.families {
            for update in &family.writes.update {
                let slice = of(&update.key).unwrap();
                prop_assert_eq!((slice.metadata.uid, slice.metadata.resource_version), (update.uid, update.resource_version));
                prop_assert!(slice.is_owned_by(&SERVICES, observed.service.metadata.uid));
                prop_assert_eq!(&slice.address_type, &family.address_type);
                prop_assert!(update.endpoints.as_ref() != Some(&slice.endpoints));
                prop_assert!(update.ports.as_ref() != Some(&slice.ports));
                prop_assert!(!update.labels.is_empty() || update.endpoints.is_some() || update.ports.is_some());
            }
            for deletion in family.writes.delete.iter().chain(&slices.unsupported) {
                prop_assert_eq!(of(&deletion.key).map(|slice| slice.metadata.uid), Some(deletion.uid));
            }
        }
    }

    #[test]
    fn a_pod_that_comes_or_goes_changes_one_slice_of_each_family(mut world in any_world()) {
        settle(&mut world);
        let is_auto = world.observed().service.metadata.annotations.is_auto;
        prop_assume!(!is_auto && !world.pods.is_empty());
        world.pods.pop();
        let Plan::Write(slices) = world.plan() else { panic!("no slices") };
        for family in slices.families {
            prop_assert!(family.writes.count() <= 1, "{}", family);
        }
    }
}
