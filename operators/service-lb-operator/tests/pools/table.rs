//! What one Service gets.

use serde_json::{Value, json};

use super::world::{Asking, World, service};

fn pool(addresses: &[&str]) -> Value {
    json!({"addresses": addresses})
}

/// Creates and syncs a Service; gives what was planned.
fn give(world: &mut World, name: &str, service: Value) -> String {
    world.create(name, service);
    planned(world, name)
}

fn planned(world: &mut World, name: &str) -> String {
    let plan = world.plan(name).to_string();
    world.sync(name, true);
    plan
}

/// MetalLB: `TestPoolAllocation`, `internal/allocator/allocator_test.go`.
#[test]
fn addresses_are_given_in_order_until_none_is_left() {
    let mut world = World::new(&[("a", pool(&["192.0.2.1-192.0.2.2"]))]);
    assert_eq!(give(&mut world, "one", service()), "192.0.2.1 (from the pool a)");
    assert_eq!(give(&mut world, "two", service()), "192.0.2.2 (from the pool a)");
    assert_eq!(give(&mut world, "three", service()), "no address (no address is free in a)");
    assert_eq!(planned(&mut world, "one"), "192.0.2.1 (kept from the pool a)");
    world.delete("one");
    assert_eq!(planned(&mut world, "three"), "192.0.2.1 (from the pool a)");
}

#[test]
fn what_was_given_is_not_given_again_although_its_write_was_lost() {
    let mut world = World::new(&[("a", pool(&["192.0.2.1-192.0.2.2"]))]);
    world.create("one", service());
    world.sync("one", false);
    assert_eq!(give(&mut world, "two", service()), "192.0.2.2 (from the pool a)");
    assert_eq!(planned(&mut world, "one"), "192.0.2.1 (kept from the pool a)");
}

/// MetalLB: `TestAllocation`, `internal/allocator/allocator_test.go`.
#[test]
fn a_service_gets_the_families_that_it_asks_for_from_one_pool() {
    let pools = [
        ("a", pool(&["192.0.2.1"])),
        ("b", pool(&["2001:db8::1"])),
        ("c", pool(&["198.51.100.1-198.51.100.2", "2001:db8:1::1"])),
    ];
    let mut world = World::new(&pools);
    let both = ["IPv6", "IPv4"];
    assert_eq!(
        give(&mut world, "dual", service().families(&both, "RequireDualStack")),
        "2001:db8:1::1, 198.51.100.1 (from the pool c)"
    );
    assert_eq!(
        give(&mut world, "required", service().families(&both, "RequireDualStack")),
        "no address (no address is free in a, b, c)"
    );
    assert_eq!(
        give(&mut world, "preferred", service().families(&both, "PreferDualStack")),
        "2001:db8::1 (from the pool b; no pool has a free IPv4 address)"
    );
    assert_eq!(
        give(&mut world, "six", service().families(&["IPv6"], "SingleStack")),
        "no address (no address is free in a, b, c)"
    );
    assert_eq!(give(&mut world, "four", service()), "192.0.2.1 (from the pool a)");
    world.delete("dual");
    // An address does not change for the sake of a second one.
    assert_eq!(planned(&mut world, "preferred"), "2001:db8::1 (from the pool b; no pool has a free IPv4 address)");
    assert_eq!(planned(&mut world, "required"), "2001:db8:1::1, 198.51.100.1 (from the pool c)");
}

#[test]
fn a_service_that_prefers_two_families_gets_the_second_one_once_its_pool_has_it() {
    let mut world = World::new(&[("a", pool(&["192.0.2.1"]))]);
    let dual = service().families(&["IPv4", "IPv6"], "PreferDualStack");
    assert_eq!(give(&mut world, "web", dual), "192.0.2.1 (from the pool a; no pool has a free IPv6 address)");
    world.configure(&[("a", pool(&["192.0.2.1", "2001:db8::/126"]))]);
    assert_eq!(planned(&mut world, "web"), "192.0.2.1, 2001:db8:: (from the pool a)");
}

#[test]
fn a_pool_is_for_the_namespaces_and_the_class_that_it_names() {
    let selecting = |team: &str, addresses: &str| json!({"addresses": [addresses], "namespaceSelector": {"matchLabels": {"team": team}}});
    let mut world = World::new(&[
        ("any", pool(&["192.0.2.1"])),
        ("other", selecting("other", "192.0.2.2")),
        ("shop", selecting("shop", "192.0.2.3")),
        ("without", json!({"addresses": ["192.0.2.4"], "loadBalancerClass": ""})),
    ]);
    assert_eq!(give(&mut world, "one", service()), "192.0.2.3 (from the pool shop)", "the more special pool first");
    assert_eq!(give(&mut world, "two", service()), "192.0.2.1 (from the pool any)");
    assert_eq!(give(&mut world, "three", service()), "no address (no address is free in any, shop)");
    let mut without = service();
    without["spec"]["loadBalancerClass"] = Value::Null;
    assert_eq!(give(&mut world, "four", without), "192.0.2.4 (from the pool without)");
    let mut foreign = service();
    foreign["spec"]["loadBalancerClass"] = json!("metallb.io/metallb");
    assert_eq!(give(&mut world, "five", foreign), "nothing (no address pool serves its type and class)");
    world.configure(&[("other", selecting("other", "192.0.2.2"))]);
    assert_eq!(give(&mut world, "six", service()), "no address (no address pool serves this class and namespace)");
}

/// MetalLB: `TestControllerMutation`, `controller/controller_test.go`.
#[test]
fn a_wanted_address_is_given_if_it_is_free_and_in_a_pool() {
    let manual = json!({"addresses": ["203.0.113.0/24"], "autoAssign": false});
    let mut world = World::new(&[("a", pool(&["192.0.2.1-192.0.2.9"])), ("manual", manual)]);
    assert_eq!(give(&mut world, "one", service().wants("192.0.2.5")), "192.0.2.5 (from the pool a)");
    assert_eq!(
        give(&mut world, "two", service().wants("192.0.2.5")),
        "no address (192.0.2.5 is in use by the Service shop/one)"
    );
    assert_eq!(
        give(&mut world, "three", service().wants("192.0.2.99")),
        "no address (192.0.2.99 is in no address pool that serves this Service)"
    );
    assert_eq!(give(&mut world, "four", service().wants("203.0.113.7")), "203.0.113.7 (from the pool manual)");
    assert_eq!(give(&mut world, "five", service().of_pool("manual")), "203.0.113.0 (from the pool manual)");
    let unknown = service().of_pool("b");
    assert_eq!(give(&mut world, "six", unknown), "no address (no address pool b serves this class and namespace)");
    assert_eq!(
        give(&mut world, "seven", service().wants("web")),
        r#"no address (service.operators.local/load-balancer-ips: "web" is no address)"#
    );
    let mut by_field = service();
    by_field["spec"]["loadBalancerIP"] = json!("192.0.2.8");
    assert_eq!(give(&mut world, "eight", by_field), "192.0.2.8 (from the pool a)");
}

#[test]
fn a_wish_that_cannot_be_met_takes_no_address_away() {
    let mut world = World::new(&[("a", pool(&["192.0.2.1-192.0.2.9"]))]);
    give(&mut world, "one", service());
    give(&mut world, "two", service());
    world.edit("one", service().wants("192.0.2.2"));
    assert_eq!(planned(&mut world, "one"), "192.0.2.1 (192.0.2.2 is in use by the Service shop/two)");
    world.edit("one", service().wants("192.0.2.7"));
    assert_eq!(planned(&mut world, "one"), "192.0.2.7 (from the pool a)");
}

/// MetalLB: `TestAssignment`, `internal/allocator/allocator_test.go`.
#[test]
fn services_share_an_address_while_their_ports_differ() {
    let mut world = World::new(&[("a", pool(&["192.0.2.1-192.0.2.3"]))]);
    give(&mut world, "alone", service());
    assert_eq!(give(&mut world, "http", service().sharing("k")), "192.0.2.2 (from the pool a)");
    assert_eq!(give(&mut world, "https", service().sharing("k").port(443)), "192.0.2.2 (from the pool a)");
    assert_eq!(give(&mut world, "other", service().sharing("k")), "192.0.2.3 (from the pool a)");
    world.edit("https", service().sharing("k"));
    assert_eq!(planned(&mut world, "http"), "192.0.2.2 (kept from the pool a)", "the older one");
    assert_eq!(planned(&mut world, "https"), "no address (no address is free in a)");
    world.edit("other", service().sharing("k").port(81));
    assert_eq!(planned(&mut world, "other"), "192.0.2.3 (kept from the pool a)");
    assert_eq!(planned(&mut world, "https"), "192.0.2.3 (from the pool a)");
}

#[test]
fn of_two_services_with_one_address_the_older_one_keeps_it() {
    let mut world = World::new(&[("a", pool(&["192.0.2.1-192.0.2.2"]))]);
    give(&mut world, "old", service());
    world.create("new", service());
    world.show("new", &world.addresses("old"));
    assert_eq!(planned(&mut world, "old"), "192.0.2.1 (kept from the pool a)");
    assert_eq!(planned(&mut world, "new"), "192.0.2.2 (from the pool a)");
}

#[test]
fn an_address_that_a_service_of_somebody_else_has_is_not_given() {
    let mut world = World::new(&[("a", pool(&["192.0.2.1-192.0.2.2"]))]);
    let mut foreign = service();
    foreign["spec"]["loadBalancerClass"] = json!("metallb.io/metallb");
    world.create("foreign", foreign);
    world.show("foreign", &["192.0.2.1".parse().unwrap()]);
    assert_eq!(give(&mut world, "web", service()), "192.0.2.2 (from the pool a)");
}

#[test]
fn a_pool_that_cannot_be_read_takes_no_address_away() {
    let mut world = World::new(&[("a", pool(&["192.0.2.1"])), ("b", pool(&["198.51.100.1"]))]);
    give(&mut world, "web", service());
    world.configure(&[("a", pool(&["192.0.2.1/33"])), ("b", pool(&["198.51.100.1"]))]);
    assert_eq!(planned(&mut world, "web"), "192.0.2.1 (unchanged until all pools can be read)");
    assert_eq!(give(&mut world, "new", service()), "198.51.100.1 (from the pool b)", "other pools go on");
    world.is_configured = false;
    assert_eq!(planned(&mut world, "web"), "192.0.2.1 (unchanged until all pools can be read)");
    world.is_configured = true;
    world.delete("new");
    world.configure(&[("b", pool(&["198.51.100.1"]))]);
    assert_eq!(planned(&mut world, "web"), "198.51.100.1 (from the pool b)", "the pool was taken away");
    world.configure(&[("c", json!({"addresses": ["203.0.113.1"], "autoAssign": false}))]);
    assert_eq!(planned(&mut world, "web"), "no address (no address pool serves this class and namespace)");
}

#[test]
fn a_service_is_told_that_no_pool_serves_it_while_the_config_map_is_missing() {
    let mut world = World::new(&[]);
    world.is_configured = false;
    assert_eq!(give(&mut world, "web", service()), "no address (no address pool serves this class and namespace)");
}

#[test]
fn a_service_that_is_no_load_balancer_any_more_loses_its_condition() {
    let mut world = World::new(&[("a", pool(&["192.0.2.1"]))]);
    let mut former = service();
    former["spec"]["type"] = json!("ClusterIP");
    former["status"]["conditions"] =
        json!([{"type": "service.operators.local/AddressAssigned", "status": "True", "reason": "Assigned"}]);
    world.create("web", former);
    assert_eq!(
        world.plan("web").to_string(),
        "release its addresses (no address pool serves its type and class any more)"
    );
}
