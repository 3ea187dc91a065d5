//! Stabilizes a recommendation by earlier ones, and limits it by bounds.
//!
//! Upstream: `normalizeDesiredReplicas`, `pkg/controller/podautoscaler/horizontal.go`.

use jiff::Timestamp;

use super::behavior::normalize_with_behavior;
use super::numbers::{cut, real};
use super::{Config, PlannedCondition};
use crate::memory::{History, Recommendation, before};
use crate::objects::{HorizontalPodAutoscaler, condition_reasons, conditions};

/// Upstream: `scaleUpLimitFactor` and `scaleUpLimitMinimum`.
const SCALE_UP_LIMIT_FACTOR: f64 = 2.0;
const SCALE_UP_LIMIT_MINIMUM: f64 = 4.0;

/// A recommendation to act on.
#[derive(Clone, Debug, PartialEq)]
pub struct Normalized {
    pub replicas: i32,
    /// The condition `AbleToScale`.
    pub able: PlannedCondition,
    /// The condition `ScalingLimited`.
    pub limited: PlannedCondition,
    /// The new recommendations.
    pub recommendations: Vec<Recommendation>,
}

/// A number within bounds, with reason and message of the condition `ScalingLimited`.
pub(super) type Limited = (i32, &'static str, &'static str);

pub fn normalize(
    autoscaler: &HorizontalPodAutoscaler,
    history: &History,
    (current, recommended): (i32, i32),
    config: &Config,
    now: Timestamp,
) -> Normalized {
    if let Some(behavior) = &autoscaler.behavior {
        return normalize_with_behavior(autoscaler, behavior, history, (current, recommended), config, now);
    }
    let (stabilized, recommendations) = stabilize(history, recommended, config, now);
    let limited = convert_with_rules(current, stabilized, autoscaler.min_replicas, autoscaler.max_replicas);
    normalized(recommended, (stabilized, DOWN_STABILIZED), limited, recommendations)
}

/// Reason and message while higher recommendations hold this one back.
pub(super) const DOWN_STABILIZED: (&str, &str) = (
    condition_reasons::SCALE_DOWN_STABILIZED,
    "recent recommendations were higher than current one, applying the highest recent recommendation",
);

pub(super) fn normalized(
    recommended: i32,
    (stabilized, (word, message)): (i32, (&'static str, &'static str)),
    (replicas, limit, limit_message): Limited,
    recommendations: Vec<Recommendation>,
) -> Normalized {
    let able = if stabilized == recommended {
        (condition_reasons::READY_FOR_NEW_SCALE, "recommended size matches current size")
    } else {
        (word, message)
    };
    Normalized {
        replicas,
        able: PlannedCondition::new(conditions::ABLE_TO_SCALE, true, able.0, able.1),
        limited: PlannedCondition::new(conditions::SCALING_LIMITED, replicas != stabilized, limit, limit_message),
        recommendations,
    }
}

/// The highest recommendation within the window, this one included.
///
/// Upstream: `stabilizeRecommendation`, which reuses the place of one outdated recommendation, and ignores the others.
fn stabilize(history: &History, recommended: i32, config: &Config, now: Timestamp) -> (i32, Vec<Recommendation>) {
    let cutoff = before(now, config.downscale_stabilization);
    let mut counts: Vec<Recommendation> = history.recommendations.clone().unwrap_or_default();
    counts.retain(|earlier| earlier.at >= cutoff);
    counts.push(Recommendation { replicas: recommended, at: now });
    let highest = counts.iter().map(|recommendation| recommendation.replicas).max().unwrap_or(recommended);
    (highest, counts)
}

/// Upstream: `convertDesiredReplicasWithRules`.
pub fn convert_with_rules(current: i32, desired: i32, min: i32, max: i32) -> Limited {
    let limit = scale_up_limit(current);
    let (most, word, message) = if max > limit {
        (
            limit,
            condition_reasons::SCALE_UP_LIMIT,
            "the desired replica count is increasing faster than the maximum scale rate",
        )
    } else {
        (max, condition_reasons::TOO_MANY_REPLICAS, "the desired replica count is more than the maximum replica count")
    };
    if desired < min {
        (min, condition_reasons::TOO_FEW_REPLICAS, TOO_FEW)
    } else if desired > most {
        (most, word, message)
    } else {
        within_range(desired)
    }
}

pub(super) const TOO_FEW: &str = "the desired replica count is less than the minimum replica count";

pub(super) const fn within_range(desired: i32) -> Limited {
    (desired, condition_reasons::DESIRED_WITHIN_RANGE, "the desired count is within the acceptable range")
}

/// Upstream: `calculateScaleUpLimit`.
fn scale_up_limit(current: i32) -> i32 {
    cut((SCALE_UP_LIMIT_FACTOR * real(current.into())).max(SCALE_UP_LIMIT_MINIMUM))
}
