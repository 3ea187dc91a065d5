//! A range of addresses in CIDR notation, and the arithmetic that cutting one into blocks needs.
//!
//! Of two ranges of one family either one contains the other, or they have no address in common.
//! Left out: IPv4 addresses in the form of IPv6 ones (`::ffff:10.0.0.0`), which are IPv6 here.

use std::fmt::{self, Display};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// IPv4 or IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// As `spec.ipFamilies` of a Service names it.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::V4, Self::V6].into_iter().find(|family| family.as_str() == text)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    /// How many bits an address has.
    pub fn bits(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }

    /// The bits of an address that tell the hosts of a range with this mask size apart.
    fn host_bits(self, mask_size: u8) -> u128 {
        let network_bits = 128 - self.bits() + mask_size.min(self.bits());
        u128::MAX.checked_shr(u32::from(network_bits)).unwrap_or(0)
    }
}

impl Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Family {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A range such as `10.0.0.0/24`. Ranges are ordered by family and first address, and of two that begin together the
/// larger one comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr {
    family: Family,
    first: u128,
    mask_size: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid CIDR address: {0}")]
pub struct InvalidCidr(pub String);

impl Cidr {
    pub fn new(family: Family, address: u128, mask_size: u8) -> Self {
        let mask_size = mask_size.min(family.bits());
        let first = address & family.host_bits(0) & !family.host_bits(mask_size);
        Self { family, first, mask_size }
    }

    pub fn family(self) -> Family {
        self.family
    }

    pub fn first(self) -> u128 {
        self.first
    }

    pub fn last(self) -> u128 {
        self.first | self.family.host_bits(self.mask_size)
    }

    /// How many bits all its addresses have in common.
    pub fn mask_size(self) -> u8 {
        self.mask_size
    }

    /// Whether the first or the last address of another range is in this one.
    pub fn has_an_end_of(self, other: Self) -> bool {
        let has = |address: u128| self.first <= address && address <= self.last();
        self.family == other.family && (has(other.first) || has(other.last()))
    }

    pub fn overlaps(self, other: Self) -> bool {
        self.family == other.family && self.first <= other.last() && other.first <= self.last()
    }
}

/// The ranges of `--cluster-cidr`: one, or one of each family.
///
/// # Errors
/// In upstream's words, if a range cannot be read or there are more.
///
/// Upstream: `validateCIDRs`, `cmd/kube-controller-manager/app/core.go`, and `startRouteController`,
/// `k8s.io/cloud-provider/app/core.go`.
pub fn cluster_cidrs(texts: &str) -> Result<Vec<Cidr>, String> {
    let read = |(index, text): (usize, &str)| {
        text.parse::<Cidr>().map_err(|error| format!("invalid CIDR[{index}]: <nil> ({error})"))
    };
    let cidrs: Vec<Cidr> = texts.trim().split(',').enumerate().map(read).collect::<Result<_, _>>()?;
    match cidrs.len() {
        count if count > 1 && !is_dual_stack(&cidrs) => Err(format!(
            "len of ClusterCIDRs=={count} and they are not configured as dual stack (at least one from each IPFamily"
        )),
        count if count > 2 => Err(format!("length of clusterCIDRs is:{count} more than max allowed of 2")),
        _ => Ok(cidrs),
    }
}

/// Upstream: `IsDualStackCIDRs`, `k8s.io/utils/net/ipfamily.go`.
pub fn is_dual_stack(cidrs: &[Cidr]) -> bool {
    [Family::V4, Family::V6].iter().all(|family| cidrs.iter().any(|cidr| cidr.family() == *family))
}

/// Upstream: `ParseCIDRSloppy`, `k8s.io/utils/net/parse.go`: numbers may begin with zeros.
impl FromStr for Cidr {
    type Err = InvalidCidr;

    fn from_str(text: &str) -> Result<Self, InvalidCidr> {
        let read = || {
            let (address, mask_size) = text.split_once('/')?;
            let (family, address) = read_address(address)?;
            let mask_size = read_number(mask_size).filter(|size| *size <= family.bits())?;
            Some(Self::new(family, address, mask_size))
        };
        read().ok_or_else(|| InvalidCidr(text.to_owned()))
    }
}

fn read_address(text: &str) -> Option<(Family, u128)> {
    if text.contains(':') {
        let address: Ipv6Addr = text.parse().ok()?;
        return Some((Family::V6, address.into()));
    }
    let octets: Vec<u8> = text.split('.').map(read_number).collect::<Option<_>>()?;
    let octets: [u8; 4] = octets.try_into().ok()?;
    Some((Family::V4, u32::from_be_bytes(octets).into()))
}

fn read_number(digits: &str) -> Option<u8> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

impl Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mask_size = self.mask_size;
        match self.family {
            Family::V4 => {
                let address = u32::try_from(self.first).map_err(|_| fmt::Error)?;
                write!(f, "{}/{mask_size}", Ipv4Addr::from(address))
            }
            Family::V6 => write!(f, "{}/{mask_size}", Ipv6Addr::from(self.first)),
        }
    }
}

impl fmt::Debug for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl Serialize for Cidr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One of a Node's `podCIDRs`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum PodCidr {
    Range(Cidr),
    /// A text that is none.
    Unreadable(Box<str>),
}

impl PodCidr {
    pub fn range(&self) -> Option<Cidr> {
        match self {
            Self::Range(cidr) => Some(*cidr),
            Self::Unreadable(_) => None,
        }
    }
}

impl From<&str> for PodCidr {
    fn from(text: &str) -> Self {
        text.parse::<Cidr>().map_or_else(|InvalidCidr(text)| Self::Unreadable(text.into()), Self::Range)
    }
}

impl<'de> Deserialize<'de> for PodCidr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from(&*String::deserialize(deserializer)?))
    }
}

impl Display for PodCidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range(cidr) => Display::fmt(cidr, f),
            Self::Unreadable(text) => f.write_str(text),
        }
    }
}
