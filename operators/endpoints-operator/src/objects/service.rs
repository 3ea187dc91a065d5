//! The view of a Service: its selector, its ports, and the fields that shape its Endpoints.

use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::labels::Labels;
use shared::api::object::{Meta, null_as_default};
use shared::controllers::endpoints::service::Selecting;

use super::{AddressType, ClusterIp, SERVICES, ServicePort};

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawService")]
pub struct Service {
    pub metadata: Meta,
    /// Whether its type is `ExternalName`.
    pub is_external_name: bool,
    /// Its selector; none if it is missing or empty.
    pub selector: Option<Labels>,
    pub ports: Box<[ServicePort]>,
    pub cluster_ip: ClusterIp,
    /// Its first IP family, if it is known. Endpoints list one address of each pod.
    pub family: Option<AddressType>,
    /// Whether every pod counts as ready, even while it terminates.
    pub publishes_not_ready: bool,
}

impl Service {
    /// The selector, if the Service gets Endpoints.
    ///
    /// Upstream: `syncService`, `pkg/controller/endpoint/endpoints_controller.go`.
    pub fn selects(&self) -> Option<&Labels> {
        self.selector.as_ref().filter(|_| !self.is_external_name)
    }
}

shared::view!(Service, SERVICES);

impl Selecting for Service {
    fn selector(&self) -> Option<&Labels> {
        self.selector.as_ref()
    }

    fn asks_for_the_same(&self, other: &Self) -> bool {
        let Self { metadata, is_external_name, selector, ports, cluster_ip, family, publishes_not_ready } = self;
        metadata.labels == other.metadata.labels
            && (is_external_name, selector, ports) == (&other.is_external_name, &other.selector, &other.ports)
            && (cluster_ip, family, publishes_not_ready)
                == (&other.cluster_ip, &other.family, &other.publishes_not_ready)
    }
}

#[derive(Deserialize)]
struct RawService {
    metadata: Meta,
    #[serde(default)]
    spec: RawSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    r#type: Text,
    selector: Labels,
    ports: Option<Box<[ServicePort]>>,
    #[serde(rename = "clusterIP", deserialize_with = "null_as_default")]
    cluster_ip: String,
    ip_families: Option<Vec<Text>>,
    publish_not_ready_addresses: bool,
}

impl From<RawService> for Service {
    fn from(RawService { metadata, spec }: RawService) -> Self {
        let families = spec.ip_families.unwrap_or_default();
        Self {
            metadata,
            is_external_name: spec.r#type == "ExternalName",
            selector: Some(spec.selector).filter(|selector| !selector.is_empty()),
            ports: spec.ports.unwrap_or_default(),
            cluster_ip: ClusterIp::parse(&spec.cluster_ip),
            family: families.first().and_then(|family| AddressType::of_family(family)),
            publishes_not_ready: spec.publish_not_ready_addresses,
        }
    }
}
