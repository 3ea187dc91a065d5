//! Which ServiceCIDR may go, and which changes lead to a sync of it: upstream's cases, and properties of any set of
//! ranges and addresses.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use service_cidr_operator::apply::{Configuration, Outcome, Readiness};
use service_cidr_operator::objects::cidr::Cidr;
use service_cidr_operator::objects::{FINALIZER, IpAddress, ServiceCidr};
use service_cidr_operator::observe::{Caches, Observed};
use service_cidr_operator::plan::{Plan, plan};
use service_cidr_operator::status::next_condition;
use shared::api::object::Key;
use shared::following::cache::Change;
use shared::testing::properties::order_is_irrelevant;
use shared::testing::{NOW, ObjectBuilder, ago, forget, object, store, uid};
use shared::working::effect::Effect;
use shared::working::queue::Cause;

const BOTH: [&str; 2] = ["192.168.0.0/24", "2001:db2::/64"];

fn service_cidr(name: &str, cidrs: &[&str]) -> ObjectBuilder {
    object("networking.k8s.io/v1", "ServiceCIDR", name).namespace("").set(&["spec", "cidrs"], json!(cidrs))
}

/// Deleted so many seconds ago.
fn deleted(service_cidr: ObjectBuilder, seconds_ago: i64) -> ObjectBuilder {
    let deleted = service_cidr.set(&["metadata", "deletionTimestamp"], ago(seconds_ago).to_string());
    deleted.set(&["metadata", "finalizers"], json!([FINALIZER]))
}

fn ip_address(name: &str) -> ObjectBuilder {
    let family = if name.contains(':') { "IPv6" } else { "IPv4" };
    object("networking.k8s.io/v1", "IPAddress", name)
        .namespace("")
        .label("ipaddress.kubernetes.io/ip-family", family)
        .label("ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io")
}

fn cluster(service_cidrs: &[ObjectBuilder], addresses: &[&str]) -> Caches {
    let (caches, _) = Caches::new();
    for service_cidr in service_cidrs {
        store(&caches.service_cidrs, &service_cidr.build());
    }
    for address in addresses {
        store(&caches.ip_addresses, &ip_address(address).build());
    }
    caches
}

fn key(name: &str) -> Key {
    Key::new("", name)
}

fn planned(caches: &Caches, name: &str, now: Timestamp) -> Plan {
    plan(&caches.observe(&key(name)).unwrap(), now)
}

/// The decision about `synced`.
#[track_caller]
fn check(service_cidrs: &[ObjectBuilder], addresses: &[&str], expected: &str) {
    assert_eq!(planned(&cluster(service_cidrs, addresses), "synced", NOW).to_string(), expected);
}

/// Upstream: `TestControllerSync`.
#[test]
fn a_service_cidr_is_protected_and_goes_once_nothing_needs_it() {
    let overlapping = |cidrs: &[&str]| service_cidr("overlapping", cidrs);
    let synced = || deleted(service_cidr("synced", &BOTH), 11);
    // "no existing service CIDRs"
    assert_eq!(cluster(&[], &[]).observe(&key("synced")), None);
    // "default service CIDR must have finalizer", "service CIDR must have finalizer"
    check(&[service_cidr("synced", &BOTH)], &[], "add the finalizer (not being deleted)");
    // "service CIDR being deleted must remove the finalizer"
    check(&[synced()], &[], "remove the finalizer (no address is in it)");
    // "service CIDR being deleted but within the grace period must be requeued not remove the finalizer"
    let now = deleted(service_cidr("synced", &BOTH), 0);
    check(&[now], &[], "wait 10s (an apiserver may allocate from it until 2026-01-01T12:00:10Z)");
    for (address, same, larger, other) in [
        ("192.168.0.1", BOTH[0], "192.168.0.0/16", "192.168.255.0/26"),
        ("2001:db2::1", BOTH[1], "2001:db2::/48", "2001:db2:a:b::/64"),
    ] {
        let kept = format!("keep ({address} is in no other ServiceCIDR)");
        let goes = "remove the finalizer (its 1 addresses are in other ServiceCIDRs too)";
        // "service CIDR being deleted with IPv4 addresses should update the status"
        check(&[synced()], &[address], &kept);
        // "service CIDR being deleted and overlapping same range and IPv4 addresses should remove the finalizer"
        check(&[synced(), overlapping(&[same])], &[address], goes);
        // "service CIDR being deleted and overlapping and IPv4 addresses should remove the finalizer"
        check(&[synced(), overlapping(&[larger])], &[address], goes);
        // "service CIDR being deleted and not overlapping and IPv4 addresses should update the status"
        check(&[synced(), overlapping(&[other])], &[address], &kept);
    }
}

/// Upstream: `TestController_canDeleteCIDR`.
#[test]
fn only_an_address_that_a_service_may_have_from_nowhere_else_keeps_a_service_cidr() {
    let row = |others: &[&[&str]], address: &str, can_go: bool| {
        let others = others.iter().enumerate().map(|(n, cidrs)| service_cidr(&n.to_string(), cidrs));
        let all: Vec<ObjectBuilder> = others.chain([deleted(service_cidr("synced", &BOTH), 11)]).collect();
        let planned = planned(&cluster(&all, &[address]), "synced", NOW);
        assert_eq!(matches!(planned, Plan::LetGo { .. }), can_go, "{address}: {planned}");
    };
    // "CIDR with IPs", "CIDR without IPs"
    row(&[], "192.168.0.24", false);
    row(&[], "192.168.1.24", true);
    // "CIDR with IPv4 address referencing the subnet address", "… the broadcast address", and of IPv6
    row(&[], "192.168.0.0", true);
    row(&[], "192.168.0.255", true);
    row(&[], "2001:db2::ffff:ffff:ffff:ffff", false);
    // "CIDR with same range overlapping and IPs"
    row(&[&BOTH], "192.168.0.23", true);
    // "CIDR with smaller range overlapping and IPs", "… but IPs orphan"
    row(&[&["192.168.0.0/26", BOTH[1]]], "192.168.0.23", true);
    row(&[&["192.168.0.0/28", BOTH[1]]], "192.168.0.23", false);
    // "CIDR with larger range overlapping and IPs"
    row(&[&["192.168.0.0/16", BOTH[1]]], "192.168.0.23", true);
    // Each family may be in another one.
    row(&[&["192.168.0.0/16"], &["2001:db2::/48"]], "192.168.0.23", true);
    row(&[&["192.168.0.0/16"]], "2001:db2::1", false);
}

#[test]
fn addresses_count_by_their_labels_and_ranges_that_cannot_be_read_do_not() {
    let caches = cluster(&[deleted(service_cidr("synced", &["10.0.0.0/24"]), 11)], &[]);
    let goes = |caches: &Caches| matches!(planned(caches, "synced", NOW), Plan::LetGo { .. });
    let other_family = ip_address("10.0.0.1").label("ipaddress.kubernetes.io/ip-family", "IPv6");
    store(&caches.ip_addresses, &other_family.build());
    store(&caches.ip_addresses, &ip_address("no-address").build());
    assert!(goes(&caches));
    store(&caches.ip_addresses, &ip_address("10.0.0.1").set(&["metadata", "resourceVersion"], "2").build());
    assert!(!goes(&caches));
    let odd = ["", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/-1", "2001:db8::/129", "a/8", "10.0.0.0/"];
    assert!(odd.iter().all(|text| Cidr::parse(text).is_none()));
    for cidrs in [json!(null), json!([]), json!(odd)] {
        let none = service_cidr("synced", &[]).set(&["spec", "cidrs"], cidrs);
        check(&[deleted(none, 11)], &["10.0.0.1"], "remove the finalizer (no address is in it)");
    }
}

#[test]
fn of_several_that_are_being_deleted_the_last_one_stays_for_an_address() {
    let of = |name: &str, cidr: &str, seconds_ago| deleted(service_cidr(name, &[cidr]), seconds_ago);
    let row = |all: &[ObjectBuilder], expected: &str| {
        let caches = cluster(all, &["10.0.0.1"]);
        let names = ["a", "b", "c"].iter().filter(|name| caches.service_cidrs.get(&key(name)).is_some());
        let stays = names.filter(|name| matches!(planned(&caches, name, NOW), Plan::Refuse { .. }));
        assert_eq!(stays.copied().collect::<Vec<_>>().join(" "), expected);
    };
    row(&[of("a", "10.0.0.0/24", 60), of("b", "10.0.0.0/16", 50)], "b");
    row(&[of("a", "10.0.0.0/24", 50), of("b", "10.0.0.0/16", 60)], "a");
    row(&[of("a", "10.0.0.0/24", 60), of("b", "10.0.0.0/24", 60)], "b");
    row(&[of("a", "10.0.0.0/8", 60), of("b", "10.0.0.0/24", 60), of("c", "10.0.0.0/16", 61)], "b");
    row(&[of("a", "10.0.0.0/24", 60), service_cidr("b", &["10.0.0.0/24"])], "");
}

#[test]
fn the_grace_period_begins_with_the_deletion() {
    for (seconds_ago, expected) in [
        (0, "wait 10s (an apiserver may allocate from it until 2026-01-01T12:00:10Z)"),
        (9, "wait 1s (an apiserver may allocate from it until 2026-01-01T12:00:01Z)"),
        (10, "remove the finalizer (no address is in it)"),
        // A clock that was ahead.
        (-5, "wait 15s (an apiserver may allocate from it until 2026-01-01T12:00:15Z)"),
    ] {
        check(&[deleted(service_cidr("synced", &BOTH), seconds_ago)], &[], expected);
    }
    // While addresses need it there is nothing to wait for.
    let addresses = ["192.168.0.2", "192.168.0.10"];
    let kept = "keep (2 addresses are in no other ServiceCIDR, the first is 192.168.0.2)";
    check(&[deleted(service_cidr("synced", &BOTH), 0)], &addresses, kept);
}

#[test]
fn the_finalizer_is_added_and_removed_once_and_of_this_very_object() {
    let held = |finalizers: Value| service_cidr("synced", &BOTH).set(&["metadata", "finalizers"], finalizers);
    check(&[held(json!([FINALIZER]))], &[], "keep (not being deleted)");
    check(&[held(json!(["example.com/hold"]))], &[], "add the finalizer (not being deleted)");
    let going = held(json!(["example.com/hold"])).set(&["metadata", "deletionTimestamp"], ago(60).to_string());
    check(&[going], &[], "nothing (finalizer is removed already)");
    let caches = cluster(&[service_cidr("synced", &BOTH)], &[]);
    assert_eq!(planned(&caches, "synced", NOW), Plan::Serve { lacks_finalizer: true, uid: uid("synced") });
    let caches = cluster(&[deleted(service_cidr("synced", &BOTH), 60)], &[]);
    assert_eq!(planned(&caches, "synced", NOW), Plan::LetGo { uid: uid("synced"), addresses: 0 });
}

#[test]
fn the_condition_is_applied_where_it_says_something_else() {
    let terminating =
        "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR";
    let ready = json!({ "type": "Ready", "status": "True", "reason": "", "lastTransitionTime": NOW.to_string(),
        "message": "Kubernetes Service CIDR is ready" });
    let refused = json!({ "type": "Ready", "status": "False", "reason": "Terminating", "message": terminating,
        "lastTransitionTime": NOW.to_string() });
    let next = |conditions: Value, readiness| {
        let service_cidr = service_cidr("a", &BOTH).set(&["status", "conditions"], conditions);
        let observed = Observed { service_cidr: service_cidr.build(), others: Vec::new(), addresses: Vec::new() };
        let outcome = Outcome { readiness, ..Outcome::default() };
        next_condition(&observed, &outcome, NOW).map_or(Value::Null, |condition| json!(condition))
    };
    for (readiness, expected) in [(Readiness::Ready, &ready), (Readiness::Terminating, &refused)] {
        assert_eq!(next(json!(null), Some(readiness)), *expected);
        assert_eq!(next(json!([{ "type": "Other", "status": "True" }]), Some(readiness)), *expected);
        assert_eq!(next(json!([expected]), Some(readiness)), json!(null));
    }
    assert_eq!(next(json!([ready]), Some(Readiness::Terminating)), refused);
    assert_eq!(next(json!([refused]), Some(Readiness::Ready)), ready);
    assert_eq!(next(json!([refused]), None), json!(null));
    // As the apiserver says it of its own one.
    let mut default = ready.clone();
    default["message"] = "Kubernetes default Service CIDR is ready".into();
    default["lastTransitionTime"] = ago(60).to_string().into();
    assert_eq!(next(json!([default]), Some(Readiness::Ready)), ready);
}

#[test]
fn a_condition_is_applied_with_an_empty_reason_as_upstream_does() {
    let observed = cluster(&[service_cidr("a", &BOTH)], &[]).observe(&key("a")).unwrap();
    let outcome = Outcome { readiness: Some(Readiness::Ready), ..Outcome::default() };
    let condition = next_condition(&observed, &outcome, NOW).unwrap();
    let applied = json!(Configuration::new("a", condition));
    let expected = json!({ "type": "Ready", "status": "True", "reason": "",
        "message": "Kubernetes Service CIDR is ready", "lastTransitionTime": "2026-01-01T12:00:00Z" });
    assert_eq!(applied, json!({ "metadata": { "name": "a" }, "status": { "conditions": [expected] } }));
}

fn names(service_cidrs: &[Arc<ServiceCidr>]) -> String {
    let names: Vec<&str> = service_cidrs.iter().map(|service_cidr| service_cidr.metadata.name()).collect();
    names.join(" ")
}

/// The range of most rows, others that overlap it, and others that do not.
fn several() -> Caches {
    let all = [
        service_cidr("kubernetes", &BOTH),
        service_cidr("overlapping", &["192.168.0.0/24", "2001:db2::/64"]),
        service_cidr("overlapping2", &["192.168.0.0/26", "2001:db2::/96"]),
        service_cidr("unrelated", &["10.0.0.0/24"]),
        service_cidr("unrelated2", &["10.0.0.0/16"]),
    ];
    cluster(&all, &[])
}

/// Upstream: `TestController_ipToCidrs`.
#[test]
fn an_address_concerns_the_service_cidrs_that_contain_it() {
    let row = |address: &str, expected: &str| {
        let address: Arc<IpAddress> = ip_address(address).build();
        assert_eq!(names(&several().containing(&address)), expected, "{address:?}");
    };
    row("192.168.0.23", "kubernetes overlapping overlapping2");
    // "… IPv4 subnet address", "… IPv4 broadcast address", and of IPv6
    row("192.168.0.0", "");
    row("192.168.0.63", "kubernetes overlapping");
    row("2001:db2::", "");
    row("2001:0db2::ffff:ffff:ffff:ffff", "kubernetes overlapping");
    row("no-address", "");
}

/// Upstream: `TestController_cidrToCidrs`.
#[test]
fn a_service_cidr_concerns_those_that_overlap_it() {
    let row = |cidrs: &[&str], expected: &str| {
        let of: Arc<ServiceCidr> = service_cidr("kubernetes", cidrs).build();
        assert_eq!(names(&several().overlapping(&of)), expected, "{cidrs:?}");
    };
    row(&BOTH, "overlapping overlapping2");
    row(&["10.0.0.0/8"], "unrelated unrelated2");
    row(&["172.16.0.0/12"], "");
}

/// Upstream: `TestOverlapsPrefix`.
#[test]
fn ranges_overlap_where_one_contains_the_other() {
    let row = |range: &str, expected: [bool; 2]| {
        let of = Cidr::parse(range).unwrap();
        let of_kubernetes = ["10.0.0.0/24", "2001:db8::/96"].map(|cidr| Cidr::parse(cidr).unwrap());
        assert_eq!(of_kubernetes.map(|cidr| cidr.overlaps(&of)), expected, "{range}");
        assert_eq!(of_kubernetes.map(|cidr| of.overlaps(&cidr)), expected, "{range}");
    };
    for contained in ["10.0.0.0/26", "10.0.0.0/24", "10.0.0.0/16", "0.0.0.0/0", "10.0.0.9/32"] {
        row(contained, [true, false]);
    }
    for contained in ["2001:db8::/112", "2001:db8::/96", "2001:db8::/64", "::/0"] {
        row(contained, [false, true]);
    }
    for other in ["192.168.0.0/24", "10.0.1.0/24", "9.255.255.0/24", "2001:db2::/112", "::a00:0/120"] {
        row(other, [false, false]);
    }
}

/// Upstream: `Test_PrefixContainIP`, `TestContainsAddress` and `TestBroadcastAddress`.
#[test]
fn a_service_has_no_address_of_a_network_nor_of_broadcasts() {
    let row = |cidr: &str, address: &str, expected: bool| {
        let cidr = Cidr::parse(cidr).unwrap();
        assert_eq!(cidr.contains(address.parse().unwrap()), expected, "{cidr:?} {address}");
    };
    row("192.168.0.0/24", "192.168.0.1", true);
    row("192.168.0.0/24", "192.168.0.0", false);
    row("192.168.0.0/24", "192.168.0.255", false);
    row("192.168.0.0/24", "192.168.1.2", false);
    row("192.168.0.0/23", "192.168.1.254", true);
    row("192.168.0.0/23", "192.168.1.255", false);
    row("192.168.0.7/24", "192.168.0.1", true);
    row("192.168.0.1/32", "192.168.0.1", false);
    row("0.0.0.0/0", "255.255.255.254", true);
    row("2001:db2::/96", "2001:db2::1", true);
    row("2001:db2::/96", "2001:db2::", false);
    row("2001:db2::/96", "2001:db2::ffff:ffff", true);
    row("2001:db2::/96", "2001:db2:1:2:3::1", false);
    row("fd00:1:2:3::/57", "fd00:1:2:7f:ffff:ffff:ffff:ffff", true);
    row("fd00:1:2:3::/57", "fd00:1:2:80::", false);
    row("::/0", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", true);
    row("::/96", "10.0.0.1", false);
}

fn update(caches: &Caches, new: &ObjectBuilder) -> Vec<Effect> {
    let new: Arc<ServiceCidr> = new.build();
    let old = caches.service_cidrs.get(&new.metadata.key);
    store(&caches.service_cidrs, &new);
    caches.service_cidr_changed(match &old {
        Some(old) => Change::Updated { old, new: &new },
        None => Change::Added(&new),
    })
}

fn enqueued(name: &str, cause: Cause) -> Effect {
    Effect::Enqueue(key(name), cause)
}

#[test]
fn a_change_leads_to_a_sync_of_the_service_cidrs_that_it_concerns() {
    let (edit, event) = (Cause::Edit, Cause::Event);
    let going = deleted(service_cidr("going", &["10.0.0.0/24", "2001:db8::/64"]), 60);
    let caches = cluster(&[going, service_cidr("staying", &["10.0.0.0/16"])], &[]);
    let new = service_cidr("new", &["10.0.0.0/20"]);
    assert_eq!(update(&caches, &new), [enqueued("new", edit), enqueued("going", event)]);
    assert_eq!(update(&caches, &service_cidr("far", &["172.16.0.0/12"])), [enqueued("far", edit)]);
    assert_eq!(update(&caches, &new.clone().label("a", "b")), []);
    let held = new.set(&["metadata", "finalizers"], json!([FINALIZER]));
    assert_eq!(update(&caches, &held), [enqueued("new", event)]);
    let ready = held.set(&["status", "conditions"], json!([{ "type": "Ready", "status": "True" }]));
    assert_eq!(update(&caches, &ready), [enqueued("new", event)]);
    // A second family.
    let dual = ready.set(&["spec", "cidrs"], json!(["10.0.0.0/20", "2001:db8::/48"]));
    assert_eq!(update(&caches, &dual), [enqueued("new", edit), enqueued("going", event)]);
    assert_eq!(update(&caches, &dual.terminating()), [enqueued("new", edit)]);
    let last = caches.service_cidrs.get(&key("new")).unwrap();
    forget(&caches.service_cidrs, &last);
    assert_eq!(caches.service_cidr_changed(Change::Deleted(&last)), []);

    let address: Arc<IpAddress> = ip_address("10.0.0.1").build();
    for change in [Change::Added(&address), Change::Deleted(&address)] {
        assert_eq!(caches.ip_address_changed(change), [enqueued("going", event)]);
    }
    assert_eq!(caches.ip_address_changed(Change::Updated { old: &address, new: &address }), []);
    let elsewhere: Arc<IpAddress> = ip_address("10.0.9.1").build();
    assert_eq!(caches.ip_address_changed(Change::Added(&elsewhere)), []);
}

/// A ServiceCIDR of a generated cluster: the number of its network and the bits of that, of `10.0.0.0/24`.
#[derive(Clone, Debug)]
struct Generated {
    network: u8,
    bits: u8,
    deleted: Option<i64>,
}

impl Generated {
    fn builder(&self, name: &str) -> ObjectBuilder {
        let cidr = service_cidr(name, &[&format!("10.0.0.{}/{}", self.network, self.bits)]);
        match self.deleted {
            Some(seconds_ago) => deleted(cidr, seconds_ago),
            None => cidr,
        }
    }
}

fn generated(deleted: impl Strategy<Value = Option<i64>>) -> impl Strategy<Value = Generated> {
    (any::<u8>(), 24..=30_u8, deleted).prop_map(|(network, bits, deleted)| Generated { network, bits, deleted })
}

fn addresses() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..6)
}

fn generated_cluster(all: &[Generated], addresses: &[u8]) -> Caches {
    let builders: Vec<ObjectBuilder> = all.iter().enumerate().map(|(n, one)| one.builder(&n.to_string())).collect();
    let addresses: Vec<String> = addresses.iter().map(|number| format!("10.0.0.{number}")).collect();
    cluster(&builders, &addresses.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Upstream's algorithm where no other ServiceCIDR is being deleted: first the ranges, then each address.
fn can_delete(all: &[Generated], at: usize, addresses: &[u8]) -> bool {
    let free = |one: &Generated| u8::MAX.checked_shr(u32::from(one.bits) - 24).unwrap_or_default();
    let ends = |one: &Generated| (one.network & !free(one), one.network | free(one));
    let (first, last) = ends(&all[at]);
    let contains_range = |other: &Generated| ends(other).0 <= first && last <= ends(other).1;
    if all.iter().enumerate().any(|(n, other)| n != at && contains_range(other)) {
        return true;
    }
    let contains = |one: &Generated, address: u8| ends(one).0 < address && address < ends(one).1;
    !addresses.iter().any(|address| {
        let containing: Vec<usize> = (0..all.len()).filter(|n| contains(&all[*n], *address)).collect();
        containing == [at]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn where_one_is_being_deleted_the_decision_is_upstreams(
        others in prop::collection::vec(generated(Just(None)), 0..5),
        going in generated(Just(Some(60))),
        addresses in addresses(),
    ) {
        let all: Vec<Generated> = others.into_iter().chain([going]).collect();
        let at = all.len() - 1;
        let planned = planned(&generated_cluster(&all, &addresses), &at.to_string(), NOW);
        let goes = matches!(planned, Plan::LetGo { .. });
        prop_assert_eq!(goes, can_delete(&all, at, &addresses), "{} {:?} {:?}", planned, all, addresses);
    }

    #[test]
    fn no_address_loses_its_last_range_when_all_that_may_go_go_at_once(
        all in prop::collection::vec(generated(prop::option::of(0..30_i64)), 1..6),
        addresses in addresses(),
    ) {
        let caches = generated_cluster(&all, &addresses);
        let stays = |n: &usize| !matches!(planned(&caches, &n.to_string(), NOW), Plan::LetGo { .. });
        let staying: Vec<usize> = (0..all.len()).filter(stays).collect();
        for address in addresses {
            let address = IpAddr::from(Ipv4Addr::new(10, 0, 0, address));
            let contains = |n: &usize| caches.service_cidrs.get(&key(&n.to_string())).unwrap().contains(address);
            let was_in_one = (0..all.len()).any(|n| contains(&n));
            prop_assert!(!was_in_one || staying.iter().any(contains), "{} is lost: {:?}", address, all);
        }
    }

    #[test]
    fn the_order_of_events_is_irrelevant_and_a_wait_ends_with_the_removal(
        all in prop::collection::vec(generated(prop::option::of(0..30_i64)), 1..5),
        addresses in addresses(),
    ) {
        let names: Vec<String> = (0..all.len()).map(|n| n.to_string()).collect();
        let decide = |addresses: &[u8]| {
            let caches = generated_cluster(&all, addresses);
            names.iter().map(|name| planned(&caches, name, NOW)).collect::<Vec<Plan>>()
        };
        order_is_irrelevant(&addresses, decide);
        let caches = generated_cluster(&all, &addresses);
        for name in &names {
            if let Plan::Wait { left, until } = planned(&caches, name, NOW) {
                prop_assert_eq!(NOW + left, until.timestamp());
                let then = planned(&caches, name, NOW + left);
                prop_assert!(matches!(then, Plan::LetGo { .. }), "{}", then);
            }
        }
    }
}
