//! One endpoint, and the ports, labels and annotations of a slice.
//!
//! Upstream: `pkg/controller/endpointslicemirroring/utils.go`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use shared::api::intern::Text;
use shared::api::labels::Labels;
use shared::controllers::endpoints::address::parse_ip;
use shared::controllers::endpoints::label_changes;
use shared::controllers::endpoints::slice::in_order;

use crate::objects::{
    Address, AddressType, Addresses, Annotations, Conditions, ENDPOINTS, Endpoint, EndpointPort, EndpointSlice,
    Endpoints, MANAGED_BY, Port, Reference, labels,
};

/// The identity of an endpoint: its IP, its host name, and the namespace and name of its target.
///
/// Upstream: `hashEndpoint`, `staging/src/k8s.io/endpointslice/util/endpointset.go`.
pub type EndpointKey = (IpAddr, Text, Text, Text);

/// The key of an endpoint; none unless its address is one IP, as this operator writes it.
pub fn endpoint_key(endpoint: &Endpoint) -> Option<EndpointKey> {
    let Addresses::Ip(ip) = endpoint.addresses else { return None };
    let Reference { namespace, name, .. } = endpoint.target.clone().unwrap_or_default();
    Some((ip, endpoint.hostname.clone().unwrap_or_default(), namespace, name))
}

/// The endpoint of an address, and its type; none if it is not an IP.
///
/// Upstream: `addressToEndpoint`.
pub fn address_to_endpoint(address: &Address, is_ready: bool) -> Option<(AddressType, Endpoint)> {
    let ip = parse_ip(&address.ip)?;
    let address_type = if ip.is_ipv4() { AddressType::IPv4 } else { AddressType::IPv6 };
    let endpoint = Endpoint {
        addresses: Addresses::Ip(ip),
        conditions: Conditions { ready: Some(is_ready), serving: None, terminating: None },
        hostname: address.hostname.clone().filter(|hostname| !hostname.is_empty()),
        target: address.target.clone(),
        node: address.node.clone(),
        zone: None,
        hints: None,
    };
    Some((address_type, endpoint))
}

/// The ports of a slice for the ports of a subset, in upstream's order.
///
/// Upstream: `epPortsToEpsPorts`.
pub fn endpoint_ports(ports: &[Port]) -> Vec<EndpointPort> {
    let ports = ports.iter().map(|Port { name, port, protocol, app_protocol }| EndpointPort {
        name: Some(name.clone()),
        protocol: Some(protocol.clone()),
        port: Some(*port),
        app_protocol: app_protocol.clone(),
    });
    in_order(ports.collect())
}

/// The labels of the slices of Endpoints.
///
/// Upstream: `newEndpointSlice`.
pub fn slice_labels(endpoints: &Endpoints) -> Labels {
    let reserved = [(labels::SERVICE_NAME, endpoints.metadata.name()), (labels::MANAGED_BY, MANAGED_BY)];
    Labels::new(endpoints.metadata.labels.iter().chain(reserved))
}

/// The changes that give a slice the annotations of its Endpoints and no others; `None` removes one.
pub fn annotation_changes(own: &Annotations, wanted: &Labels) -> BTreeMap<Text, Option<Text>> {
    let mut changes = label_changes(&own.mirrored, wanted);
    changes.extend(own.others.iter().map(|key| (key.clone(), None)));
    changes
}

/// Whether the owner of a slice is a deleted predecessor of the Endpoints.
///
/// Upstream: `needRebuildExistingSlices`, `reconciler.go`, which checks every owner.
pub fn is_of_former(slice: &EndpointSlice, endpoints: &Endpoints) -> bool {
    slice.metadata.controller.as_ref().is_some_and(|owner| {
        *owner.kind == *ENDPOINTS.kind
            && *owner.name == *endpoints.metadata.name()
            && owner.uid != endpoints.metadata.uid
    })
}
