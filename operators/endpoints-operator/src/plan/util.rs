//! Addresses and ports in upstream's canonical form: each address once for each port, ports of the same addresses
//! together, and all of it in an order that depends on nothing else.
//!
//! Left out: which addresses there are.
//!
//! Upstream: `pkg/api/v1/endpoints/util.go`.

use std::collections::BTreeMap;
use std::fmt::Write;

use shared::api::hash::fnv1a_128;
use shared::api::intern::Text;
use shared::api::object::Uid;

use crate::objects::{Address, Port, Subset};

/// One address on one port.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The address.
    pub address: &'a Address,
    /// The port; none where there are none.
    pub port: Option<&'a Port>,
    /// Whether it is ready there.
    pub is_ready: bool,
}

/// Two pods may have the same IP. Ordered as upstream's `LessEndpointAddress`.
type Id<'a> = (&'a str, Uid);

fn id(address: &Address) -> Id<'_> {
    (address.ip.as_str(), address.target.as_ref().map_or_else(Uid::default, |target| target.uid))
}

/// The canonical form of these.
///
/// Upstream: `RepackSubsets`.
pub fn pack<'a>(parts: impl IntoIterator<Item = Part<'a>>) -> Vec<Subset> {
    let mut addresses: BTreeMap<Id<'a>, &'a Address> = BTreeMap::new();
    let mut by_port: BTreeMap<Option<&'a Port>, BTreeMap<Id<'a>, bool>> = BTreeMap::new();
    for Part { address, port, is_ready } in parts {
        // Of an address that comes twice, the first counts.
        addresses.entry(id(address)).or_insert(address);
        // One that is ready and is not ready is not.
        *by_port.entry(port).or_default().entry(id(address)).or_insert(true) &= is_ready;
    }
    let mut by_addresses: BTreeMap<Vec<(Id<'a>, bool)>, Vec<Port>> = BTreeMap::new();
    for (port, ids) in by_port {
        let ports = by_addresses.entry(ids.into_iter().collect()).or_default();
        // A pod's port that has no number is as good as none.
        ports.extend(port.filter(|port| port.port > 0).cloned());
    }
    let subsets = by_addresses.into_iter().map(|(ids, ports)| {
        let of = |wanted: bool| -> Vec<Address> {
            let ids = ids.iter().filter(|(_, is_ready)| *is_ready == wanted);
            ids.filter_map(|(id, _)| addresses.get(id).copied()).cloned().collect()
        };
        Subset { addresses: of(true), not_ready_addresses: of(false), ports: sorted(ports, printed_port) }
    });
    sorted(subsets.collect(), printed_subset)
}

/// The canonical form of what somebody has written.
pub fn repack(subsets: &[Subset]) -> Vec<Subset> {
    pack(subsets.iter().flat_map(|subset| {
        let ready = subset.addresses.iter().map(|address| (address, true));
        let not_ready = subset.not_ready_addresses.iter().map(|address| (address, false));
        let addresses = ready.chain(not_ready);
        addresses.flat_map(move |(address, is_ready)| {
            let without = subset.ports.is_empty().then_some(None);
            let ports = subset.ports.iter().map(Some).chain(without);
            ports.map(move |port| Part { address, port, is_ready })
        })
    }))
}

/// In the order of a hash of how Go prints them: so Endpoints of both compare.
///
/// Upstream: `SortSubsets`.
fn sorted<T>(mut items: Vec<T>, printed: fn(&T) -> String) -> Vec<T> {
    if items.len() > 1 {
        items.sort_by_cached_key(|item| fnv1a_128(printed(item).into_bytes()));
    }
    items
}

fn printed_subset(subset: &Subset) -> String {
    let Subset { addresses, not_ready_addresses, ports } = subset;
    let mut text = String::from("(v1.EndpointSubset){");
    print_list(&mut text, "Addresses:([]v1.EndpointAddress)", addresses, print_address);
    print_list(&mut text, " NotReadyAddresses:([]v1.EndpointAddress)", not_ready_addresses, print_address);
    print_list(&mut text, " Ports:([]v1.EndpointPort)", ports, print_port);
    text.push('}');
    text
}

fn printed_port(port: &Port) -> String {
    let mut text = String::from("(v1.EndpointPort)");
    print_port(&mut text, port);
    text
}

fn print_list<T>(text: &mut String, name: &str, items: &[T], print: fn(&mut String, &T)) {
    text.push_str(name);
    if items.is_empty() {
        text.push_str("<nil>");
        return;
    }
    for (at, item) in items.iter().enumerate() {
        text.push(if at == 0 { '[' } else { ' ' });
        print(text, item);
    }
    text.push(']');
}

fn print_address(text: &mut String, Address { ip, hostname, node, target }: &Address) {
    let hostname = hostname.as_deref().unwrap_or_default();
    // Writing to a string does not fail.
    let _ = write!(text, "{{IP:(string){ip} Hostname:(string){hostname} NodeName:(*string){}", or_nil(node.as_ref()));
    text.push_str(" TargetRef:(*v1.ObjectReference)");
    match target {
        None => text.push_str("<nil>"),
        Some(target) => {
            let (namespace, name, uid) = (target.key.namespace(), target.key.name(), target.uid);
            let _ = write!(text, "{{Kind:(string)Pod Namespace:(string){namespace} Name:(string){name} ");
            let _ = write!(text, "UID:(types.UID){uid} ");
            text.push_str("APIVersion:(string) ResourceVersion:(string) FieldPath:(string)}");
        }
    }
    text.push('}');
}

fn print_port(text: &mut String, Port { name, port, protocol, app_protocol }: &Port) {
    let _ = write!(text, "{{Name:(string){name} Port:(int32){port} Protocol:(v1.Protocol){protocol} ");
    let _ = write!(text, "AppProtocol:(*string){}}}", or_nil(app_protocol.as_ref()));
}

fn or_nil(text: Option<&Text>) -> &str {
    text.map_or("<nil>", Text::as_str)
}
