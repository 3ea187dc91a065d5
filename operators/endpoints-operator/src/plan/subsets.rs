//! The addresses of a Service: one of each selected pod, up to a limit.
//!
//! Upstream: `pkg/controller/endpoint/endpoints_controller.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use shared::api::intern::Text;
use shared::controllers::endpoints::pod::PodPorts;
use shared::controllers::endpoints::service::find_port;

use super::util::{Part, pack};
use crate::objects::{Address, AddressType, ClusterIp, Pod, Port, Service, Subset, Target};

/// The limit of addresses in Endpoints.
///
/// Upstream: `maxCapacity`.
pub const MAX_CAPACITY: usize = 1000;

/// All addresses of a Service.
///
/// Upstream: `syncService`.
pub fn subsets_of(service: &Service, pods: &[Arc<Pod>]) -> Vec<Subset> {
    // Pods of one template have equal ports.
    let mut ports: BTreeMap<&PodPorts, Vec<Port>> = BTreeMap::new();
    let mut listed: Vec<(&Arc<Pod>, Address)> = Vec::new();
    for pod in pods.iter().filter(|pod| is_meant(service, pod)) {
        if let Some(address) = address_of(service, pod) {
            ports.entry(&pod.ports).or_insert_with(|| ports_of(service, pod));
            listed.push((pod, address));
        }
    }
    // DNS of a Service without an IP gives the addresses of its pods, with or without ports.
    let is_without = service.ports.is_empty() && service.cluster_ip == ClusterIp::Absent;
    pack(listed.iter().flat_map(|(pod, address)| {
        let is_ready = service.publishes_not_ready || pod.is_ready;
        let numbered = ports.get(&pod.ports).into_iter().flatten().map(Some);
        let all = numbered.chain(is_without.then_some(None));
        all.map(move |port| Part { address, port, is_ready })
    }))
}

/// Whether a pod is listed, ready or not.
///
/// Upstream: `ShouldPodBeInEndpoints`, `staging/src/k8s.io/endpointslice/util/controller_utils.go`.
pub fn is_meant(service: &Service, pod: &Pod) -> bool {
    pod.is_listed() && (service.publishes_not_ready || !pod.metadata.is_being_deleted())
}

/// The address of a pod; none if it has no IP of the Service's family.
///
/// Upstream: `podToEndpointAddressForService`.
pub fn address_of(service: &Service, pod: &Pod) -> Option<Address> {
    let is_v6 = match (&service.family, service.cluster_ip) {
        (Some(family), _) => *family == AddressType::IPv6,
        // An old apiserver sets no families.
        (None, ClusterIp::V4) => false,
        (None, ClusterIp::V6) => true,
        (None, ClusterIp::Absent) => pod.ips.first()?.is_ipv6(),
    };
    let ip = pod.ips.iter().find(|ip| ip.is_ipv6() == is_v6)?;
    Some(Address {
        ip: Text::new(&ip.to_string()),
        hostname: pod.hostname_in(service.metadata.name()),
        node: Some(pod.node.clone()),
        target: Some(Target { key: pod.metadata.key.clone(), uid: pod.metadata.uid, is_pod: true }),
    })
}

/// The ports of the Service that the pod has.
///
/// Upstream: `endpointPortFromServicePort`.
fn ports_of(service: &Service, pod: &Pod) -> Vec<Port> {
    let ports = service.ports.iter().filter_map(|port| {
        Some(Port {
            name: port.name.clone(),
            port: find_port(port, &pod.ports)?,
            protocol: port.protocol.clone(),
            app_protocol: port.app_protocol.clone(),
        })
    });
    ports.collect()
}

pub fn count(subsets: &[Subset]) -> (usize, usize) {
    let ready = subsets.iter().map(|subset| subset.addresses.len()).sum();
    (ready, subsets.iter().map(|subset| subset.not_ready_addresses.len()).sum())
}

/// Remove the addresses above the limit, from each subset its share, those that are not ready first. Gives their number.
///
/// Upstream: `truncateEndpoints`.
pub fn truncate(subsets: &mut [Subset]) -> usize {
    let (ready, not_ready) = count(subsets);
    let Some(too_many @ 1..) = (ready + not_ready).checked_sub(MAX_CAPACITY) else { return 0 };
    let cuts_ready = ready > MAX_CAPACITY;
    let (room, total) = if cuts_ready { (MAX_CAPACITY, ready) } else { (MAX_CAPACITY - ready, not_ready) };
    let mut left = room;
    for subset in subsets {
        if cuts_ready {
            subset.not_ready_addresses.clear();
        }
        let addresses = if cuts_ready { &mut subset.addresses } else { &mut subset.not_ready_addresses };
        addresses.truncate(share(addresses.len(), total, room).min(left));
        left -= addresses.len();
    }
    too_many
}

/// The share of the room for this part of the total, rounded up as upstream's floating point arithmetic does.
fn share(part: usize, total: usize, room: usize) -> usize {
    let float = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    let exact = (part * room).div_ceil(total);
    exact + usize::from(float(part) / float(total) * float(room) > float(exact))
}
