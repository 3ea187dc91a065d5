//! The views of Services, pods and Endpoints, and the exact texts that this operator reads and writes.
//!
//! Left out: every field that decides nothing here. Endpoints are changed by a patch, so what is not known of them
//! stays.

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

/// Addresses of the same ports.
pub type Subset = subset::Subset;
/// One address.
pub type Address = subset::Address;

/// `v1` `Endpoints`.
pub const ENDPOINTS: Resource = Resource::namespaced("", "v1", "Endpoints", "endpoints");
/// `v1` `Service`.
pub const SERVICES: Resource = Resource::namespaced("", "v1", "Service", "services");

/// The value of [`labels::MANAGED_BY`] on the Endpoints of this controller.
pub const MANAGED_BY: &str = "endpoint-controller";

/// Keys of labels.
pub mod labels {
    pub use shared::controllers::endpoints::HEADLESS;

    /// On Endpoints: their manager.
    pub const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";

    /// Whether the label of this key never comes from the Service's labels.
    pub fn is_reserved(key: &str) -> bool {
        [MANAGED_BY, HEADLESS].contains(&key)
    }
}

/// Keys of annotations.
pub mod annotations {
    pub use shared::controllers::endpoints::{LEADER, TRIGGER_TIME};

    /// On Endpoints: not all addresses are listed.
    pub const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
}

/// The value of [`annotations::OVER_CAPACITY`].
pub const TRUNCATED: &str = "truncated";

/// Reasons of events.
pub mod reasons {
    /// Endpoints could not be created.
    pub const FAILED_TO_CREATE: &str = "FailedToCreateEndpoint";
    /// Endpoints could not be changed.
    pub const FAILED_TO_UPDATE: &str = "FailedToUpdateEndpoint";
}
