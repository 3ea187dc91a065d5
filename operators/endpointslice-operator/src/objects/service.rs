//! The view of a Service: its selector, its ports, and the fields that shape its slices.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess};
use serde::{Deserialize, Deserializer};
use shared::api::intern::Text;
use shared::api::labels::Labels;
use shared::api::object::Meta;
use shared::controllers::endpoints::service::Selecting;
pub use shared::controllers::endpoints::service::{ClusterIp, ServicePort, TargetPort};

use super::{AddressType, SERVICES, annotations};

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawService")]
pub struct Service {
    pub metadata: Meta<TopologyMode>,
    /// Whether its type is `ExternalName`.
    pub is_external_name: bool,
    /// Its selector; none if it is missing or empty.
    pub selector: Option<Labels>,
    pub ports: Box<[ServicePort]>,
    pub cluster_ip: ClusterIp,
    /// The known families in `spec.ipFamilies`.
    pub ip_families: Box<[AddressType]>,
    pub publishes_not_ready: bool,
    pub traffic_distribution: Option<Text>,
}

impl Service {
    /// The selector, if the Service gets slices.
    ///
    /// Upstream: `syncService`, `pkg/controller/endpointslice/endpointslice_controller.go`.
    pub fn selects(&self) -> Option<&Labels> {
        self.selector.as_ref().filter(|_| !self.is_external_name)
    }

    /// Whether another state of this Service leads to the same slices.
    pub fn asks_for_the_same(&self, other: &Self) -> bool {
        let Self {
            metadata,
            is_external_name,
            selector,
            ports,
            cluster_ip,
            ip_families,
            publishes_not_ready,
            traffic_distribution,
        } = self;
        let meta = |meta: &Meta<TopologyMode>| (meta.labels.clone(), meta.annotations, meta.deletion);
        meta(metadata) == meta(&other.metadata)
            && (is_external_name, selector, ports, cluster_ip)
                == (&other.is_external_name, &other.selector, &other.ports, &other.cluster_ip)
            && (ip_families, publishes_not_ready, traffic_distribution)
                == (&other.ip_families, &other.publishes_not_ready, &other.traffic_distribution)
    }
}

shared::view!(Service, SERVICES, TopologyMode);

impl Selecting for Service {
    fn selector(&self) -> Option<&Labels> {
        self.selector.as_ref()
    }

    fn asks_for_the_same(&self, other: &Self) -> bool {
        self.asks_for_the_same(other)
    }
}

/// Whether the annotations ask for hints.
///
/// Upstream: `hintsEnabled`, `staging/src/k8s.io/endpointslice/utils.go`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopologyMode {
    /// Whether the value is `Auto` or `auto`.
    pub is_auto: bool,
}

impl<'de> Deserialize<'de> for TopologyMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = TopologyMode;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("annotations")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TopologyMode, A::Error> {
                let (mut hints, mut mode) = (None, None);
                while let Some(Str(key)) = map.next_key()? {
                    let is_auto = match key.as_ref() {
                        annotations::TOPOLOGY_AWARE_HINTS => &mut hints,
                        annotations::TOPOLOGY_MODE => &mut mode,
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    let Str(value) = map.next_value()?;
                    *is_auto = Some(value == "Auto" || value == "auto");
                }
                Ok(TopologyMode { is_auto: hints.or(mode).unwrap_or(false) })
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

#[derive(Deserialize)]
struct Str<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct RawService {
    metadata: Meta<TopologyMode>,
    #[serde(default)]
    spec: RawSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    r#type: Text,
    selector: Labels,
    ports: Option<Box<[ServicePort]>>,
    #[serde(rename = "clusterIP")]
    cluster_ip: String,
    ip_families: Option<Vec<Text>>,
    publish_not_ready_addresses: bool,
    traffic_distribution: Option<Text>,
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
            ip_families: families.iter().filter_map(|family| AddressType::of_family(family)).collect(),
            publishes_not_ready: spec.publish_not_ready_addresses,
            traffic_distribution: spec.traffic_distribution,
        }
    }
}
