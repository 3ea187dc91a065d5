//! The views of autoscalers, of what they scale and of its pods; the values that the metrics APIs give; and the exact
//! texts that are written.
//!
//! Left out: `autoscaling/v1`. The apiserver converts each autoscaler to v2.

pub mod autoscaler;
pub mod behavior;
pub mod metric;
pub mod pod;
pub mod scale;
pub mod status;
pub mod values;

pub use autoscaler::{HORIZONTAL_POD_AUTOSCALERS, HorizontalPodAutoscaler, Reference};
pub use behavior::{Behavior, Policy, PolicyType, ScalingRules, Select};
pub use metric::{MetricIdentifier, MetricSpec, Target, TargetType};
pub use pod::{Pod, Ready};
pub use scale::Scale;
pub use status::{AutoscalerCondition, AutoscalerStatus, MetricStatus, MetricValueStatus};

/// The types of an autoscaler's conditions.
pub mod conditions {
    /// Whether the target's scale can be read and written, and whether nothing holds scaling back.
    pub const ABLE_TO_SCALE: &str = "AbleToScale";
    /// Whether the metrics say how many replicas there should be.
    pub const SCALING_ACTIVE: &str = "ScalingActive";
    /// Whether a bound cuts what the metrics say.
    pub const SCALING_LIMITED: &str = "ScalingLimited";
    /// Whether it was the autoscaler that scaled to zero.
    pub const SCALED_TO_ZERO: &str = "ScaledToZero";
}

/// The reasons of conditions.
pub mod condition_reasons {
    /// The scale cannot be read.
    pub const FAILED_GET_SCALE: &str = "FailedGetScale";
    /// It was read.
    pub const SUCCEEDED_GET_SCALE: &str = "SucceededGetScale";
    /// It could not be written.
    pub const FAILED_UPDATE_SCALE: &str = "FailedUpdateScale";
    /// It was written.
    pub const SUCCEEDED_RESCALE: &str = "SucceededRescale";
    /// Nothing holds the recommendation back.
    pub const READY_FOR_NEW_SCALE: &str = "ReadyForNewScale";
    /// A lower recommendation of late holds it back.
    pub const SCALE_UP_STABILIZED: &str = "ScaleUpStabilized";
    /// A higher recommendation of late holds it back.
    pub const SCALE_DOWN_STABILIZED: &str = "ScaleDownStabilized";
    /// The target is at zero replicas.
    pub const SCALING_DISABLED: &str = "ScalingDisabled";
    /// The metrics say how many replicas there should be.
    pub const VALID_METRIC_FOUND: &str = "ValidMetricFound";
    /// The scale has no selector, or one that cannot be read.
    pub const INVALID_SELECTOR: &str = "InvalidSelector";
    /// Several autoscalers have the same pods.
    pub const AMBIGUOUS_SELECTOR: &str = "AmbiguousSelector";
    /// No bound cuts the recommendation.
    pub const DESIRED_WITHIN_RANGE: &str = "DesiredWithinRange";
    /// It is below the minimum.
    pub const TOO_FEW_REPLICAS: &str = "TooFewReplicas";
    /// It is above the maximum.
    pub const TOO_MANY_REPLICAS: &str = "TooManyReplicas";
    /// It grows too fast.
    pub const SCALE_UP_LIMIT: &str = "ScaleUpLimit";
    /// It falls too fast.
    pub const SCALE_DOWN_LIMIT: &str = "ScaleDownLimit";
    /// It was the autoscaler that scaled to zero.
    pub const SCALED_TO_ZERO: &str = "ScaledToZero";
    /// It was not.
    pub const NOT_SCALED_TO_ZERO: &str = "NotScaledToZero";
}

/// The reasons of events, and those of conditions that have the same.
pub mod events {
    /// The scale cannot be read.
    pub const FAILED_GET_SCALE: &str = "FailedGetScale";
    /// No metric says how many replicas there should be, or too few of them to scale down.
    pub const FAILED_COMPUTE_METRICS_REPLICAS: &str = "FailedComputeMetricsReplicas";
    /// The scale could not be written.
    pub const FAILED_RESCALE: &str = "FailedRescale";
    /// It was written.
    pub const SUCCESSFUL_RESCALE: &str = "SuccessfulRescale";
    /// The status could not be written.
    pub const FAILED_UPDATE_STATUS: &str = "FailedUpdateStatus";
    /// The scale has no selector.
    pub const SELECTOR_REQUIRED: &str = "SelectorRequired";
    /// The selector cannot be read.
    pub const INVALID_SELECTOR: &str = "InvalidSelector";
    /// Several autoscalers have the same pods.
    pub const AMBIGUOUS_SELECTOR: &str = "AmbiguousSelector";
    /// A metric of this kind cannot be had.
    pub const FAILED_GET_OBJECT_METRIC: &str = "FailedGetObjectMetric";
    /// A metric of this kind cannot be had.
    pub const FAILED_GET_PODS_METRIC: &str = "FailedGetPodsMetric";
    /// A metric of this kind cannot be had.
    pub const FAILED_GET_RESOURCE_METRIC: &str = "FailedGetResourceMetric";
    /// A metric of this kind cannot be had.
    pub const FAILED_GET_CONTAINER_RESOURCE_METRIC: &str = "FailedGetContainerResourceMetric";
    /// A metric of this kind cannot be had.
    pub const FAILED_GET_EXTERNAL_METRIC: &str = "FailedGetExternalMetric";
    /// A metric is of no kind that there is.
    pub const INVALID_METRIC_SOURCE_TYPE: &str = "InvalidMetricSourceType";
}
