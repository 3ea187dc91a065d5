//! What is to be created takes the place of what is to be deleted: upstream's `reconciler_helpers_test.go`.

use serde_json::{Value, json};
use shared::testing::ObjectBuilder;

use crate::world::{World, endpoints, slice, subset};

const V4: [&str; 3] = ["10.1.2.3", "10.1.2.4", "10.1.2.5"];
const V6: &str = "2001:db8:1111:3333:4444:5555:6666:7777";

/// A slice of ports that nobody has any more.
fn old(name: &str, address_type: &str) -> ObjectBuilder {
    slice(name, address_type, &[1], json!([{ "addresses": ["10.2.3.4"] }]))
}

/// Plans for these subsets, and expects so many slices to be created, and these to be updated and deleted.
#[track_caller]
fn check(subsets: &[Value], slices: Vec<ObjectBuilder>, created: usize, updated: &[&str], deleted: &[&str]) {
    let mut world = World::new(endpoints(subsets)).with(slices);
    let mirrored = world.mirror();
    let updates: Vec<&str> = mirrored.writes.update.iter().map(|update| update.key.name()).collect();
    let deletions: Vec<&str> = mirrored.writes.delete.iter().map(|deletion| deletion.key.name()).collect();
    assert_eq!((mirrored.writes.create.len(), updates, deletions), (created, updated.to_vec(), deleted.to_vec()));
    let expected = {
        let mut anew = World::new(endpoints(subsets));
        anew.mirror();
        anew.shown()
    };
    assert_eq!(world.shown(), expected, "each is there once");
}

/// Upstream: `TestRecycleSlices`.
#[test]
fn slices_are_used_again_where_the_type_of_addresses_is_the_same() {
    let first = || subset(&V4[..1], &[80]);
    check(&[], Vec::new(), 0, &[], &[]);
    check(&[first()], vec![old("bar", "IPv4")], 0, &["bar"], &[]);
    let second = || subset(&V4[1..2], &[81]);
    check(&[first(), second()], vec![old("bar", "IPv4")], 1, &["bar"], &[]);
    check(&[first()], vec![old("bar1", "IPv4"), old("bar2", "IPv4")], 0, &["bar1"], &["bar2"]);
    let both = [subset(&[V4[0], V6], &[80])];
    check(&both, vec![old("bar-v4", "IPv4"), old("bar-v6", "IPv6")], 0, &["bar-v4", "bar-v6"], &[]);
    check(&[first()], vec![old("bar-v6", "IPv6")], 1, &[], &["bar-v6"]);
    let kept = slice("baz", "IPv4", &[81], json!([{ "addresses": ["10.2.3.4"] }]));
    check(&[first(), second()], vec![kept, old("bar", "IPv4")], 0, &["baz", "bar"], &[]);
}

/// New slices have no name yet: upstream takes one of the other family out of its list, and makes this one twice.
#[test]
fn of_several_new_slices_each_is_made_once() {
    let both = [subset(&[V4[0], V6], &[80]), subset(&V4[1..2], &[81])];
    for address_type in ["IPv4", "IPv6"] {
        check(&both, vec![old("bar", address_type)], 2, &["bar"], &[]);
    }
}
