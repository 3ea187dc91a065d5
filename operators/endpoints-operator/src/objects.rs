//! The views of Services, pods and Endpoints, and the keys and values that this operator reads and writes.

pub mod endpoints;
pub mod service;

use shared::api::resource::Resource;
pub use shared::controllers::endpoints::address::{AddressType, Target};
pub use shared::controllers::endpoints::pod::Pod;
pub use shared::controllers::endpoints::service::{ClusterIp, ServicePort};
use shared::controllers::endpoints::subset;
pub use shared::controllers::endpoints::subset::Port;

pub use endpoints::{Endpoints, EndpointsMetadata};
pub use service::Service;

/// Addresses with the same ports.
pub type Subset = subset::Subset;
pub type Address = subset::Address;

/// `v1` `Endpoints`.
pub const ENDPOINTS: Resource = Resource::namespaced("", "v1", "Endpoints", "endpoints");
/// `v1` `Service`.
pub const SERVICES: Resource = Resource::namespaced("", "v1", "Service", "services");

/// The value of [`labels::MANAGED_BY`] on the Endpoints of this controller.
pub const MANAGED_BY: &str = "endpoint-controller";

pub mod labels {
    pub use shared::controllers::endpoints::HEADLESS;

    /// On Endpoints: the controller that writes them.
    pub const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";

    /// Whether this label is never copied from the Service.
    pub fn is_reserved(key: &str) -> bool {
        [MANAGED_BY, HEADLESS].contains(&key)
    }
}

pub mod annotations {
    pub use shared::controllers::endpoints::{LEADER, TRIGGER_TIME};

    /// On Endpoints: addresses are left out.
    pub const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
}

/// The value of [`annotations::OVER_CAPACITY`].
pub const TRUNCATED: &str = "truncated";

pub mod reasons {
    pub const FAILED_TO_CREATE: &str = "FailedToCreateEndpoint";
    pub const FAILED_TO_UPDATE: &str = "FailedToUpdateEndpoint";
}
