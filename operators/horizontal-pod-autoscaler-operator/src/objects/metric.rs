//! A metric of an autoscaler: its source and its target.

use serde::{Deserialize, Serialize};
use shared::api::intern::Text;
use shared::api::object::null_as_default;
use shared::api::quantity::Quantity;
use shared::api::selector::LabelSelector;

use super::reference::Reference;

/// One of `spec.metrics`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "RawMetric")]
pub enum MetricSpec {
    Object { described_object: Reference, metric: MetricIdentifier, target: Target },
    Pods { metric: MetricIdentifier, target: Target },
    Resource { name: Text, target: Target },
    ContainerResource { name: Text, container: Text, target: Target },
    External { metric: MetricIdentifier, target: Target },
    Other(Text),
}

impl MetricSpec {
    /// `type`, which is also a label of upstream's metrics.
    pub fn type_name(&self) -> &str {
        match self {
            Self::Object { .. } => "Object",
            Self::Pods { .. } => "Pods",
            Self::Resource { .. } => "Resource",
            Self::ContainerResource { .. } => "ContainerResource",
            Self::External { .. } => "External",
            Self::Other(name) => name,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MetricIdentifier {
    pub name: Text,
    /// None for all series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Target {
    #[serde(rename = "type")]
    pub type_: TargetType,
    pub value: Option<Quantity>,
    pub average_value: Option<Quantity>,
    pub average_utilization: Option<i32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum TargetType {
    Utilization,
    Value,
    AverageValue,
    /// None, or unknown to this version.
    #[default]
    #[serde(other)]
    Other,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawMetric {
    #[serde(rename = "type")]
    type_: Text,
    object: Option<RawSource>,
    pods: Option<RawSource>,
    resource: Option<RawSource>,
    container_resource: Option<RawSource>,
    external: Option<RawSource>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSource {
    #[serde(deserialize_with = "null_as_default")]
    described_object: Reference,
    #[serde(deserialize_with = "null_as_default")]
    metric: MetricIdentifier,
    #[serde(deserialize_with = "null_as_default")]
    target: Target,
    name: Text,
    container: Text,
}

impl From<RawMetric> for MetricSpec {
    fn from(RawMetric { type_, object, pods, resource, container_resource, external }: RawMetric) -> Self {
        match (type_.as_str(), object, pods, resource, container_resource, external) {
            ("Object", Some(RawSource { described_object, metric, target, .. }), ..) => {
                Self::Object { described_object, metric, target }
            }
            ("Pods", _, Some(RawSource { metric, target, .. }), ..) => Self::Pods { metric, target },
            ("Resource", _, _, Some(RawSource { name, target, .. }), ..) => Self::Resource { name, target },
            ("ContainerResource", _, _, _, Some(RawSource { name, container, target, .. }), _) => {
                Self::ContainerResource { name, container, target }
            }
            ("External", _, _, _, _, Some(RawSource { metric, target, .. })) => Self::External { metric, target },
            _ => Self::Other(type_),
        }
    }
}
