//! A HorizontalPodAutoscaler: its target, its bounds, its metrics, its behavior, and its whole status.

use serde::Deserialize;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::Resource;

use super::behavior::{Behavior, RawBehavior};
use super::metric::MetricSpec;
use super::reference::Reference;
use super::status::AutoscalerStatus;

pub const HORIZONTAL_POD_AUTOSCALERS: Resource =
    Resource::namespaced("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers");

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawAutoscaler")]
pub struct HorizontalPodAutoscaler {
    pub metadata: Meta,
    pub target: Reference,
    /// 1 by default.
    pub min_replicas: i32,
    pub max_replicas: i32,
    pub metrics: Vec<MetricSpec>,
    /// None for upstream's constants.
    pub behavior: Option<Behavior>,
    pub status: AutoscalerStatus,
}

shared::view!(HorizontalPodAutoscaler, HORIZONTAL_POD_AUTOSCALERS);

impl HorizontalPodAutoscaler {
    /// Whether a metric has a value while there are no pods.
    ///
    /// Upstream: `hasObjectOrExternalMetrics`, `pkg/controller/podautoscaler/horizontal.go`.
    pub fn has_object_or_external_metrics(&self) -> bool {
        self.metrics.iter().any(|metric| matches!(metric, MetricSpec::Object { .. } | MetricSpec::External { .. }))
    }
}

#[derive(Deserialize)]
struct RawAutoscaler {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: AutoscalerStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    #[serde(deserialize_with = "null_as_default")]
    scale_target_ref: Reference,
    min_replicas: Option<i32>,
    max_replicas: i32,
    #[serde(deserialize_with = "null_as_default")]
    metrics: Vec<MetricSpec>,
    behavior: Option<RawBehavior>,
}

impl From<RawAutoscaler> for HorizontalPodAutoscaler {
    fn from(RawAutoscaler { metadata, spec, status }: RawAutoscaler) -> Self {
        let RawSpec { scale_target_ref, min_replicas, max_replicas, metrics, behavior } = spec;
        Self {
            metadata,
            target: scale_target_ref,
            min_replicas: min_replicas.unwrap_or(1),
            max_replicas,
            metrics,
            behavior: behavior.map(Behavior::from),
            status,
        }
    }
}
