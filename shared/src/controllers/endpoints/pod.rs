//! The view of a pod: its addresses, its node, its readiness, and its named ports.
//!
//! The cache may hold every pod of the cluster, so pods share equal texts and equal lists of ports.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use super::address::parse_ip;
use crate::api::intern::{Interner, Text};
use crate::api::object::Meta;
use crate::api::pod::Phase;
use crate::api::pod::container::is_sidecar;
use crate::api::resource::PODS;
use crate::api::time::Time;
use serde::{Deserialize, Deserializer};

#[derive(Debug, PartialEq)]
pub struct Pod {
    pub metadata: Meta,
    /// `spec.nodeName`; `""` if it is not scheduled.
    pub node: Text,
    /// Its host name, if it has both a hostname and a subdomain.
    pub host: Option<Box<Host>>,
    /// The named ports of its containers, then of its sidecars.
    pub ports: PodPorts,
    /// `status.podIPs`, without invalid ones.
    pub ips: Box<[IpAddr]>,
    /// Whether its status has any IP, valid or not.
    pub has_ip: bool,
    /// Whether its phase is `Succeeded` or `Failed`.
    pub has_ended: bool,
    pub is_ready: bool,
    /// The last transition of that condition.
    pub ready_changed: Option<Time>,
}

impl Pod {
    /// Whether it is listed, ready or not.
    ///
    /// Upstream: `ShouldPodBeInEndpoints`, `staging/src/k8s.io/endpointslice/util/controller_utils.go`.
    pub const fn is_listed(&self) -> bool {
        !self.has_ended && self.has_ip
    }

    /// Its host name within the Service of this name.
    ///
    /// Upstream: `ShouldSetHostname`, `controller_utils.go`.
    pub fn hostname_in(&self, service: &str) -> Option<Text> {
        self.host.as_ref().filter(|host| *host.subdomain == *service).map(|host| host.name.clone())
    }
}

/// `spec.hostname` and `spec.subdomain`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pub name: Text,
    pub subdomain: Text,
}

crate::view!(Pod, PODS);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamedPort {
    pub name: Text,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: Text,
    pub number: i32,
}

/// The named ports of a pod; pods with equal ports share one allocation.
pub type PodPorts = Arc<Vec<NamedPort>>;

static PORTS: LazyLock<Interner<Vec<NamedPort>>> = LazyLock::new(Interner::new);

#[derive(Deserialize)]
struct Raw<'a> {
    metadata: Meta,
    #[serde(borrow, default)]
    spec: RawSpec<'a>,
    #[serde(borrow, default)]
    status: RawStatus<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec<'a> {
    node_name: Text,
    hostname: Text,
    subdomain: Text,
    #[serde(borrow)]
    containers: Option<Vec<RawContainer<'a>>>,
    #[serde(borrow)]
    init_containers: Option<Vec<RawContainer<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawContainer<'a> {
    ports: Option<Vec<RawPort>>,
    #[serde(borrow)]
    restart_policy: Cow<'a, str>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawPort {
    name: Text,
    protocol: Text,
    container_port: i32,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus<'a> {
    phase: Phase,
    #[serde(borrow)]
    conditions: Option<Vec<RawCondition<'a>>>,
    #[serde(borrow, rename = "podIP")]
    pod_ip: Cow<'a, str>,
    #[serde(borrow, rename = "podIPs")]
    pod_ips: Option<Vec<RawIp<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawCondition<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    status: Cow<'a, str>,
    last_transition_time: Option<Time>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawIp<'a> {
    #[serde(borrow)]
    ip: Cow<'a, str>,
}

impl<'de> Deserialize<'de> for Pod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Raw { metadata, spec, status } = Raw::deserialize(deserializer)?;
        let ready = status.conditions.iter().flatten().find(|condition| condition.r#type == "Ready");
        let has_host = !spec.hostname.is_empty() && !spec.subdomain.is_empty();
        Ok(Self {
            metadata,
            ports: named_ports(&spec),
            node: spec.node_name,
            host: has_host.then(|| Box::new(Host { name: spec.hostname, subdomain: spec.subdomain })),
            ips: status.pod_ips.iter().flatten().filter_map(|ip| parse_ip(&ip.ip)).collect(),
            has_ip: !status.pod_ip.is_empty() || status.pod_ips.is_some_and(|ips| !ips.is_empty()),
            has_ended: status.phase.is_terminal(),
            is_ready: ready.is_some_and(|ready| ready.status == "True"),
            ready_changed: ready.and_then(|ready| ready.last_transition_time),
        })
    }
}

fn named_ports(spec: &RawSpec<'_>) -> PodPorts {
    let sidecars = spec.init_containers.iter().flatten().filter(|container| is_sidecar(&container.restart_policy));
    let ports = spec.containers.iter().flatten().chain(sidecars).flat_map(|container| container.ports.iter().flatten());
    let named = ports.filter(|port| !port.name.is_empty()).map(|port| NamedPort {
        name: port.name.clone(),
        protocol: port.protocol.clone(),
        number: port.container_port,
    });
    PORTS.intern_owned(named.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_takes_at_most_two_hundred_bytes_besides_what_is_shared() {
        assert!(size_of::<Pod>() <= 200, "{}", size_of::<Pod>());
    }
}
