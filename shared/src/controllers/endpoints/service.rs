//! Services, as far as all who list their pods see them: what selects, their ports, and whether they have an IP.
//!
//! Left out: the view of a Service itself, which each of them has for its own needs.

use std::net::IpAddr;

use serde::Deserialize;

use super::pod::NamedPort;
use crate::api::intern::Text;
use crate::api::labels::Labels;
use crate::api::object::Kind;

/// A view of a Service that selects pods.
pub trait Selecting: Kind {
    /// Which pods are its; none if it has no selector. The API has no empty one: it becomes none on its way.
    fn selector(&self) -> Option<&Labels>;

    /// Whether another state of this Service asks for the same.
    fn asks_for_the_same(&self, other: &Self) -> bool;
}

/// A Service's own IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterIp {
    /// It has none, and will have none or none yet.
    #[default]
    Absent,
    /// One of IPv4, or one that cannot be read.
    V4,
    /// One of IPv6.
    V6,
}

impl ClusterIp {
    /// Reads `spec.clusterIP`.
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

/// One port of a Service, as far as its endpoints need it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    /// Its name, `""` if it has none.
    pub name: Text,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: Text,
    /// The application protocol.
    pub app_protocol: Option<Text>,
    /// The pods' port.
    pub target_port: TargetPort,
}

/// A port of pods.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum TargetPort {
    /// The same for all of them.
    Number(i32),
    /// The name of a container port, whose number may differ from pod to pod.
    Name(Text),
}

impl Default for TargetPort {
    fn default() -> Self {
        Self::Number(0)
    }
}

/// The number of the port that a pod with these named ports has for a Service's port.
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
