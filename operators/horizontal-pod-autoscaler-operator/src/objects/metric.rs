//! One of an autoscaler's metrics: where its values come from, and the target for them.
//!
//! Left out: the values, which [`super::values`] has.

use serde::{Deserialize, Serialize};
use shared::api::intern::Text;
use shared::api::object::null_as_default;
use shared::api::quantity::Quantity;
use shared::api::selector::LabelSelector;

use super::Reference;

/// One of `spec.metrics`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "RawMetric")]
pub enum MetricSpec {
    /// A value of one object.
    Object {
        /// The object.
        described_object: Reference,
        /// The metric.
        metric: MetricIdentifier,
        /// Its target.
        target: Target,
    },
    /// A value of each pod.
    Pods {
        /// The metric.
        metric: MetricIdentifier,
        /// The target of its average.
        target: Target,
    },
    /// What each pod takes of a resource.
    Resource {
        /// Such as `cpu`.
        name: Text,
        /// The target of its average.
        target: Target,
    },
    /// What one container of each pod takes of a resource.
    ContainerResource {
        /// Such as `cpu`.
        name: Text,
        /// The container's name.
        container: Text,
        /// The target of its average.
        target: Target,
    },
    /// A value from outside of the cluster.
    External {
        /// The metric.
        metric: MetricIdentifier,
        /// Its target.
        target: Target,
    },
    /// Of a type that this build does not know.
    Other(Text),
}

impl MetricSpec {
    /// `type`, which is a label of upstream's metrics, too.
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

/// The name of a metric, and which of its series count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MetricIdentifier {
    /// Its name.
    pub name: Text,
    /// None for all of its series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// The target of a metric.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Target {
    /// Which of the others is meant.
    #[serde(rename = "type")]
    pub type_: TargetType,
    /// The value.
    pub value: Option<Quantity>,
    /// The value divided by the number of pods.
    pub average_value: Option<Quantity>,
    /// The value in percent of what the pods request.
    pub average_utilization: Option<i32>,
}

/// The meaning of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum TargetType {
    /// A percentage of requests.
    Utilization,
    /// A value.
    Value,
    /// A value for each pod.
    AverageValue,
    /// None, or one that this build does not know.
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

/// The fields of all sources; each has some of them.
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
