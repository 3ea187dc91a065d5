//! The blocks of a range: upstream's cases, and a bitmap as the reference for any CIDRs.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use node_ipam_operator::objects::cidr_set::CidrSet;
use proptest::prelude::*;
use shared::api::cidr::{Cidr, Family, InvalidCidr};
use shared::testing::properties::order_is_irrelevant;

fn cidr(text: &str) -> Cidr {
    text.parse().unwrap()
}

fn set(cluster_cidr: &str, mask_size: i32) -> CidrSet {
    CidrSet::new(cidr(cluster_cidr), mask_size).unwrap()
}

/// Takes the next free block.
fn allocate(set: &mut CidrSet) -> Option<Cidr> {
    let found = set.next_free()?;
    set.move_past(found);
    set.occupy(found);
    Some(found)
}

#[test]
fn cidrs_are_read_as_upstream_reads_them() {
    for (text, expected) in [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.1.2.3/8", "10.0.0.0/8"),
        ("010.001.0.09/024", "10.1.0.0/24"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("255.255.255.255/32", "255.255.255.255/32"),
        ("2001:0DB8::1/48", "2001:db8::/48"),
        ("::/0", "::/0"),
        ("::1/128", "::1/128"),
    ] {
        assert_eq!(cidr(text).to_string(), expected, "{text}");
    }
    for text in [
        "",
        "/",
        "10.0.0.0",
        "10.0.0.0/",
        "10.0.0.0/33",
        "10.0.0.0/-1",
        "10.0.0.0/+8",
        "10.0.0.0/8/8",
        " 10.0.0.0/8",
        "10.0.0/8",
        "10.0.0.0.0/8",
        "10.0.0.256/8",
        "10.0.0.+1/8",
        "a.0.0.0/8",
        "::/129",
        "::g/64",
        "fe80::1%eth0/64",
    ] {
        assert_eq!(text.parse::<Cidr>(), Err(InvalidCidr(text.to_owned())));
    }
}

#[test]
fn a_range_shares_addresses_with_what_it_is_in_and_with_what_is_in_it() {
    for (one, other, expected) in [
        ("10.0.0.0/8", "10.1.0.0/16", true),
        ("10.0.0.0/8", "11.0.0.0/16", false),
        ("0.0.0.0/0", "10.0.0.0/32", true),
        ("0.0.0.0/0", "::/0", false),
        ("fd00::/64", "fd00:0:0:1::/64", false),
        ("fd00::/48", "fd00:0:0:1::/64", true),
    ] {
        assert_eq!((cidr(one).overlaps(cidr(other)), cidr(other).overlaps(cidr(one))), (expected, expected), "{one}");
    }
}

/// Upstream: `TestCIDRSetFullyAllocated`.
#[test]
fn a_set_that_is_full_gives_nothing_until_a_block_is_released() {
    for only in ["127.123.234.0/30", "beef:1234::/30"] {
        let mut set = set(only, 30);
        for _ in 0..2 {
            assert_eq!(allocate(&mut set), Some(cidr(only)));
            assert_eq!(allocate(&mut set), None);
            assert_eq!(set.release(cidr(only)), 1);
        }
    }
}

/// Upstream: `TestIndexToCIDRBlock`.
#[test]
fn blocks_are_numbered_by_address() {
    for (cluster_cidr, mask_size, number, expected) in [
        ("127.123.3.0/16", 24, 0, "127.123.0.0/24"),
        ("127.123.0.0/16", 24, 15, "127.123.15.0/24"),
        ("192.168.5.219/28", 32, 5, "192.168.5.213/32"),
        ("2001:0db8:1234:3::/48", 64, 0, "2001:db8:1234::/64"),
        ("2001:0db8:1234::/48", 64, 15, "2001:db8:1234:f::/64"),
        ("2001:0db8:85a3::8a2e:0370:7334/50", 63, 6425, "2001:db8:85a3:3232::/63"),
        ("2001:0db8::/32", 48, 0, "2001:db8::/48"),
        ("2001:0db8::/32", 48, 15, "2001:db8:f::/48"),
        ("2001:0db8:85a3::8a2e:0370:7334/32", 48, 6425, "2001:db8:1919::/48"),
        ("2001:0db8:1234:ff00::/56", 72, 0, "2001:db8:1234:ff00::/72"),
        ("2001:0db8:1234:ff00::/56", 72, 15, "2001:db8:1234:ff00:f00::/72"),
        ("2001:0db8:1234:ff00::0370:7334/56", 72, 6425, "2001:db8:1234:ff19:1900::/72"),
        ("2001:0db8:1234:0:1234::/80", 96, 0, "2001:db8:1234:0:1234::/96"),
        ("2001:0db8:1234:0:1234::/80", 96, 15, "2001:db8:1234:0:1234:f::/96"),
        ("2001:0db8:1234:ff00::0370:7334/80", 96, 6425, "2001:db8:1234:ff00:0:1919::/96"),
    ] {
        let set = set(cluster_cidr, mask_size);
        assert_eq!(set.block(number), cidr(expected), "{cluster_cidr} {number}");
        assert_eq!(set.block(number).to_string(), expected);
        assert_eq!(set.run(cidr(expected)), Some((number, number)));
    }
}

/// Upstream: `TestCIDRSet_RandomishAllocation`.
#[test]
fn all_blocks_come_again_in_the_same_order() {
    for cluster_cidr in ["127.123.234.0/16", "beef:1234::/16"] {
        let mut set = set(cluster_cidr, 24);
        let first: Vec<Cidr> = std::iter::from_fn(|| allocate(&mut set)).collect();
        assert_eq!((first.len(), set.free()), (256, 0));
        for block in &first {
            set.release(*block);
        }
        let again: Vec<Cidr> = std::iter::from_fn(|| allocate(&mut set)).collect();
        assert_eq!(first, again, "{cluster_cidr}");
    }
}

/// Upstream: `TestCIDRSet_AllocationOccupied`.
#[test]
fn blocks_that_are_occupied_are_not_allocated() {
    for cluster_cidr in ["127.123.234.0/16", "beef:1234::/16"] {
        let mut set = set(cluster_cidr, 24);
        let all: Vec<Cidr> = std::iter::from_fn(|| allocate(&mut set)).collect();
        for block in &all {
            set.release(*block);
        }
        for block in &all[128..] {
            set.occupy(*block);
        }
        set.occupy(all[128]);
        let rest: Vec<Cidr> = std::iter::from_fn(|| allocate(&mut set)).collect();
        assert_eq!(rest, all[..128], "{cluster_cidr}");
    }
}

/// Upstream: `TestDoubleOccupyRelease`. There a block has no holders, and each release frees the blocks that it names.
#[test]
fn a_block_is_free_when_its_last_holder_has_let_it_go() {
    let mut set = set("10.42.0.0/16", 24);
    for (text, is_occupied, used) in [
        ("10.42.5.0/24", true, 1),
        ("10.42.9.0/24", true, 2),
        ("10.42.8.0/22", true, 5),
        ("10.42.9.0/24", true, 5),
        ("10.42.9.0/24", false, 5),
        ("10.42.9.0/24", false, 5),
        ("10.42.9.0/24", false, 5),
        ("10.42.4.0/22", false, 5),
        ("10.42.8.0/22", false, 1),
        ("10.42.5.128/25", true, 1),
        ("10.42.5.0/24", false, 1),
        ("10.42.5.128/25", false, 0),
        ("10.43.0.0/24", true, 0),
        ("::/0", true, 0),
    ] {
        let before = set.used();
        let changed = if is_occupied { set.occupy(cidr(text)) } else { set.release(cidr(text)) };
        assert_eq!((set.used(), set.used().abs_diff(before)), (used, changed), "{text} {is_occupied}");
    }
    assert_eq!(std::iter::from_fn(|| allocate(&mut set)).count(), 256);
}

/// Upstream: `TestGetBitforCIDR`, and the rows of `TestOccupy`.
#[test]
fn a_cidr_takes_all_blocks_that_it_has_a_part_of() {
    for (cluster_cidr, mask_size, text, expected) in [
        ("127.0.0.0/8", 16, "127.0.0.0/16", Some((0, 0))),
        ("be00::/8", 16, "be00::/16", Some((0, 0))),
        ("127.0.0.0/8", 16, "127.123.0.0/16", Some((123, 123))),
        ("be00::/8", 16, "beef::/16", Some((0xef, 0xef))),
        ("127.0.0.0/8", 16, "127.168.0.0/16", Some((168, 168))),
        ("be00::/8", 16, "be68::/16", Some((0x68, 0x68))),
        ("127.0.0.0/8", 16, "127.224.0.0/16", Some((224, 224))),
        ("be00::/8", 16, "be24::/16", Some((0x24, 0x24))),
        ("192.168.0.0/16", 24, "192.168.12.0/24", Some((12, 12))),
        ("beef::/16", 24, "beef:1200::/24", Some((0x12, 0x12))),
        ("192.168.0.0/16", 24, "192.168.151.0/24", Some((151, 151))),
        ("beef::/16", 24, "beef:9700::/24", Some((0x97, 0x97))),
        ("192.168.0.0/16", 24, "127.168.224.0/24", None),
        ("beef::/16", 24, "2001:db00::/24", None),
        ("127.0.0.0/8", 16, "127.0.0.0/8", Some((0, 255))),
        ("2001:beef:1200::/40", 48, "2001:beef:1200::/40", Some((0, 255))),
        ("127.0.0.0/8", 16, "127.0.0.0/2", Some((0, 255))),
        ("2001:beef:1200::/40", 48, "2001:beef:1234::/34", Some((0, 255))),
        ("2001:beef:1200::/40", 48, "2001:beef:1200::/48", Some((0, 0))),
        ("127.0.0.0/8", 32, "127.0.0.0/16", Some((0, 65535))),
        ("2001:beef:1200::/48", 64, "2001:beef:1200::/48", Some((0, 65535))),
        ("127.0.0.0/7", 16, "127.0.0.0/15", Some((256, 257))),
        ("2001:beef:7f00::/39", 48, "2001:beef:7f00::/47", Some((256, 257))),
        ("127.0.0.0/7", 15, "127.0.0.0/15", Some((128, 128))),
        ("2001:beef:7f00::/39", 47, "2001:beef:7f00::/47", Some((128, 128))),
        ("127.0.0.0/7", 18, "127.0.0.0/15", Some((1024, 1031))),
        ("2001:beef:7f00::/39", 50, "2001:beef:7f00::/47", Some((1024, 1031))),
        ("10.0.0.0/16", 24, "10.0.7.64/26", Some((7, 7))),
    ] {
        let mut set = set(cluster_cidr, mask_size);
        assert_eq!(set.run(cidr(text)), expected, "{text} in {cluster_cidr}");
        let blocks = expected.map_or(0, |(first, last)| last - first + 1);
        assert_eq!((set.occupy(cidr(text)), set.used()), (blocks, blocks));
    }
}

/// Upstream: `TestCIDRSetv6`, and the check of `NewNodeIpamController`.
#[test]
fn a_block_is_no_larger_than_its_range_and_of_ipv6_not_much_smaller() {
    let mut longest = set("127.0.0.0/8", 32);
    let two = [allocate(&mut longest), allocate(&mut longest)];
    assert_eq!(two, ["127.0.0.0/32", "127.0.0.1/32"].map(|text| Some(cidr(text))));
    let mut few = set("2001:beef:1234:369b::/60", 64);
    let two = [allocate(&mut few), allocate(&mut few)];
    assert_eq!(two, ["2001:beef:1234:3690::/64", "2001:beef:1234:3691::/64"].map(|text| Some(cidr(text))));

    let wrong = |text, mask_size| CidrSet::new(cidr(text), mask_size).unwrap_err();
    assert_eq!(wrong("beef:1234::/32", 49), "New CIDR set failed; the node CIDR size is too big");
    for (text, mask_size) in [("10.0.0.0/24", 23), ("fd00::/64", 63), ("10.0.0.0/24", -1)] {
        let error = wrong(text, mask_size);
        assert!(error.starts_with("Controller: Invalid --cluster-cidr, mask size of cluster CIDR must be"), "{error}");
    }
    assert_eq!(wrong("10.0.0.0/8", 33), "the mask of a node CIDR of 10.0.0.0/8 cannot have 33 bits");
    assert_eq!(wrong("10.0.0.0/8", 999), "the mask of a node CIDR of 10.0.0.0/8 cannot have 999 bits");
}

/// Upstream: `Test_getMaxCIDRs`.
#[test]
fn blocks_are_counted() {
    for (cluster_cidr, mask_size, expected) in
        [("10.0.0.0/16", 24, 256), ("2001:db8::/48", 64, 65536), ("0.0.0.0/0", 32, 1 << 32), ("::/0", 16, 65536)]
    {
        let mut set = set(cluster_cidr, mask_size);
        assert_eq!((set.max_cidrs(), set.free()), (expected, expected));
        assert_eq!((set.occupy(cidr(cluster_cidr)), set.free(), set.next_free()), (expected, 0, None));
    }
}

#[test]
fn a_search_begins_after_the_last_block_that_was_found() {
    let mut set = set("10.0.0.0/22", 24);
    let all = [0, 1, 2, 3].map(|number| set.block(number));
    assert_eq!(allocate(&mut set), Some(all[0]));
    set.release(all[0]);
    assert_eq!(allocate(&mut set), Some(all[1]));
    set.occupy(all[2]);
    assert_eq!(set.next_free(), Some(all[3]));
    assert_eq!((set.move_past(all[3]), set.next_free()), (Some(1), Some(all[0])));
    set.occupy(all[0]);
    assert_eq!(set.next_free(), Some(all[3]), "which was found, and not taken");
    set.move_past(all[1]);
    assert_eq!(set.move_past(all[0]), Some(2));
    assert_eq!(set.move_past(cidr("10.9.0.0/24")), None);
}

/// The blocks of `10.0.0.0/24` by 16 addresses, as upstream keeps them: which of them somebody holds.
fn bitmap(held: &[Cidr]) -> [bool; 16] {
    let blocks = std::array::from_fn::<_, 16, _>(|number| cidr(&format!("10.0.0.{}/28", number * 16)));
    blocks.map(|block| held.iter().any(|held| held.overlaps(block)))
}

/// A CIDR in the range, around it, or next to it.
fn any_cidr() -> impl Strategy<Value = Cidr> {
    let parts = (0..=1_u8, 0..=255_u8, 22..=32_u8);
    parts.prop_map(|(third, fourth, mask_size)| cidr(&format!("10.0.{third}.{fourth}/{mask_size}")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_set_is_as_a_bitmap(steps in proptest::collection::vec((any_cidr(), 0..4_u8), 0..40)) {
        let (mut set, mut held, mut next) = (set("10.0.0.0/24", 28), Vec::<Cidr>::new(), 0_usize);
        for (cidr, step) in steps {
            match step {
                0 | 1 => {
                    set.occupy(cidr);
                    held.push(cidr);
                }
                2 => {
                    set.release(cidr);
                    if let Some(at) = held.iter().position(|known| *known == cidr) {
                        held.remove(at);
                    }
                }
                _ => {
                    let bits = bitmap(&held);
                    let found = (0..16).map(|tries| (next + tries) % 16).find(|block| !bits[*block]);
                    let expected = found.map(|block| set.block(u64::try_from(block).unwrap()));
                    prop_assert_eq!(allocate(&mut set), expected);
                    held.extend(expected);
                    next = found.map_or(next, |block| (block + 1) % 16);
                }
            }
            let used = bitmap(&held).iter().filter(|bit| **bit).count();
            prop_assert_eq!(set.used(), u64::try_from(used).unwrap());
        }
    }

    #[test]
    fn the_order_in_which_cidrs_are_seen_is_irrelevant(cidrs in proptest::collection::vec(any_cidr(), 0..6)) {
        order_is_irrelevant(&cidrs, |cidrs| {
            let mut set = set("10.0.0.0/24", 28);
            for cidr in cidrs {
                set.occupy(*cidr);
            }
            set
        });
    }

    #[test]
    fn what_is_shown_is_read_back(first in any::<u128>(), mask_size in 0..=128_u8, is_v6 in any::<bool>()) {
        let cidr = Cidr::new(if is_v6 { Family::V6 } else { Family::V4 }, first, mask_size);
        prop_assert_eq!(cidr.to_string().parse(), Ok(cidr));
    }

    #[test]
    fn no_text_makes_it_panic(text in "[0-9a-f.:/ ]{0,24}") {
        let _ = text.parse::<Cidr>();
    }
}
