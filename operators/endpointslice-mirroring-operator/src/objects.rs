//! The views of Services, Endpoints and EndpointSlices, and the keys and values that this operator reads and writes.

mod annotations;
pub mod reference;

use serde::Deserialize;
use shared::api::labels::Labels;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::Resource;
pub use shared::controllers::endpoints::address::AddressType;
pub use shared::controllers::endpoints::slice::{Addresses, Conditions, ENDPOINT_SLICES, EndpointPort};
pub use shared::controllers::endpoints::subset::Port;
use shared::controllers::endpoints::{LEADER, slice, subset};

pub use annotations::Annotations;
pub use reference::Reference;

/// Addresses with the same ports.
pub type Subset = subset::Subset<Reference>;
pub type Address = subset::Address<Reference>;
pub type EndpointSlice = slice::EndpointSlice<Annotations, Reference>;
pub type Endpoint = slice::Endpoint<Reference>;

/// `v1` `Endpoints`.
pub const ENDPOINTS: Resource = Resource::namespaced("", "v1", "Endpoints", "endpoints");
/// `v1` `Service`.
pub const SERVICES: Resource = Resource::namespaced("", "v1", "Service", "services");

/// The value of [`labels::MANAGED_BY`] on the slices of this controller.
pub const MANAGED_BY: &str = "endpointslicemirroring-controller.k8s.io";

pub mod labels {
    pub use shared::controllers::endpoints::slice::{MANAGED_BY, SERVICE_NAME};

    /// On Endpoints: `true` if they are not mirrored.
    pub const SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";
}

pub mod reasons {
    /// An address is not an IP.
    pub const INVALID_IP: &str = "InvalidIPAddress";
    /// A subset has more addresses than are mirrored.
    pub const TOO_MANY: &str = "TooManyAddressesToMirror";
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawService")]
pub struct Service {
    pub metadata: Meta,
    /// Whether it has a selector that is not empty.
    pub has_selector: bool,
}

shared::view!(Service, SERVICES);

#[derive(Deserialize)]
struct RawService {
    metadata: Meta,
    #[serde(default)]
    spec: RawSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawSpec {
    selector: Labels,
}

impl From<RawService> for Service {
    fn from(RawService { metadata, spec }: RawService) -> Self {
        Self { metadata, has_selector: !spec.selector.is_empty() }
    }
}

/// The addresses of the Service with the same key.
#[derive(Debug, PartialEq, Deserialize)]
pub struct Endpoints {
    pub metadata: Meta<Annotations>,
    /// The addresses, grouped by ports.
    #[serde(default, deserialize_with = "null_as_default")]
    pub subsets: Vec<Subset>,
}

shared::view!(Endpoints, ENDPOINTS, Annotations);

impl Endpoints {
    /// Whether their label excludes them from mirroring.
    ///
    /// Upstream: `skipMirror`, `pkg/controller/endpointslicemirroring/utils.go`.
    pub fn is_to_be_skipped(&self) -> bool {
        self.metadata.labels.get(labels::SKIP_MIRROR) == Some("true")
    }

    /// Whether they are the lock of an election.
    ///
    /// Upstream: `hasLeaderElection`, `utils.go`.
    pub fn is_lock(&self) -> bool {
        self.metadata.annotations.mirrored.get(LEADER).is_some()
    }

    /// Whether they are mirrored if their Service has no selector.
    ///
    /// Upstream: `shouldMirror`, `endpointslicemirroring_controller.go`.
    pub fn is_meant(&self) -> bool {
        !self.is_to_be_skipped() && !self.is_lock()
    }

    /// Whether another state of them leads to the same slices.
    pub fn asks_for_the_same(&self, other: &Self) -> bool {
        let Self { metadata, subsets } = self;
        let meta = |meta: &Meta<Annotations>| {
            (meta.uid, meta.labels.clone(), meta.annotations.mirrored.clone(), meta.is_being_deleted())
        };
        meta(metadata) == meta(&other.metadata) && *subsets == other.subsets
    }
}
