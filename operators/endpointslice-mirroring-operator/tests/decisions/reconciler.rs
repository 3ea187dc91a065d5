//! Which slices there are, and what is in them: upstream's `reconciler_test.go`.

use endpointslice_mirroring_operator::plan::{Changes, Mirrored};
use serde_json::{Value, json};
use shared::testing::{ObjectBuilder, uid};

use crate::world::{LAST_APPLIED, TRIGGER_TIME, World, addresses, endpoints, ports, slice, subset};

/// What upstream's metrics count of one sync.
#[derive(Debug, Default, PartialEq)]
struct Counted {
    desired: usize,
    slices: usize,
    changes: [usize; 3],
    skipped: usize,
    writes: [usize; 3],
}

fn counted(mirrored: &Mirrored, max: usize) -> Counted {
    let Changes { added, updated, removed } = mirrored.changes;
    Counted {
        desired: mirrored.sizes.iter().map(|size| size.endpoints.div_ceil(max)).sum(),
        slices: mirrored.sizes.iter().map(|size| size.slices).sum(),
        changes: [added, updated, removed],
        skipped: mirrored.skipped,
        writes: [mirrored.writes.create.len(), mirrored.writes.update.len(), mirrored.writes.delete.len()],
    }
}

/// Mirrors these subsets beside these slices, and expects these slices, and this to be counted.
#[track_caller]
fn check(subsets: &[Value], existing: Vec<ObjectBuilder>, shown: &[&str], expected: &Counted) {
    check_of(World::new(endpoints(subsets)).with(existing), shown, expected);
}

#[track_caller]
fn check_of(mut world: World, shown: &[&str], expected: &Counted) {
    let mirrored = world.mirror();
    assert_eq!(counted(&mirrored, world.max), *expected);
    assert_eq!(world.shown(), shown);
    let again = world.mirror();
    assert_eq!(again.writes.count(), 0, "once more changes nothing: {again}");
}

/// New slices with so many endpoints.
fn created(slices: usize, endpoints: usize) -> Counted {
    Counted { desired: slices, slices, changes: [endpoints, 0, 0], skipped: 0, writes: [slices, 0, 0] }
}

/// Upstream: `TestReconcile`.
#[test]
fn there_is_a_slice_for_each_list_of_ports() {
    let none = Counted::default();
    check(&[], Vec::new(), &[], &none);
    check(&[json!({ "ports": ports(&[80]) })], Vec::new(), &[], &none);
    check(&[subset(&["10.0.0.1"], &[80])], Vec::new(), &["IPv4 80: 10.0.0.1"], &created(1, 1));
    let (first, second) = ("10.0.0.1", "10.0.0.2");
    let https = |ip: &str| json!({ "addresses": addresses(&[ip]), "ports": [{ "name": "https", "port": 443 }] });
    let two = ["IPv4 443: 10.0.0.2", "IPv4 80: 10.0.0.1"];
    check(&[subset(&[first], &[80]), https(second)], Vec::new(), &two, &created(2, 2));
    let joined = ["IPv4 80,443: 10.0.0.1"];
    check(&[subset(&[first], &[80]), https(first)], Vec::new(), &joined, &created(1, 1));
    let both = ["IPv4 80: 10.0.0.1 10.0.0.2"];
    check(&[subset(&[first], &[80]), subset(&[second], &[80])], Vec::new(), &both, &created(1, 2));
    let both = ["IPv4 80,443: 10.0.0.1 10.0.0.2"];
    check(&[subset(&[first, second], &[80, 443])], Vec::new(), &both, &created(1, 2));
    let unready = json!({ "notReadyAddresses": addresses(&[first, second]), "ports": ports(&[80, 443]) });
    check(&[unready], Vec::new(), &["IPv4 80,443: !10.0.0.1 !10.0.0.2"], &created(1, 2));
    let mut mixed = subset(&["10.1.1.1", "10.1.1.2"], &[80, 443]);
    mixed["notReadyAddresses"] = addresses(&[first, second]);
    check(&[mixed], Vec::new(), &["IPv4 80,443: !10.0.0.1 !10.0.0.2 10.1.1.1 10.1.1.2"], &created(1, 4));
}

/// Two subsets: of two addresses, and of three.
fn two_and_three() -> [Value; 2] {
    let three = ["10.0.1.1", "10.0.1.2", "10.0.1.3"];
    [subset(&["10.0.0.1", "10.0.0.2"], &[80, 443]), subset(&three, &[3000, 3001])]
}

const TWO_AND_THREE: [&str; 2] = ["IPv4 3000,3001: 10.0.1.1 10.0.1.2 10.0.1.3", "IPv4 80,443: 10.0.0.1 10.0.0.2"];

/// Upstream: `TestReconcile`, from "Endpoints with 2 subsets, multiple ports and addresses" on.
#[test]
fn slices_that_are_there_are_used() {
    check(&two_and_three(), Vec::new(), &TWO_AND_THREE, &created(2, 5));
    let with = |endpoints: Value| vec![slice("test-ep-1", "IPv4", &[80, 443], endpoints)];
    let counts = |changes: [usize; 3], writes: [usize; 3]| Counted { changes, writes, ..created(2, 0) };
    check(&two_and_three(), with(Value::Null), &TWO_AND_THREE, &counts([5, 0, 0], [1, 1, 0]));
    // Of another address and state, and of another node.
    let some = json!([
        { "addresses": ["10.0.0.2"], "hostname": "pod-1" },
        { "addresses": ["10.0.0.1", "10.0.0.3"], "hostname": "pod-0" },
    ]);
    check(&two_and_three(), with(some), &TWO_AND_THREE, &counts([4, 1, 1], [1, 1, 0]));
    let endpoint = |n: usize| {
        json!({ "addresses": [format!("10.0.0.{}", n + 1)], "hostname": format!("pod-{n}"),
            "nodeName": format!("node-{n}"), "conditions": { "ready": true } })
    };
    let identical = json!([endpoint(1), endpoint(0)]);
    let mut world = World::new(endpoints(&two_and_three())).with(with(identical));
    assert_eq!(counted(&world.mirror(), world.max), counts([3, 0, 0], [1, 0, 0]), "in whatever order");
    assert_eq!(world.mirror().writes.count(), 0);
}

/// Upstream: `TestReconcile`, the rows about two families, about what is no address, and about too many.
#[test]
fn both_families_are_mirrored_and_what_is_no_address_is_not() {
    let v6 = |n: u8| format!("2001:db8:{n}{n}{n}{n}:3333:4444:5555:6666:7777");
    let dual = [subset(&[&v6(2), "10.0.0.2"], &[80, 443]), subset(&["10.0.1.1", "10.0.1.2", &v6(3)], &[3000, 3001])];
    let shown = [
        "IPv4 3000,3001: 10.0.1.1 10.0.1.2".to_owned(),
        "IPv4 80,443: 10.0.0.2".to_owned(),
        format!("IPv6 3000,3001: {}", v6(3)),
        format!("IPv6 80,443: {}", v6(2)),
    ];
    check(&dual, Vec::new(), &shown.each_ref().map(String::as_str), &created(4, 5));
    let only = [subset(&[&v6(1), &v6(2)], &[80, 443]), subset(&[&v6(3), &v6(4), &v6(5)], &[3000, 3001])];
    let shown = [format!("IPv6 3000,3001: {} {} {}", v6(3), v6(4), v6(5)), format!("IPv6 80,443: {} {}", v6(1), v6(2))];
    check(&only, Vec::new(), &shown.each_ref().map(String::as_str), &created(2, 5));
    let (no, nor) = ("this-is-not-an-ip", "this-is-also-not-an-ip");
    let some = [subset(&[&v6(1), no], &[80, 443]), subset(&[nor, &v6(4), &v6(5)], &[3000, 3001])];
    let shown = [format!("IPv6 3000,3001: {} {}", v6(4), v6(5)), format!("IPv6 80,443: {}", v6(1))];
    let expected = Counted { skipped: 2, ..created(2, 3) };
    check(&some, Vec::new(), &shown.each_ref().map(String::as_str), &expected);
    let none = [subset(&["no1", "no12"], &[80, 443]), subset(&["no11", "no12", "no3"], &[3000, 3001])];
    check(&none, Vec::new(), &[], &Counted { skipped: 5, ..Counted::default() });
    let world = World { max: 2, ..World::new(endpoints(&two_and_three())) };
    let shown = ["IPv4 3000,3001: 10.0.1.1 10.0.1.2", "IPv4 80,443: 10.0.0.1 10.0.0.2"];
    check_of(world, &shown, &Counted { skipped: 1, ..created(2, 4) });
}

#[test]
fn ready_addresses_are_mirrored_first() {
    let mut mixed = subset(&["10.1.1.1", "fd00::1"], &[80]);
    mixed["notReadyAddresses"] = addresses(&["10.0.0.1", "10.0.0.2"]);
    let world = World { max: 3, ..World::new(endpoints(&[mixed])) };
    let expected = Counted { desired: 2, slices: 2, changes: [3, 0, 0], skipped: 1, writes: [2, 0, 0] };
    check_of(world, &["IPv4 80: !10.0.0.1 10.1.1.1", "IPv6 80: fd00::1"], &expected);
}

/// One address, and the slice that mirrors it as this operator has written it.
fn settled(endpoints: ObjectBuilder) -> World {
    let mut world = World::new(endpoints);
    assert_eq!(world.sync(), "create IPv4 of 1");
    assert_eq!(world.sync(), "nothing (1 endpoint in 1 slice)");
    world
}

fn one() -> ObjectBuilder {
    endpoints(&[subset(&["10.0.0.1"], &[80])])
}

/// Upstream: `TestReconcile`, the rows about owners, labels and annotations.
#[test]
fn a_slice_says_of_itself_what_its_endpoints_say() {
    let after = |change: fn(&mut Value), expected: &str| {
        let mut world = settled(one().label("foo", "bar").annotation("foo", "bar"));
        let labelled = world.slices["new-1"].clone();
        change(&mut world.slices.get_mut("new-1").unwrap()["metadata"]);
        assert_eq!(world.sync(), expected);
        let mut found = world.slices["new-1"].clone();
        found["metadata"]["resourceVersion"] = "1".into();
        assert_eq!(found, labelled, "it is as it was");
    };
    after(|meta| meta["labels"]["foo"] = "baz".into(), "update new-1 (labels)");
    after(|meta| meta["labels"]["more"] = "baz".into(), "update new-1 (labels)");
    after(|meta| meta["annotations"]["foo"] = "baz".into(), "update new-1 (annotations)");
    after(|meta| meta["annotations"]["more"] = "baz".into(), "update new-1 (annotations)");
    after(|meta| meta["annotations"][LAST_APPLIED] = "{}".into(), "update new-1 (annotations)");
    after(|meta| meta["annotations"][TRIGGER_TIME] = "date".into(), "update new-1 (annotations)");
    let another = |meta: &mut Value| meta["ownerReferences"][0]["uid"] = uid("former").to_string().into();
    after(another, "update new-1 (owner)");
    after(|_| (), "nothing (1 endpoint in 1 slice)");
    // What is no mirrored annotation of the Endpoints is nobody's reason to write.
    let mut world = settled(one());
    world.endpoints = Some(one().annotation(LAST_APPLIED, "").annotation(TRIGGER_TIME, "date"));
    assert_eq!(world.sync(), "nothing (1 endpoint in 1 slice)");
    world.endpoints = Some(one().annotation(LAST_APPLIED, "{}").annotation("foo", "bar"));
    assert_eq!(world.sync(), "update new-1 (annotations)");
    assert_eq!(world.slices["new-1"]["metadata"]["annotations"], json!({ "foo": "bar" }));
    world.endpoints = Some(one().label("endpointslice.kubernetes.io/managed-by", "evil"));
    assert_eq!(world.sync(), "update new-1 (annotations)");
    assert_eq!(world.sync(), "nothing (1 endpoint in 1 slice)", "a reserved label is no reason either");
}

/// Upstream: `TestReconcile`, "Endpoints with 1 subset, port, and address, pending deletion".
#[test]
fn endpoints_on_their_way_out_get_no_new_slice_but_lose_those_that_are_wrong() {
    assert_eq!(World::new(one().terminating()).sync(), "do not create 1 (the endpoints are being deleted)");
    let mut world = settled(one());
    world.endpoints = Some(endpoints(&[subset(&["fd00::1"], &[80])]).terminating());
    let expected = "delete new-1 (emptied), do not create 1 (the endpoints are being deleted)";
    assert_eq!(world.sync(), expected);
}

#[test]
fn of_several_slices_the_first_has_all_and_the_others_go() {
    let listed = |ip: &str| json!([{ "addresses": [ip], "conditions": { "ready": true } }]);
    let plain = json!({ "addresses": [{ "ip": "10.0.0.1" }, { "ip": "10.0.0.2" }], "ports": ports(&[80]) });
    let existing = ["c", "a", "b"].map(|name| slice(name, "IPv4", &[80], listed("10.0.0.1")));
    let mut world = World::new(endpoints(&[plain])).with(existing);
    assert_eq!(world.sync(), "update a to 2 (1 added, owner), delete b (duplicate), delete c (duplicate)");
    assert_eq!(world.shown(), ["IPv4 80: 10.0.0.1 10.0.0.2"]);
}

#[test]
fn subsets_without_ports_are_mirrored_without_ports() {
    let mut world = World::new(endpoints(&[json!({ "addresses": [{ "ip": "10.0.0.1" }] })]));
    assert_eq!(world.sync(), "create IPv4 of 1");
    assert_eq!(world.shown(), ["IPv4 : 10.0.0.1"]);
    assert_eq!(world.sync(), "nothing (1 endpoint in 1 slice)");
}

/// Upstream: `TestEndpointsEqualBeyondHash`: in whatever state the object is that an endpoint leads to.
#[test]
fn another_version_of_a_pod_is_no_change() {
    let of = |version: &str, pod: &str| {
        let target =
            json!({ "kind": "Pod", "namespace": "default", "name": pod, "uid": "u", "resourceVersion": version });
        endpoints(&[json!({ "addresses": [{ "ip": "10.0.0.1", "targetRef": target }], "ports": ports(&[80]) })])
    };
    let mut world = settled(of("1", "a"));
    world.endpoints = Some(of("2", "a"));
    assert_eq!(world.sync(), "nothing (1 endpoint in 1 slice)");
    world.endpoints = Some(of("2", "b"));
    assert_eq!(world.sync(), "update new-1 to 1 (1 added, 1 removed)");
}
