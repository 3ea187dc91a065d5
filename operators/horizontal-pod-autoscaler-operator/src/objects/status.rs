//! The status of an autoscaler, as it is read and as it is written.
//!
//! Left out: fields that this build does not know, which a write leaves as they are.

use serde::{Deserialize, Serialize};
use shared::api::intern::Text;
use shared::api::object::null_as_default;
use shared::api::quantity::Quantity;
use shared::api::time::Time;

use super::{MetricIdentifier, Reference};

/// `status` of an autoscaler. Each field is written, so that one that is gone becomes `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AutoscalerStatus {
    /// Nobody sets it. Upstream leaves it out when it writes the whole.
    pub observed_generation: Option<i64>,
    /// When the number of replicas was last changed.
    pub last_scale_time: Option<Time>,
    /// The number that the target asked for when it was last looked at.
    #[serde(deserialize_with = "null_as_default")]
    pub current_replicas: i32,
    /// The number that it should ask for.
    #[serde(deserialize_with = "null_as_default")]
    pub desired_replicas: i32,
    /// The values of the metrics, in their order.
    #[serde(deserialize_with = "null_as_default")]
    pub current_metrics: Vec<MetricStatus>,
    /// In the order they were first set.
    #[serde(deserialize_with = "null_as_default")]
    pub conditions: Vec<AutoscalerCondition>,
}

/// A condition of an autoscaler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutoscalerCondition {
    /// Such as `AbleToScale`.
    #[serde(rename = "type")]
    pub type_: Text,
    /// `True`, `False` or `Unknown`.
    pub status: Text,
    /// When the status last changed.
    #[serde(default)]
    pub last_transition_time: Option<Time>,
    /// Why, as one word.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub reason: Text,
    /// Why, for a person.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub message: Box<str>,
}

/// The value of one metric; empty for one that could not be had, as upstream leaves it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricStatus {
    /// Which of the others is set.
    #[serde(rename = "type")]
    pub type_: Text,
    /// Of a value of one object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectMetricStatus>,
    /// Of a value of each pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<IdentifiedStatus>,
    /// Of a resource of each pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceMetricStatus>,
    /// Of a resource of one container of each pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_resource: Option<ResourceMetricStatus>,
    /// Of a value from outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<IdentifiedStatus>,
}

/// The value of a metric of one object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMetricStatus {
    /// The metric.
    pub metric: MetricIdentifier,
    /// Its value.
    pub current: MetricValueStatus,
    /// The object.
    pub described_object: Reference,
}

/// The value of a metric that has a name and a selector.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdentifiedStatus {
    /// The metric.
    pub metric: MetricIdentifier,
    /// Its value.
    pub current: MetricValueStatus,
}

/// What is taken of a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceMetricStatus {
    /// The resource.
    pub name: Text,
    /// How much.
    pub current: MetricValueStatus,
    /// The container, where only one counts.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub container: Text,
}

/// A value, in the form of its target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricValueStatus {
    /// As it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Quantity>,
    /// Divided by the number of pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_value: Option<Quantity>,
    /// In percent of what the pods request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_utilization: Option<i32>,
}

impl AutoscalerStatus {
    /// The condition of this type.
    pub fn condition(&self, type_: &str) -> Option<&AutoscalerCondition> {
        self.conditions.iter().find(|condition| condition.type_ == *type_)
    }

    /// Sets a condition where it stands, or at the end; its last transition moves with the status alone.
    ///
    /// Upstream: `setConditionInList`, `pkg/controller/podautoscaler/horizontal.go`.
    pub fn set_condition(&mut self, condition: AutoscalerCondition) {
        match self.conditions.iter_mut().find(|known| known.type_ == condition.type_) {
            Some(known) if known.status == condition.status => {
                let last_transition_time = known.last_transition_time;
                *known = AutoscalerCondition { last_transition_time, ..condition };
            }
            Some(known) => *known = condition,
            None => self.conditions.push(condition),
        }
    }
}
