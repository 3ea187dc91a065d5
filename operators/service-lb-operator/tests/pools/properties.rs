//! The rules that hold whatever Services ask for and whatever happens in between.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use service_lb_operator::objects::pooled_service::PooledService;
use service_lb_operator::plan::pools::{AddressPlan, AddressReason, PoolsPlan};

use shared::api::object::Uid;

use super::world::{Asking, World, service};

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

#[derive(Clone, Debug)]
enum Step {
    Create(usize, Value),
    Edit(usize, Value),
    Delete(usize),
    /// With whether its write arrives.
    Sync(usize, bool),
    /// Somebody writes the address of one Service into the status of another one.
    Copy(usize, usize),
    Restart,
}

/// Few addresses, so that they run out.
fn pools() -> [(&'static str, Value); 3] {
    [
        ("four", json!({"addresses": ["192.0.2.1-192.0.2.2"]})),
        ("both", json!({"addresses": ["198.51.100.1", "2001:db8::1-2001:db8::2"]})),
        ("manual", json!({"addresses": ["203.0.113.1"], "autoAssign": false})),
    ]
}

fn wishes() -> impl Strategy<Value = Value> {
    let families = prop_oneof![
        Just((vec!["IPv4"], "SingleStack")),
        Just((vec!["IPv6"], "SingleStack")),
        Just((vec!["IPv4", "IPv6"], "PreferDualStack")),
        Just((vec!["IPv6", "IPv4"], "RequireDualStack")),
    ];
    let wanted = prop_oneof![
        6 => Just(None),
        1 => Just(Some("192.0.2.2")),
        1 => Just(Some("203.0.113.1")),
        1 => Just(Some("192.0.2.9")),
        1 => Just(Some("web")),
    ];
    let pool = prop_oneof![6 => Just(None), 1 => Just(Some("manual")), 1 => Just(Some("none"))];
    let sharing = prop_oneof![2 => Just(None), 2 => Just(Some("k")), 1 => Just(Some("l"))];
    let port = prop_oneof![Just(80), Just(443)];
    (families, wanted, pool, sharing, port, any::<bool>()).prop_map(
        |((families, policy), wanted, pool, sharing, port, is_local)| {
            let mut asked = service().families(&families, policy).port(port);
            asked = wanted.into_iter().fold(asked, Asking::wants);
            asked = pool.into_iter().fold(asked, Asking::of_pool);
            asked = sharing.into_iter().fold(asked, Asking::sharing);
            if is_local {
                asked["spec"]["externalTrafficPolicy"] = json!("Local");
            }
            asked
        },
    )
}

/// Without edits and strangers nothing may take an address away.
fn quiet_steps() -> impl Strategy<Value = Vec<Step>> {
    let name = 0..NAMES.len();
    let step = prop_oneof![
        3 => (name.clone(), wishes()).prop_map(|(name, asked)| Step::Create(name, asked)),
        1 => name.clone().prop_map(Step::Delete),
        4 => (name, any::<bool>()).prop_map(|(name, is_written)| Step::Sync(name, is_written)),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 0..60)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = 0..NAMES.len();
    let wild = prop_oneof![
        (name.clone(), wishes()).prop_map(|(name, asked)| Step::Edit(name, asked)),
        (name.clone(), name).prop_map(|(from, to)| Step::Copy(from, to)),
    ];
    (quiet_steps(), prop::collection::vec((any::<prop::sample::Index>(), wild), 0..20)).prop_map(|(mut steps, wild)| {
        for (at, step) in wild {
            let at = at.index(steps.len() + 1);
            steps.insert(at, step);
        }
        steps
    })
}

fn take(world: &mut World, step: &Step) {
    match step {
        // One that is there is deleted and created again, which makes it the youngest.
        Step::Create(name, asked) => {
            world.delete(NAMES[*name]);
            world.create(NAMES[*name], asked.clone());
        }
        Step::Edit(name, asked) => world.edit(NAMES[*name], asked.clone()),
        Step::Delete(name) => world.delete(NAMES[*name]),
        Step::Sync(name, is_written) => {
            world.sync(NAMES[*name], *is_written);
        }
        Step::Copy(from, to) => {
            if world.services.contains_key(NAMES[*from]) {
                let addresses = world.addresses(NAMES[*from]);
                world.show(NAMES[*to], &addresses);
            }
        }
        Step::Restart => world.allocations = world.remembered(world.services.keys()),
    }
}

/// A world that has lived through these steps and come to rest.
fn settled(steps: &[Step]) -> World {
    let mut world = World::new(&pools());
    for step in steps {
        take(&mut world, step);
    }
    world.settle();
    world
}

fn views(world: &World) -> Vec<Arc<PooledService>> {
    world.services.keys().map(|name| world.view(name)).collect()
}

/// All addresses of the pools.
fn all_addresses() -> Vec<IpAddr> {
    ["192.0.2.1", "192.0.2.2", "198.51.100.1", "2001:db8::1", "2001:db8::2", "203.0.113.1"]
        .map(|text| text.parse().unwrap())
        .to_vec()
}

/// Every Service here is one of the pools.
fn given(plan: PoolsPlan) -> AddressPlan {
    if let PoolsPlan::Give(plan) = plan { Some(plan) } else { None }.unwrap()
}

proptest! {
    #[test]
    fn no_address_is_two_services_who_may_not_share_it(steps in steps()) {
        let world = settled(&steps);
        let services = views(&world);
        for (number, service) in services.iter().enumerate() {
            for other in &services[..number] {
                let common = service.addresses.iter().find(|address| other.addresses.contains(address));
                prop_assert!(common.is_none() || service.user.may_share_with(&other.user), "{service:?} {other:?}");
            }
        }
    }

    #[test]
    fn every_address_is_of_a_pool_and_of_a_family_of_its_service(steps in steps()) {
        let world = settled(&steps);
        for service in views(&world) {
            prop_assert!(service.addresses.iter().all(|address| all_addresses().contains(address)));
            if let Ok(request) = &service.request {
                prop_assert!(service.addresses.len() <= request.families.len(), "{service:?}");
            }
        }
    }

    #[test]
    fn an_address_stays_while_its_service_asks_for_the_same(steps in quiet_steps()) {
        let mut world = World::new(&pools());
        let mut known: BTreeMap<(String, Uid), IpAddr> = BTreeMap::new();
        for step in &steps {
            take(&mut world, step);
            for service in views(&world) {
                // Of two families the second address may come later, and of those of the status none goes.
                for address in &service.addresses {
                    let name = format!("{} {}", service.metadata.name(), address.is_ipv4());
                    let first = *known.entry((name, service.metadata.uid)).or_insert(*address);
                    prop_assert_eq!(first, *address, "{}", service.metadata.name());
                }
                let own = known.iter().filter(|((_, uid), _)| *uid == service.metadata.uid);
                for (_, address) in own {
                    prop_assert!(service.addresses.contains(address), "{} lost {address}", service.metadata.name());
                }
            }
        }
    }

    #[test]
    fn a_new_process_plans_the_same_in_whatever_order_it_sees_the_services(steps in steps()) {
        let world = settled(&steps);
        let (forward, backward) = (world.remembered(world.services.keys()), world.remembered(world.services.keys().rev()));
        prop_assert_eq!(&forward, &backward);
        for name in world.services.keys() {
            let plan = given(world.plan_with(name, &forward));
            prop_assert_eq!(&plan.addresses, &world.addresses(name));
        }
    }

    #[test]
    fn a_service_is_without_an_address_only_if_it_can_have_none(steps in steps()) {
        let world = settled(&steps);
        for service in views(&world) {
            let plan = given(world.plan(service.metadata.name()));
            let Ok(request) = &service.request else { continue };
            let is_plain = request.wanted.is_empty() && request.pool.is_none() && request.families.len() == 1;
            if !is_plain || !plan.addresses.is_empty() {
                continue;
            }
            prop_assert!(matches!(plan.reason, AddressReason::Unmet(_)), "{}", plan.reason);
            let is_four = request.families[0].as_str() == "IPv4";
            // Those of the manual pool are only for who asks for them.
            let open = all_addresses().into_iter().filter(|address| address.is_ipv4() == is_four);
            for address in open.filter(|address| address.to_string() != "203.0.113.1") {
                let mut users = world.allocations.users(address).filter(|user| user.service != service.metadata.key);
                prop_assert!(users.any(|user| !user.may_share_with(&service.user)), "{address} is free for {service:?}");
            }
        }
    }
}
