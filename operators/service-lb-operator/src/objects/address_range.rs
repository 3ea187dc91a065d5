//! A range of addresses of one family: `192.0.2.0/24`, `192.0.2.10-192.0.2.20` or one address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::str::FromStr;

use shared::api::cidr::Family;

/// Both ends are of one family, and the first one is not behind the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    first: IpAddr,
    last: IpAddr,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRange {
    #[error("{0:?} is no address, no CIDR and no range of addresses")]
    Text(String),
    #[error("{0:?} has ends of two families")]
    TwoFamilies(String),
    #[error("{0:?} ends before it begins")]
    Reversed(String),
}

impl AddressRange {
    pub fn family(self) -> Family {
        Family::of(self.first)
    }

    pub fn contains(self, address: IpAddr) -> bool {
        self.addresses().contains(&address)
    }

    /// Ordered as [`IpAddr`] is: every IPv4 address before every IPv6 address.
    pub fn addresses(self) -> RangeInclusive<IpAddr> {
        self.first..=self.last
    }

    /// The first address of the range that is not among `taken`, which is sorted.
    pub fn first_outside(self, taken: impl IntoIterator<Item = IpAddr>) -> Option<IpAddr> {
        let mut free = self.first;
        for taken in taken {
            if taken > free {
                break;
            }
            free = next(taken)?;
        }
        self.contains(free).then_some(free)
    }

    /// The range of an address and the number of bits that all its addresses have in common.
    fn of_cidr(address: IpAddr, bits: u8) -> Option<Self> {
        match address {
            IpAddr::V4(address) => {
                let hosts = u32::MAX.checked_shr(u32::from(bits)).unwrap_or(0);
                let first = u32::from(address) & !hosts;
                let ends = [first, first | hosts].map(|end| IpAddr::V4(Ipv4Addr::from(end)));
                (bits <= 32).then_some(Self { first: ends[0], last: ends[1] })
            }
            IpAddr::V6(address) => {
                let hosts = u128::MAX.checked_shr(u32::from(bits)).unwrap_or(0);
                let first = u128::from(address) & !hosts;
                let ends = [first, first | hosts].map(|end| IpAddr::V6(Ipv6Addr::from(end)));
                (bits <= 128).then_some(Self { first: ends[0], last: ends[1] })
            }
        }
    }
}

impl FromStr for AddressRange {
    type Err = InvalidRange;

    fn from_str(text: &str) -> Result<Self, InvalidRange> {
        let invalid = || InvalidRange::Text(text.to_owned());
        let parse = |address: &str| address.trim().parse::<IpAddr>().map_err(|_| invalid());
        if let Some((address, bits)) = text.split_once('/') {
            let bits = bits.trim().parse().map_err(|_| invalid())?;
            return Self::of_cidr(parse(address)?, bits).ok_or_else(invalid);
        }
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (parse(first)?, parse(last)?);
        if first.is_ipv4() != last.is_ipv4() {
            return Err(InvalidRange::TwoFamilies(text.to_owned()));
        }
        if last < first {
            return Err(InvalidRange::Reversed(text.to_owned()));
        }
        Ok(Self { first, last })
    }
}

/// The address behind this one; none behind the last one of a family.
fn next(address: IpAddr) -> Option<IpAddr> {
    match address {
        IpAddr::V4(address) => Some(IpAddr::V4(Ipv4Addr::from(u32::from(address).checked_add(1)?))),
        IpAddr::V6(address) => Some(IpAddr::V6(Ipv6Addr::from(u128::from(address).checked_add(1)?))),
    }
}
