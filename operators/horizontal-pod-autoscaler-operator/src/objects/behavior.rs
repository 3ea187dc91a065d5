//! How fast an autoscaler scales up and down: `spec.behavior`, with the API's defaults where a rule says nothing.
//!
//! Left out: the rules of an autoscaler without a behavior, which are upstream's constants.
//!
//! Upstream: `pkg/apis/autoscaling/v2/defaults.go`.

use serde::Deserialize;
use shared::api::object::null_as_default;
use shared::api::quantity::Quantity;

/// `spec.behavior`.
#[derive(Clone, Debug, PartialEq)]
pub struct Behavior {
    /// Rules for more replicas.
    pub scale_up: ScalingRules,
    /// Rules for fewer.
    pub scale_down: ScalingRules,
}

/// The rules for one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalingRules {
    /// How far back recommendations count; none for the flag's time, which only the rules for fewer may leave out.
    pub stabilization_window_seconds: Option<i32>,
    /// Which of the policies counts.
    pub select: Select,
    /// How much may change in which time.
    pub policies: Vec<Policy>,
    /// By which part a metric may be off its target without scaling; none for the flag's.
    pub tolerance: Option<Quantity>,
}

impl ScalingRules {
    /// The longest period of a policy.
    ///
    /// Upstream: `getLongestPolicyPeriod`, `pkg/controller/podautoscaler/horizontal.go`.
    pub fn longest_period_seconds(&self) -> i32 {
        self.policies.iter().map(|policy| policy.period_seconds).max().unwrap_or(0).max(0)
    }
}

/// Which of several policies counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Select {
    /// The one that allows the most.
    #[default]
    Max,
    /// The one that allows the least.
    Min,
    /// None: nothing is scaled in this direction.
    Disabled,
    /// One that this build does not know, which upstream takes for [`Self::Max`].
    #[serde(other)]
    Other,
}

/// How much may change in a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Policy {
    /// The meaning of the value.
    #[serde(rename = "type")]
    pub type_: PolicyType,
    /// So many pods, or so many percent.
    pub value: i32,
    /// In this time.
    pub period_seconds: i32,
}

/// The meaning of a policy's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum PolicyType {
    /// A number of pods.
    #[default]
    Pods,
    /// A percentage of the replicas that there were when the period began.
    Percent,
    /// One that this build does not know: it allows no change.
    #[serde(other)]
    Other,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawBehavior {
    #[serde(deserialize_with = "null_as_default")]
    scale_up: RawRules,
    #[serde(deserialize_with = "null_as_default")]
    scale_down: RawRules,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawRules {
    stabilization_window_seconds: Option<i32>,
    select_policy: Option<Select>,
    policies: Option<Vec<Policy>>,
    tolerance: Option<Quantity>,
}

impl RawRules {
    fn or(self, window: Option<i32>, policies: &[(PolicyType, i32)]) -> ScalingRules {
        let Self { stabilization_window_seconds, select_policy, policies: own, tolerance } = self;
        let default = |(type_, value): &(PolicyType, i32)| Policy { type_: *type_, value: *value, period_seconds: 15 };
        ScalingRules {
            stabilization_window_seconds: stabilization_window_seconds.or(window),
            select: select_policy.unwrap_or_default(),
            policies: own.unwrap_or_else(|| policies.iter().map(default).collect()),
            tolerance,
        }
    }
}

/// Upstream: `GenerateHPAScaleUpRules` and `GenerateHPAScaleDownRules`.
impl From<RawBehavior> for Behavior {
    fn from(RawBehavior { scale_up, scale_down }: RawBehavior) -> Self {
        Self {
            scale_up: scale_up.or(Some(0), &[(PolicyType::Pods, 4), (PolicyType::Percent, 100)]),
            scale_down: scale_down.or(None, &[(PolicyType::Percent, 100)]),
        }
    }
}
