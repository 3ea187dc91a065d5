//! The answers of the three metrics APIs: `metrics.k8s.io/v1beta1`, `custom.metrics.k8s.io/v1beta2` and `v1beta1`, and
//! `external.metrics.k8s.io/v1beta1`.
//!
//! Left out: metrics of nodes, and labels of external values, which the selector has looked at.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use shared::api::intern::Text;
use shared::api::object::null_as_default;
use shared::api::quantity::Quantity;
use shared::api::time::Time;
use shared::runtime::flags::GoDuration;

/// A list of values of whatever API.
#[derive(Debug, Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
pub struct Values<T> {
    /// The values; none in an answer that Go has written as `null`.
    #[serde(default = "Vec::new", deserialize_with = "null_as_default")]
    pub items: Vec<T>,
}

/// What one pod takes: `PodMetrics`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodUsage {
    /// The pod's.
    pub metadata: Named,
    /// When the end of the window was.
    pub timestamp: Option<Time>,
    /// The time over which it was measured.
    #[serde(deserialize_with = "go_duration")]
    pub window: Duration,
    /// What each container takes.
    #[serde(deserialize_with = "null_as_default")]
    pub containers: Vec<ContainerUsage>,
}

/// The name of the pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Named {
    /// Its name.
    pub name: Text,
}

/// What one container takes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ContainerUsage {
    /// Its name.
    pub name: Text,
    /// How much of which resource.
    #[serde(deserialize_with = "null_as_default")]
    pub usage: BTreeMap<Text, Quantity>,
}

/// The value of a metric of an object: `MetricValue`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectValue {
    /// The object.
    #[serde(default)]
    pub described_object: Named,
    /// When it was measured.
    #[serde(default)]
    pub timestamp: Option<Time>,
    /// The time over which it was measured; v1beta1 calls it `window`.
    #[serde(default, alias = "window")]
    pub window_seconds: Option<u32>,
    /// The value.
    pub value: Quantity,
}

/// One of the values of an external metric: `ExternalMetricValue`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ExternalValue {
    /// When it was measured.
    #[serde(default)]
    pub timestamp: Option<Time>,
    /// The value.
    pub value: Quantity,
}

/// One that Go could not have written counts as none.
fn go_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?.unwrap_or_default();
    Ok(text.parse::<GoDuration>().map_or(Duration::ZERO, |duration| duration.0))
}
