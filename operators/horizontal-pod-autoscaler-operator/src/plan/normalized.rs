//! A normalized recommendation, with the reasons that both ways of normalization give.

use super::PlannedCondition;
use crate::memory::Recommendation;
use crate::objects::{condition_reasons, conditions};

/// Reason and message while higher recommendations hold this one back.
pub(super) const DOWN_STABILIZED: (&str, &str) = (
    condition_reasons::SCALE_DOWN_STABILIZED,
    "recent recommendations were higher than current one, applying the highest recent recommendation",
);

#[derive(Clone, Debug, PartialEq)]
pub struct Normalized {
    pub replicas: i32,
    /// The condition `AbleToScale`.
    pub able: PlannedCondition,
    /// The condition `ScalingLimited`.
    pub limited: PlannedCondition,
    pub recommendations: Vec<Recommendation>,
}

impl Normalized {
    pub(super) fn new(
        recommended: i32,
        (stabilized, (word, message)): (i32, (&'static str, &'static str)),
        (replicas, limit, limit_message): Limited,
        recommendations: Vec<Recommendation>,
    ) -> Self {
        let able = if stabilized == recommended {
            (condition_reasons::READY_FOR_NEW_SCALE, "recommended size matches current size")
        } else {
            (word, message)
        };
        Self {
            replicas,
            able: PlannedCondition::new(conditions::ABLE_TO_SCALE, true, able.0, able.1),
            limited: PlannedCondition::new(conditions::SCALING_LIMITED, replicas != stabilized, limit, limit_message),
            recommendations,
        }
    }
}

/// A number within bounds, with reason and message of the condition `ScalingLimited`.
pub(super) type Limited = (i32, &'static str, &'static str);

/// The upper bound: the maximum, or the most that the rate allows.
pub(super) const fn upper_bound(max: i32, rate: i32) -> Limited {
    if max > rate {
        (
            rate,
            condition_reasons::SCALE_UP_LIMIT,
            "the desired replica count is increasing faster than the maximum scale rate",
        )
    } else {
        (max, condition_reasons::TOO_MANY_REPLICAS, "the desired replica count is more than the maximum replica count")
    }
}

pub(super) const fn minimum(min: i32) -> Limited {
    (min, condition_reasons::TOO_FEW_REPLICAS, "the desired replica count is less than the minimum replica count")
}

pub(super) const fn within_range(desired: i32) -> Limited {
    (desired, condition_reasons::DESIRED_WITHIN_RANGE, "the desired count is within the acceptable range")
}
