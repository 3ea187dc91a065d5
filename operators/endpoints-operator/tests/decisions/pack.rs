//! The canonical form of addresses and ports: upstream's `pkg/api/v1/endpoints/util_test.go`.

use endpoints_operator::objects::Subset;
use endpoints_operator::plan::util::repack;
use serde_json::{Value, json};
use shared::testing::uid;

fn read(subsets: &Value) -> Vec<Subset> {
    serde_json::from_value(subsets.clone()).unwrap()
}

/// `1.2.3.4`, and with a name an address of the pod of this uid.
fn address(ip: &str, name: &str) -> Value {
    let target = json!({ "kind": "Pod", "name": name, "namespace": "default", "uid": uid(name).to_string() });
    if name.is_empty() { json!({ "ip": ip }) } else { json!({ "ip": ip, "targetRef": target }) }
}

fn subset(ready: &[Value], not_ready: &[Value], ports: &[i32]) -> Value {
    let ports: Vec<Value> = ports.iter().map(|port| json!({ "port": port })).collect();
    json!({ "addresses": ready, "notReadyAddresses": not_ready, "ports": ports })
}

/// Packs these, whose subsets and ports may come in any order.
#[track_caller]
fn check(given: &[Value], expected: &[Value]) {
    let sorted = |mut subsets: Vec<Subset>| {
        for subset in &mut subsets {
            subset.ports.sort();
        }
        subsets.sort_by_key(|subset| format!("{subset:?}"));
        subsets
    };
    let packed = repack(&read(&json!(given)));
    assert_eq!(sorted(packed.clone()), sorted(read(&json!(expected))));
    assert_eq!(repack(&packed), packed, "once more changes nothing");
    let mut turned = read(&json!(given));
    turned.reverse();
    // Of an address that comes twice, the first counts.
    if expected.iter().all(|subset| !subset.to_string().contains("first")) {
        assert_eq!(repack(&turned), packed, "the order of what is given is irrelevant");
    }
}

/// Upstream: `TestPackSubsets`.
#[test]
fn addresses_and_ports_are_once_where_they_belong() {
    let (one, two) = (|| address("1.2.3.4", ""), || address("5.6.7.8", ""));
    check(&[subset(&[], &[], &[])], &[]);
    check(&[subset(&[], &[], &[111])], &[]);
    for same in [
        subset(&[one()], &[], &[]),
        subset(&[], &[one()], &[]),
        subset(&[one()], &[], &[111]),
        subset(&[address("beef::1:2:3:4", "")], &[], &[111]),
        subset(&[], &[one()], &[111]),
        subset(&[address("1.2.3.4", "uid-1")], &[], &[111]),
        subset(&[], &[address("1.2.3.4", "uid-1")], &[111]),
        subset(&[one(), two()], &[], &[111]),
        subset(&[one()], &[two()], &[111]),
        subset(&[one()], &[], &[111, 222]),
    ] {
        check(std::slice::from_ref(&same), std::slice::from_ref(&same));
    }
    let unready = subset(&[], &[one()], &[111]);
    check(&[subset(&[one()], &[one()], &[111])], std::slice::from_ref(&unready));
    let ready = subset(&[one()], &[], &[111]);
    check(&[subset(&[one(), one()], &[], &[111])], std::slice::from_ref(&ready));
    check(&[subset(&[one()], &[], &[111, 111])], std::slice::from_ref(&ready));
    check(&[ready.clone(), ready.clone()], std::slice::from_ref(&ready));
    check(&[ready.clone(), unready.clone()], std::slice::from_ref(&unready));
    check(&[ready.clone(), subset(&[one()], &[], &[222])], &[subset(&[one()], &[], &[111, 222])]);
    check(&[ready, subset(&[two()], &[], &[111])], &[subset(&[one(), two()], &[], &[111])]);
}

/// Upstream: `TestPackSubsets`.
#[test]
fn pods_that_share_an_address_are_apart() {
    let of = |name: &str| address("1.2.3.4", name);
    let apart = [subset(&[of("uid-1")], &[], &[111]), subset(&[], &[of("uid-1")], &[222])];
    check(&apart, &apart);
    let twice = [subset(&[of("uid-1")], &[], &[111]), subset(&[of("uid-1")], &[], &[222])];
    check(&twice, &[subset(&[of("uid-1")], &[], &[111, 222])]);
    let mut both = [of("uid-1"), of("uid-2")];
    both.sort_by_key(|address| address["targetRef"]["uid"].to_string());
    check(&[subset(&[of("uid-1")], &[], &[111]), subset(&[of("uid-2")], &[], &[111])], &[subset(&both, &[], &[111])]);
    check(
        &[subset(&[of("")], &[], &[111]), subset(&[of("uid-2")], &[], &[111])],
        &[subset(&[of(""), of("uid-2")], &[], &[111])],
    );
    // The same pod, written in two ways.
    let first = json!({ "ip": "1.2.3.4", "hostname": "first" });
    let second = json!({ "ip": "1.2.3.4", "hostname": "second" });
    check(
        &[subset(&[first.clone(), second.clone()], &[], &[111])],
        &[subset(std::slice::from_ref(&first), &[], &[111])],
    );
    check(&[subset(std::slice::from_ref(&first), &[second], &[111])], &[subset(&[], &[first], &[111])]);
}

/// Upstream: `TestPackSubsets`.
#[test]
fn addresses_come_in_their_order() {
    let (low, high) = (|name: &str| address("1.2.3.4", name), |name: &str| address("5.6.7.8", name));
    let jumbled = [
        subset(&[high("")], &[], &[111]),
        subset(&[], &[high("uid-1")], &[111]),
        subset(&[], &[low("uid-1")], &[111]),
        subset(&[], &[low("")], &[111]),
    ];
    check(&jumbled, &[subset(&[high("")], &[low(""), low("uid-1"), high("uid-1")], &[111])]);
    let ip = |last: u8| address(&format!("1.2.3.{last}"), "");
    check(
        &[
            subset(&[ip(4)], &[], &[111]),
            subset(&[ip(5)], &[], &[222]),
            subset(&[ip(6)], &[], &[111]),
            subset(&[ip(5)], &[], &[333]),
        ],
        &[subset(&[ip(4), ip(6)], &[], &[111]), subset(&[ip(5)], &[], &[222, 333])],
    );
    check(
        &[
            subset(&[ip(4)], &[], &[111]),
            subset(&[], &[ip(5)], &[222]),
            subset(&[ip(6)], &[], &[111]),
            subset(&[], &[ip(5)], &[333]),
        ],
        &[subset(&[ip(4), ip(6)], &[], &[111]), subset(&[], &[ip(5)], &[222, 333])],
    );
}

/// The hashes are those of Go's dump of the structs, made with upstream's own printer: `0435…`, `5af2…`, `74bf…`,
/// `d809…` and `f262…` of the ports, `c6df…`, `eda7…` and `fbc9…` of the subsets.
#[test]
fn ports_and_subsets_come_in_upstreams_order() {
    let ports = repack(&read(&json!([subset(&[address("1.2.3.4", "")], &[], &[555, 444, 333, 222, 111])])));
    let ports: Vec<i32> = ports[0].ports.iter().map(|port| port.port).collect();
    assert_eq!(ports, [111, 222, 444, 555, 333]);
    let of = |n: i32| subset(&[address(&format!("1.2.3.{n}"), "")], &[], &[111 * n]);
    let subsets = repack(&read(&json!([of(1), of(2), of(3)])));
    assert_eq!(subsets, read(&json!([of(3), of(1), of(2)])));
}
