//! The views of Services, pods, nodes and EndpointSlices, and the keys and values that this operator reads and writes.

pub mod node;
pub mod service;

use shared::api::resource::Resource;
pub use shared::controllers::endpoints::address::{AddressType, Target};
pub use shared::controllers::endpoints::slice::{Addresses, Conditions, ENDPOINT_SLICES, EndpointPort, Hints};
pub use shared::controllers::endpoints::{pod, slice};

pub use node::Node;
pub use pod::{NamedPort, Pod};
pub use service::{ClusterIp, Service, ServicePort, TargetPort};

/// An EndpointSlice, without its annotations.
pub type EndpointSlice = slice::EndpointSlice;
pub type Endpoint = slice::Endpoint;

/// `v1` `Service`.
pub const SERVICES: Resource = Resource::namespaced("", "v1", "Service", "services");

/// The value of [`labels::MANAGED_BY`] on the slices of this controller.
pub const MANAGED_BY: &str = "endpointslice-controller.k8s.io";

pub mod labels {
    pub use shared::controllers::endpoints::HEADLESS;
    pub use shared::controllers::endpoints::slice::{MANAGED_BY, SERVICE_NAME};

    /// On a node: its zone.
    pub const ZONE: &str = "topology.kubernetes.io/zone";
    pub const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
    /// The old name of [`CONTROL_PLANE`].
    pub const MASTER: &str = "node-role.kubernetes.io/master";

    /// Whether this label is never copied from the Service.
    pub fn is_reserved(key: &str) -> bool {
        [SERVICE_NAME, MANAGED_BY, HEADLESS].contains(&key)
    }
}

pub mod annotations {
    pub use shared::controllers::endpoints::TRIGGER_TIME;

    /// On a Service: whether its endpoints get hints for zones.
    pub const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
    /// The old name of [`TOPOLOGY_MODE`]; takes precedence.
    pub const TOPOLOGY_AWARE_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
}

/// Values of a Service's `trafficDistribution`.
pub mod traffic_distribution {
    /// The old name of [`PREFER_SAME_ZONE`].
    pub const PREFER_CLOSE: &str = "PreferClose";
    pub const PREFER_SAME_ZONE: &str = "PreferSameZone";
    /// Endpoints of the client's node, then of its zone.
    pub const PREFER_SAME_NODE: &str = "PreferSameNode";
}

pub mod reasons {
    /// A write of slices failed, or a pod was left out.
    pub const FAILED_TO_UPDATE: &str = "FailedToUpdateEndpointSlices";
    pub const HINTS_ENABLED: &str = "TopologyAwareHintsEnabled";
    /// The endpoints have no hints any more, or cannot have any.
    pub const HINTS_DISABLED: &str = "TopologyAwareHintsDisabled";
}
