//! The status of an autoscaler.
//!
//! A write does not change fields that are unknown to this version.

use serde::{Deserialize, Serialize};
use shared::api::intern::Text;
use shared::api::object::null_as_default;
use shared::api::quantity::Quantity;
use shared::api::time::Time;

use super::metric::MetricIdentifier;
use super::reference::Reference;

/// `status` of an autoscaler. Every field is written; an absent one becomes `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AutoscalerStatus {
    /// As upstream, never set.
    pub observed_generation: Option<i64>,
    pub last_scale_time: Option<Time>,
    /// The number that the target asked for at the last sync.
    #[serde(deserialize_with = "null_as_default")]
    pub current_replicas: i32,
    #[serde(deserialize_with = "null_as_default")]
    pub desired_replicas: i32,
    #[serde(deserialize_with = "null_as_default")]
    pub current_metrics: Vec<MetricStatus>,
    #[serde(deserialize_with = "null_as_default")]
    pub conditions: Vec<AutoscalerCondition>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutoscalerCondition {
    #[serde(rename = "type")]
    pub type_: Text,
    pub status: Text,
    #[serde(default)]
    pub last_transition_time: Option<Time>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub reason: Text,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub message: Box<str>,
}

/// The value of one metric; as upstream, empty for a failed one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricStatus {
    #[serde(rename = "type")]
    pub type_: Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectMetricStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<IdentifiedStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceMetricStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_resource: Option<ResourceMetricStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<IdentifiedStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMetricStatus {
    pub metric: MetricIdentifier,
    pub current: MetricValueStatus,
    pub described_object: Reference,
}

/// The value of a metric that has a name and a selector.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdentifiedStatus {
    pub metric: MetricIdentifier,
    pub current: MetricValueStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceMetricStatus {
    pub name: Text,
    pub current: MetricValueStatus,
    /// The container, if only one counts.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub container: Text,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricValueStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_value: Option<Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_utilization: Option<i32>,
}

impl AutoscalerStatus {
    pub fn condition(&self, type_: &str) -> Option<&AutoscalerCondition> {
        self.conditions.iter().find(|condition| condition.type_ == *type_)
    }

    /// Replaces a condition in its place, or appends it. Its last transition changes only with its status.
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
