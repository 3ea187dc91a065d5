//! The addresses of a node: the cloud's, of which those come first that the kubelet was given, and the host name.
//!
//! Upstream: `staging/src/k8s.io/cloud-provider/controllers/node/node_controller.go`.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use cloud::NodeAddress;
use shared::api::list::list;
use shared::controllers::endpoints::address::parse_ip;
use shared::working::decisions::{self, LiveRead, Reasoned};

use super::{AddressReason, Config, Next, Question, text};
use crate::objects::LiveNode;
use crate::observe::{Instance, Observed};

const HOSTNAME: &str = "Hostname";
const NOT_A_PAIR: &str = "must contain either a single IP or a dual-stack pair of IPs";

#[derive(Clone, Debug, PartialEq)]
pub struct AddressPlan {
    pub change: Option<AddressChange>,
    /// When the provider is asked again.
    pub again: Option<Duration>,
    pub reason: AddressReason,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AddressChange {
    /// The state that is changed.
    pub node: Arc<LiveNode>,
    /// All of its addresses.
    pub addresses: Vec<NodeAddress>,
}

/// The next stage for the addresses of a node. While it is not initialized, [`super::next`] is about it.
///
/// Upstream: `UpdateNodeStatus`.
pub fn next_addresses(observed: &Observed, config: &Config) -> Next<AddressPlan> {
    let Observed { node, instance } = observed;
    let keep = |again, reason| AddressPlan { change: None, again, reason };
    let period = Some(config.period);
    Next::Execute(match instance {
        Instance::NotAsked if node.is_uninitialized => keep(None, AddressReason::Uninitialized),
        Instance::NotAsked => {
            return Next::Ask(LiveRead { step: "ask about its instance", reason: Question::Addresses });
        }
        Instance::Gone => keep(None, AddressReason::Gone),
        // The cache may never show this state, and so enqueue nothing when it is over.
        Instance::Known { node, metadata: _ } if node.is_uninitialized() => keep(period, AddressReason::Uninitialized),
        Instance::Known { node, metadata } => match wanted(node, &metadata.node_addresses) {
            Ok(None) => keep(period, AddressReason::Right),
            Ok(Some(addresses)) => {
                let change = Some(AddressChange { node: Arc::clone(node), addresses });
                AddressPlan { change, ..keep(period, AddressReason::Different) }
            }
            Err(error) => keep(period, AddressReason::InvalidIp { error }),
        },
        Instance::Unsaid => keep(period, AddressReason::Unsaid),
        Instance::NotFound => keep(period, AddressReason::NotFound),
        Instance::Later { after, message } => keep(Some(*after), AddressReason::Later { message: message.clone() }),
        Instance::NotSupported => keep(Some(cloud::REST), AddressReason::NotSupported),
    })
}

/// All addresses that the node should have; none if it has them, or the cloud has none.
///
/// Upstream: `updateNodeAddress`.
pub fn wanted(node: &LiveNode, cloud: &[NodeAddress]) -> Result<Option<Vec<NodeAddress>>, String> {
    if cloud.is_empty() {
        return Ok(None);
    }
    let is_hostname = |address: &&NodeAddress| address.type_ == HOSTNAME;
    let mut addresses = cloud.to_vec();
    if !cloud.iter().any(|address| is_hostname(&address)) {
        addresses.extend(node.addresses.iter().filter(is_hostname).cloned());
    }
    let addresses = matching(node, &addresses)?;
    Ok(has_changed(&node.addresses, &addresses).then_some(addresses))
}

/// The addresses that the kubelet was given first, and then those of other types.
///
/// Upstream: `GetNodeAddressesFromNodeIP`, `staging/src/k8s.io/cloud-provider/node/helpers/address.go`.
pub fn matching(node: &LiveNode, addresses: &[NodeAddress]) -> Result<Vec<NodeAddress>, String> {
    let Some(provided) = &node.metadata.annotations.provided_ip else { return Ok(addresses.to_vec()) };
    let ips = node_ips(provided).map_err(|error| format!("failed to parse node IP {provided:?}: {error}"))?;
    let mut matched: Vec<NodeAddress> = Vec::new();
    for ip in ips {
        let before = matched.len();
        matched.extend(addresses.iter().filter(|address| parse_ip(&address.address) == Some(ip)).cloned());
        if matched.len() == before {
            return Err(format!("failed to get node address from cloud provider that matches ip: {ip}"));
        }
    }
    let is_other = |address: &&NodeAddress| !matched.iter().any(|own| own.type_ == address.type_);
    let others: Vec<NodeAddress> = addresses.iter().filter(is_other).cloned().collect();
    Ok([matched, others].concat())
}

/// Upstream: `ParseNodeIPAnnotation`, `staging/src/k8s.io/component-helpers/node/util/ips.go`.
fn node_ips(text: &str) -> Result<Vec<IpAddr>, String> {
    let read = |ip: &str| parse_ip(ip).ok_or_else(|| format!("could not parse {ip:?}"));
    let ips: Vec<IpAddr> = text.split(',').map(read).collect::<Result<_, _>>()?;
    match &ips[..] {
        [a, b] if a.is_ipv4() == b.is_ipv4() => Err(NOT_A_PAIR.to_owned()),
        [a, b] if a.is_unspecified() || b.is_unspecified() => {
            Err("dual-stack node IP cannot include '0.0.0.0' or '::'".to_owned())
        }
        [_] | [_, _] => Ok(ips),
        _ => Err(NOT_A_PAIR.to_owned()),
    }
}

/// Whether the addresses of a type have changed, or their order, of which the first is a node's own.
///
/// Upstream: `nodeAddressesChangeDetected`, which compares the last address of each type.
pub fn has_changed(old: &[NodeAddress], new: &[NodeAddress]) -> bool {
    by_type(old) != by_type(new)
}

/// Those of one type keep their order.
fn by_type(addresses: &[NodeAddress]) -> Vec<&NodeAddress> {
    let mut sorted: Vec<&NodeAddress> = addresses.iter().collect();
    sorted.sort_by(|a, b| a.type_.cmp(&b.type_));
    sorted
}

impl Reasoned for AddressPlan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

impl fmt::Display for AddressPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { change, again: _, reason } = self;
        match change {
            None => write!(f, "keep addresses ({reason})"),
            Some(AddressChange { node: _, addresses }) => {
                write!(f, "set addresses {} ({reason})", list(addresses, text))
            }
        }
    }
}
