//! A range of addresses, and the addresses in it that a Service may have.
//!
//! Upstream: `pkg/api/servicecidr/servicecidr.go`.

use std::net::IpAddr;

use shared::api::cidr::Family;

/// All addresses that begin with the same bits: `10.0.0.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    family: Family,
    first: u128,
    last: u128,
}

fn family_and_number(address: IpAddr) -> (Family, u128) {
    match address {
        IpAddr::V4(address) => (Family::V4, u32::from(address).into()),
        IpAddr::V6(address) => (Family::V6, address.into()),
    }
}

impl Cidr {
    /// Parses a text such as `10.0.0.0/24`; none if it is not a range.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let (family, number) = family_and_number(address.parse().ok()?);
        let free_bits = u32::from(family.bits()).checked_sub(length.parse().ok()?)?;
        let free = !u128::MAX.checked_shl(free_bits).unwrap_or_default();
        Some(Self { family, first: number & !free, last: number | free })
    }

    pub const fn family(&self) -> Family {
        self.family
    }

    /// Whether an address is in both.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.family == other.family && self.first <= other.last && other.first <= self.last
    }

    /// Whether a Service may have this address: any but the network address and, of IPv4, the broadcast address.
    ///
    /// Upstream: `PrefixContainsIP`.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (family, number) = family_and_number(address);
        let is_within = family == self.family && self.first < number && number <= self.last;
        is_within && (family == Family::V6 || number < self.last)
    }
}
