//! The address types, ports and labels of a Service's slices, and the endpoint of one pod.
//!
//! Upstream: `staging/src/k8s.io/endpointslice/utils.go`.

use shared::api::intern::Text;
use shared::api::labels::Labels;
pub use shared::controllers::endpoints::service::find_port;
pub use shared::controllers::endpoints::slice::in_order;

use crate::objects::{
    AddressType, Addresses, ClusterIp, Conditions, Endpoint, EndpointPort, EndpointSlice, MANAGED_BY, NamedPort, Pod,
    Service, Target, labels,
};

/// The address types of a Service, IPv4 first.
///
/// Upstream: `getAddressTypesForService`.
pub fn address_types(service: &Service) -> Vec<AddressType> {
    let mut types = service.ip_families.to_vec();
    if types.is_empty() {
        // An old apiserver sets no families. A Service without an IP may have both.
        types = match service.cluster_ip {
            ClusterIp::V4 => vec![AddressType::IPv4],
            ClusterIp::V6 => vec![AddressType::IPv6],
            ClusterIp::Absent => vec![AddressType::IPv4, AddressType::IPv6],
        };
    }
    types.sort_unstable();
    types.dedup();
    types
}

/// The ports of a pod with these named ports, in upstream's order. A port that the pod does not have is left out.
///
/// Upstream: `getEndpointPorts`.
pub fn endpoint_ports(service: &Service, named: &[NamedPort]) -> Vec<EndpointPort> {
    let ports = service.ports.iter().filter_map(|port| {
        Some(EndpointPort {
            name: Some(port.name.clone()),
            protocol: Some(port.protocol.clone()),
            port: Some(find_port(port, named)?),
            app_protocol: port.app_protocol.clone(),
        })
    });
    in_order(ports.collect())
}

/// The endpoint of a pod in this zone; none if the pod has no address of this type.
///
/// Upstream: `podToEndpoint`.
pub fn pod_to_endpoint(
    service: &Service,
    address_type: &AddressType,
    pod: &Pod,
    zone: Option<&Text>,
) -> Option<Endpoint> {
    let addresses = Addresses::of(pod.ips.iter().copied().filter(|ip| address_type.includes(*ip)))?;
    let (serving, terminating) = (pod.is_ready, pod.metadata.is_being_deleted());
    let ready = service.publishes_not_ready || (serving && !terminating);
    Some(Endpoint {
        addresses,
        conditions: Conditions { ready: Some(ready), serving: Some(serving), terminating: Some(terminating) },
        hostname: pod.hostname_in(service.metadata.name()),
        target: Some(Target { key: pod.metadata.key.clone(), uid: pod.metadata.uid, is_pod: true }),
        node: Some(&pod.node).filter(|node| !node.is_empty()).cloned(),
        zone: zone.cloned(),
        hints: None,
    })
}

/// The labels of a Service's slices: those of the Service, and the reserved ones.
///
/// Upstream: `setEndpointSliceLabels`.
pub fn slice_labels(service: &Service) -> Labels {
    let own = unreserved(&service.metadata.labels);
    let headless = (service.cluster_ip == ClusterIp::Absent).then_some((labels::HEADLESS, ""));
    let reserved = [(labels::SERVICE_NAME, service.metadata.name()), (labels::MANAGED_BY, MANAGED_BY)];
    Labels::new(own.chain(headless).chain(reserved))
}

/// Whether a slice has other labels than its Service, except for reserved ones.
///
/// Upstream: `setEndpointSliceLabels`.
pub fn labels_differ(slice: &EndpointSlice, service: &Service) -> bool {
    !unreserved(&slice.metadata.labels).eq(unreserved(&service.metadata.labels))
}

fn unreserved(own: &Labels) -> impl Iterator<Item = (&str, &str)> {
    own.iter().filter(|(key, _)| !labels::is_reserved(key))
}
