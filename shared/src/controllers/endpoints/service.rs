//! What the views of a Service have in common: its selector, its ports and its cluster IP.

use std::net::IpAddr;

use serde::Deserialize;

use super::pod::NamedPort;
use crate::api::intern::Text;
use crate::api::labels::Labels;
use crate::api::object::Kind;

pub trait Selecting: Kind {
    /// Its selector; none if it is missing or empty.
    fn selector(&self) -> Option<&Labels>;

    /// Whether another state of this Service leads to the same addresses.
    fn asks_for_the_same(&self, other: &Self) -> bool;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterIp {
    /// None, or none yet.
    #[default]
    Absent,
    /// An IPv4 address, or an invalid one.
    V4,
    /// An IPv6 address.
    V6,
}

impl ClusterIp {
    /// Parse `spec.clusterIP`.
    pub fn parse(text: &str) -> Self {
        match text {
            "" | "None" => Self::Absent,
            ip => match ip.parse() {
                Ok(IpAddr::V6(_)) => Self::V6,
                Ok(IpAddr::V4(_)) | Err(_) => Self::V4,
            },
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    /// Its name; `""` if it has none.
    pub name: Text,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: Text,
    pub app_protocol: Option<Text>,
    pub target_port: TargetPort,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum TargetPort {
    /// The same number in all pods.
    Number(i32),
    /// The name of a container port; its number may differ between pods.
    Name(Text),
}

impl Default for TargetPort {
    fn default() -> Self {
        Self::Number(0)
    }
}

/// The number of the target port in a pod with these named ports.
///
/// Upstream: `FindPort`, `staging/src/k8s.io/endpointslice/utils.go`.
pub fn find_port(port: &ServicePort, named: &[NamedPort]) -> Option<i32> {
    match &port.target_port {
        TargetPort::Number(number) => Some(*number),
        TargetPort::Name(name) => {
            let mut named = named.iter();
            named.find(|named| named.name == *name && named.protocol == port.protocol).map(|named| named.number)
        }
    }
}
