//! Upstream's order of subsets and of their ports.
//!
//! Upstream: `pkg/api/v1/endpoints/util.go`.

use std::fmt::Write;

use shared::api::hash::fnv1a_128;
use shared::api::intern::Text;
pub use shared::controllers::endpoints::subset::Part;
use shared::controllers::endpoints::subset::{self, parts};

use crate::objects::{Address, Port, Subset};

/// Group parts into subsets in canonical form.
///
/// Upstream: `RepackSubsets`.
pub fn pack<'a>(parts: impl IntoIterator<Item = Part<'a>>) -> Vec<Subset> {
    let mut subsets = subset::pack(parts);
    for subset in &mut subsets {
        subset.ports = sorted(std::mem::take(&mut subset.ports), printed_port);
    }
    sorted(subsets, printed_subset)
}

pub fn repack(subsets: &[Subset]) -> Vec<Subset> {
    pack(parts(subsets))
}

/// Sort by a hash of the text in Go, as upstream does, so that Endpoints of both compare.
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
