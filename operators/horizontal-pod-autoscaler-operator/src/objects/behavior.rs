//! `spec.behavior`, with the API's defaults.
//!
//! Upstream: `pkg/apis/autoscaling/v2/defaults.go`.

use serde::Deserialize;
use shared::api::object::null_as_default;
use shared::api::quantity::Quantity;

#[derive(Clone, Debug, PartialEq)]
pub struct Behavior {
    pub scale_up: ScalingRules,
    pub scale_down: ScalingRules,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ScalingRules {
    /// None for the flag's, which only `scale_down` can have.
    pub stabilization_window_seconds: Option<i32>,
    pub select: Select,
    pub policies: Vec<Policy>,
    /// None for the flag's.
    pub tolerance: Option<Quantity>,
}

impl ScalingRules {
    /// Upstream: `getLongestPolicyPeriod`, `pkg/controller/podautoscaler/horizontal.go`.
    pub fn longest_period_seconds(&self) -> i32 {
        self.policies.iter().map(|policy| policy.period_seconds).max().unwrap_or(0).max(0)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Select {
    #[default]
    Max,
    Min,
    /// None: no scaling in this direction.
    Disabled,
    /// Unknown to this version; as upstream, the same as [`Self::Max`].
    #[serde(other)]
    Other,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Policy {
    #[serde(rename = "type")]
    pub type_: PolicyType,
    pub value: i32,
    pub period_seconds: i32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum PolicyType {
    #[default]
    Pods,
    /// A percentage of the replicas at the start of the period.
    Percent,
    /// Unknown to this version; allows no change.
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
