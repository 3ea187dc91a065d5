//! The properties of every plan, from any state.

use std::collections::BTreeSet;

use endpoints_operator::objects::{Address, MANAGED_BY, Pod, Service, Subset};
use endpoints_operator::plan::subsets::{MAX_CAPACITY, address_of, is_meant};
use endpoints_operator::plan::{Plan, plan};
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::testing::ObjectBuilder;
use shared::testing::properties::comes_to_rest;

use crate::world::{World, endpoints, ips, new_pod, service};

/// A pod: ready or not, ending or ended, with one of several port lists and of several sets of addresses.
fn any_pod(n: usize) -> impl Strategy<Value = ObjectBuilder> {
    (any::<bool>(), 0..8_u8, 0..3_u8, 0..4_u8).prop_map(move |(ready, life, port, families)| {
        let pod = new_pod(n, ready);
        let pod = match life {
            0 => pod.terminating(),
            1 => pod.phase("Failed"),
            2 => pod.label("foo", "baz"),
            _ => pod,
        };
        // Some share an address.
        let (v4, v6) = (format!("10.0.0.{}", n % 20), format!("fd00::{n}"));
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
    let families = prop_oneof![Just(json!(["IPv4"])), Just(json!(["IPv6", "IPv4"])), Just(Value::Null)];
    let named = json!([{ "name": "a", "protocol": "TCP", "targetPort": "http" }]);
    let both = json!([
        { "name": "a", "protocol": "TCP", "targetPort": "http" },
        { "name": "b", "protocol": "TCP", "targetPort": 9090 },
    ]);
    let ports = prop_oneof![Just(named), Just(both), Just(json!([]))];
    let ip = prop_oneof![Just("None"), Just("10.0.0.1"), Just("3000::1")];
    (families, ports, ip, any::<bool>(), any::<bool>()).prop_map(|(families, ports, ip, publishes, label)| {
        let service = service().set(&["spec", "ipFamilies"], families).set(&["spec", "ports"], ports);
        let service = service.set(&["spec", "clusterIP"], ip).set(&["spec", "publishNotReadyAddresses"], publishes);
        service.label("tier", if label { "a" } else { "b" })
    })
}

/// A Service whose Endpoints come from how it was before, or from somebody else; or none, that is gone.
fn any_world() -> impl Strategy<Value = World> {
    let state = || (any_service(), any_pods());
    (state(), state(), 0..4_u8).prop_map(|((before, pods_before), (service, pods), origin)| {
        let mut world = World::new(before, pods_before);
        match origin {
            0 => {}
            1 => world.endpoints = Some(endpoints(json!([{ "addresses": [{ "ip": "6.7.8.9" }] }]))),
            _ => drop(world.sync()),
        }
        World { service: Some(service), pods, ..world }
    })
}

fn settle(world: &mut World) {
    comes_to_rest(3, || {
        let plan = world.plan();
        world.apply(&plan);
        plan.writes()
    });
}

fn addresses(subsets: &[Subset]) -> impl Iterator<Item = &Address> {
    subsets.iter().flat_map(|subset| subset.addresses.iter().chain(&subset.not_ready_addresses))
}

/// The names of the pods behind these subsets.
fn listed(subsets: &[Subset]) -> BTreeSet<String> {
    addresses(subsets).map(|address| address.target.as_ref().unwrap().key.name().to_owned()).collect()
}

fn wanted(service: &Service, pods: &[std::sync::Arc<Pod>]) -> BTreeSet<String> {
    let meant = pods.iter().filter(|pod| is_meant(service, pod) && address_of(service, pod).is_some());
    meant.map(|pod| pod.metadata.name().to_owned()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn planning_again_after_applying_gives_nothing(mut world in any_world()) {
        settle(&mut world);
        prop_assert!(matches!(world.plan(), Plan::Nothing(_)));
        world.service = None;
        world.sync();
        prop_assert_eq!(world.endpoints, None);
    }

    #[test]
    fn each_pod_that_has_a_port_is_listed(mut world in any_world()) {
        settle(&mut world);
        let observed = world.observed();
        let service = observed.service.unwrap();
        let subsets: Vec<Subset> = serde_json::from_value(world.subsets()).unwrap();
        let is_headless = world.service.unwrap().json()["spec"]["clusterIP"] == "None";
        let is_empty = service.ports.is_empty() && !is_headless;
        let expected = if is_empty { BTreeSet::new() } else { wanted(&service, &observed.pods) };
        prop_assert_eq!(listed(&subsets), expected);
        prop_assert!(addresses(&subsets).count() <= MAX_CAPACITY);
        let ours = &world.endpoints.unwrap()["metadata"]["labels"]["endpoints.kubernetes.io/managed-by"];
        prop_assert_eq!(ours, MANAGED_BY);
    }

    #[test]
    fn the_order_of_what_is_observed_is_irrelevant(world in any_world(), turn in 0..40_usize) {
        let observed = world.observed();
        let mut turned = world.observed();
        turned.pods.reverse();
        let pods = turned.pods.len();
        turned.pods.rotate_left(turn.checked_rem(pods).unwrap_or(0));
        prop_assert_eq!(plan(&observed), plan(&turned));
    }

    #[test]
    fn nothing_is_touched_that_was_not_observed_or_would_stay_as_it_is(world in any_world()) {
        let observed = world.observed();
        if let Plan::Update(update) = plan(&observed) {
            let before = world.endpoints.unwrap();
            prop_assert_eq!(&before["metadata"]["uid"], &json!(update.uid));
            prop_assert_eq!(&before["metadata"]["resourceVersion"], &json!(update.resource_version));
            prop_assert!(update.subsets.as_ref().is_none_or(|subsets| json!(subsets) != before["subsets"]));
            prop_assert!(update.subsets.is_some() || !update.labels.is_empty());
        }
    }
}
