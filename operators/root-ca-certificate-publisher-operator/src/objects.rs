//! The views: the metadata of active namespaces, and the published CA of each ConfigMap `kube-root-ca.crt`.
//!
//! The text of the CA is interned, so that it is in memory once and not once per namespace.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shared::api::intern::Text;
use shared::api::object::Meta;

pub use shared::api::namespace::Namespace;
pub use shared::api::resource::CONFIG_MAPS;

/// The ConfigMap that every namespace has. Upstream: `RootCACertConfigMapName`.
pub const ROOT_CA_CONFIG_MAP: &str = "kube-root-ca.crt";
pub const CA_CERT: &str = "ca.crt";
/// The annotation that describes its purpose. Upstream: `DescriptionAnnotation`.
pub const DESCRIPTION_ANNOTATION: &str = "kubernetes.io/description";
/// The annotation's value. Upstream: `Description`.
pub const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
    endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
    distributions of Kubernetes clusters.";

/// A ConfigMap called [`ROOT_CA_CONFIG_MAP`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "RawConfigMap")]
pub struct ConfigMap {
    pub metadata: Meta<Described>,
    /// The published CA; none unless [`CA_CERT`] is its only key.
    pub ca: Option<Text>,
}

/// Whether the annotation [`DESCRIPTION_ANNOTATION`] has a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "RawAnnotations")]
pub struct Described(pub bool);

shared::view!(ConfigMap, CONFIG_MAPS, Described);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Fault {
    /// Its data is anything but the CA.
    Data,
    Description,
}

impl ConfigMap {
    /// Its fault, if it should publish this CA.
    pub fn fault(&self, ca: &Text) -> Option<Fault> {
        if self.ca.as_ref() != Some(ca) {
            Some(Fault::Data)
        } else if !self.metadata.annotations.0 {
            Some(Fault::Description)
        } else {
            None
        }
    }
}

#[derive(Deserialize)]
struct RawConfigMap {
    metadata: Meta<Described>,
    data: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct RawAnnotations {
    #[serde(rename = "kubernetes.io/description", default)]
    description: String,
}

impl From<RawAnnotations> for Described {
    fn from(RawAnnotations { description }: RawAnnotations) -> Self {
        Self(!description.is_empty())
    }
}

impl From<RawConfigMap> for ConfigMap {
    fn from(RawConfigMap { metadata, data }: RawConfigMap) -> Self {
        let data = data.unwrap_or_default();
        let ca = data.get(CA_CERT).filter(|_| data.len() == 1).map(|ca| Text::new(ca));
        Self { metadata, ca }
    }
}
