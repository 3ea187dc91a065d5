//! Address types, and the targets of addresses.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::api::intern::Text;
use crate::api::object::{Key, Uid};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressType {
    /// IPv4.
    IPv4,
    /// IPv6.
    IPv6,
    Other(Text),
}

impl AddressType {
    /// The type of an IP family; none for an unknown family.
    pub fn of_family(family: &str) -> Option<Self> {
        match Self::parse(family) {
            Self::Other(_) => None,
            known @ (Self::IPv4 | Self::IPv6) => Some(known),
        }
    }

    fn parse(text: &str) -> Self {
        match text {
            "IPv4" => Self::IPv4,
            "IPv6" => Self::IPv6,
            other => Self::Other(Text::new(other)),
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::IPv4 => "IPv4",
            Self::IPv6 => "IPv6",
            Self::Other(other) => other,
        }
    }

    pub fn includes(&self, ip: IpAddr) -> bool {
        match self {
            Self::IPv4 => ip.is_ipv4(),
            Self::IPv6 => ip.is_ipv6(),
            Self::Other(_) => false,
        }
    }
}

impl fmt::Display for AddressType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for AddressType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for AddressType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Text::deserialize(deserializer).map(|text| Self::parse(&text))
    }
}

pub trait Referent {
    fn name(&self) -> (&str, &str);

    fn uid(&self) -> Uid;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub key: Key,
    pub uid: Uid,
    /// Whether the reference is to a pod and has no other field than an operator writes, except a resourceVersion.
    pub is_pod: bool,
}

impl Referent for Target {
    fn name(&self) -> (&str, &str) {
        (self.key.namespace(), self.key.name())
    }

    fn uid(&self) -> Uid {
        self.uid
    }
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawTarget<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    namespace: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    uid: Uid,
    #[serde(borrow, skip_serializing)]
    api_version: Cow<'a, str>,
    #[serde(borrow, skip_serializing)]
    field_path: Cow<'a, str>,
}

impl Serialize for Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw = RawTarget {
            kind: "Pod".into(),
            namespace: self.key.namespace().into(),
            name: self.key.name().into(),
            uid: self.uid,
            ..RawTarget::default()
        };
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawTarget::deserialize(deserializer)?;
        let is_pod = raw.kind == "Pod" && raw.api_version.is_empty() && raw.field_path.is_empty();
        Ok(Self { key: Key::new(&raw.namespace, &raw.name), uid: raw.uid, is_pod })
    }
}

/// Parse an IP in every form that the API has ever allowed, such as leading zeros or an IPv4-mapped IPv6 address.
///
/// Upstream: `ParseIPSloppy`, `k8s.io/utils/net`.
pub fn parse_ip(text: &str) -> Option<IpAddr> {
    let ip: Option<IpAddr> = text.parse().ok();
    ip.or_else(|| {
        let part = |part: &str| part.parse::<u8>().ok().filter(|_| !part.starts_with('+'));
        let parts: Vec<u8> = text.split('.').map(part).collect::<Option<_>>()?;
        <[u8; 4]>::try_from(parts).ok().map(IpAddr::from)
    })
    .map(|ip| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn irregular_ips_are_read() {
        let read = |text: &str| parse_ip(text).map(|ip| ip.to_string());
        assert_eq!(read("010.000.1.2").as_deref(), Some("10.0.1.2"));
        assert_eq!(read("1234::5678:0000:0000:9abc:def0").as_deref(), Some("1234::5678:0:0:9abc:def0"));
        assert_eq!(read("::ffff:1.2.3.4").as_deref(), Some("1.2.3.4"));
        for wrong in ["", "1.2.3", "1.2.3.256", "a.b.c.d", "...", "1.2.3.+4"] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }
}
