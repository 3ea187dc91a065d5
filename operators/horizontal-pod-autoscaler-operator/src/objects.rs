//! The views of autoscalers, scales, pods and metrics, and the reasons of conditions and events.
//! The apiserver converts autoscalers of `autoscaling/v1` to v2.

pub mod autoscaler;
pub mod behavior;
pub mod metric;
pub mod pod;
pub mod reference;
pub mod scale;
pub mod status;
pub mod values;

pub use autoscaler::{HORIZONTAL_POD_AUTOSCALERS, HorizontalPodAutoscaler};
pub use behavior::{Behavior, Policy, PolicyType, ScalingRules, Select};
pub use metric::{MetricIdentifier, MetricSpec, Target, TargetType};
pub use pod::{Pod, Ready};
pub use reference::Reference;
pub use scale::Scale;
pub use status::{AutoscalerCondition, AutoscalerStatus, MetricStatus, MetricValueStatus};

pub mod conditions {
    /// Whether the target's scale can be read and written.
    pub const ABLE_TO_SCALE: &str = "AbleToScale";
    pub const SCALING_ACTIVE: &str = "ScalingActive";
    pub const SCALING_LIMITED: &str = "ScalingLimited";
    pub const SCALED_TO_ZERO: &str = "ScaledToZero";
}

pub mod condition_reasons {
    pub const FAILED_GET_SCALE: &str = "FailedGetScale";
    pub const SUCCEEDED_GET_SCALE: &str = "SucceededGetScale";
    pub const FAILED_UPDATE_SCALE: &str = "FailedUpdateScale";
    pub const SUCCEEDED_RESCALE: &str = "SucceededRescale";
    pub const READY_FOR_NEW_SCALE: &str = "ReadyForNewScale";
    pub const SCALE_UP_STABILIZED: &str = "ScaleUpStabilized";
    pub const SCALE_DOWN_STABILIZED: &str = "ScaleDownStabilized";
    pub const SCALING_DISABLED: &str = "ScalingDisabled";
    pub const VALID_METRIC_FOUND: &str = "ValidMetricFound";
    pub const INVALID_SELECTOR: &str = "InvalidSelector";
    pub const AMBIGUOUS_SELECTOR: &str = "AmbiguousSelector";
    pub const DESIRED_WITHIN_RANGE: &str = "DesiredWithinRange";
    pub const TOO_FEW_REPLICAS: &str = "TooFewReplicas";
    pub const TOO_MANY_REPLICAS: &str = "TooManyReplicas";
    pub const SCALE_UP_LIMIT: &str = "ScaleUpLimit";
    pub const SCALE_DOWN_LIMIT: &str = "ScaleDownLimit";
    pub const SCALED_TO_ZERO: &str = "ScaledToZero";
    pub const NOT_SCALED_TO_ZERO: &str = "NotScaledToZero";
}

/// The reasons of events; some conditions have the same.
pub mod events {
    pub const FAILED_GET_SCALE: &str = "FailedGetScale";
    pub const FAILED_COMPUTE_METRICS_REPLICAS: &str = "FailedComputeMetricsReplicas";
    pub const FAILED_RESCALE: &str = "FailedRescale";
    pub const SUCCESSFUL_RESCALE: &str = "SuccessfulRescale";
    pub const FAILED_UPDATE_STATUS: &str = "FailedUpdateStatus";
    pub const SELECTOR_REQUIRED: &str = "SelectorRequired";
    pub const INVALID_SELECTOR: &str = "InvalidSelector";
    pub const AMBIGUOUS_SELECTOR: &str = "AmbiguousSelector";
    pub const FAILED_GET_OBJECT_METRIC: &str = "FailedGetObjectMetric";
    pub const FAILED_GET_PODS_METRIC: &str = "FailedGetPodsMetric";
    pub const FAILED_GET_RESOURCE_METRIC: &str = "FailedGetResourceMetric";
    pub const FAILED_GET_CONTAINER_RESOURCE_METRIC: &str = "FailedGetContainerResourceMetric";
    pub const FAILED_GET_EXTERNAL_METRIC: &str = "FailedGetExternalMetric";
    pub const INVALID_METRIC_SOURCE_TYPE: &str = "InvalidMetricSourceType";
}
