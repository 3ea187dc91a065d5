//! The answers of the three metrics APIs: `metrics.k8s.io/v1beta1`, `custom.metrics.k8s.io/v1beta2` and `v1beta1`, and
//! `external.metrics.k8s.io/v1beta1`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use shared::api::intern::Text;
use shared::api::object::null_as_default;
use shared::api::quantity::Quantity;
use shared::api::time::Time;
use shared::runtime::flags::GoDuration;

/// A list of values of any of these APIs.
#[derive(Debug, Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
pub struct Values<T> {
    /// Go writes an empty list as `null`.
    #[serde(default = "Vec::new", deserialize_with = "null_as_default")]
    pub items: Vec<T>,
}

/// `PodMetrics`: the usage of one pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodUsage {
    pub metadata: Named,
    /// The end of the window.
    pub timestamp: Option<Time>,
    #[serde(deserialize_with = "go_duration")]
    pub window: Duration,
    #[serde(deserialize_with = "null_as_default")]
    pub containers: Vec<ContainerUsage>,
}

/// The name of the pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Named {
    pub name: Text,
}

/// The usage of one container.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ContainerUsage {
    pub name: Text,
    /// By resource.
    #[serde(deserialize_with = "null_as_default")]
    pub usage: BTreeMap<Text, Quantity>,
}

/// `MetricValue`: the value of a metric of an object.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectValue {
    #[serde(default)]
    pub described_object: Named,
    #[serde(default)]
    pub timestamp: Option<Time>,
    /// v1beta1 calls it `window`.
    #[serde(default, alias = "window")]
    pub window_seconds: Option<u32>,
    pub value: Quantity,
}

/// `ExternalMetricValue`: a value of an external metric.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ExternalValue {
    #[serde(default)]
    pub timestamp: Option<Time>,
    pub value: Quantity,
}

/// An invalid duration counts as zero.
fn go_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?.unwrap_or_default();
    Ok(text.parse::<GoDuration>().map_or(Duration::ZERO, |duration| duration.0))
}
