//! Stabilizes a recommendation by earlier ones, and limits it by bounds.
//!
//! Upstream: `normalizeDesiredReplicas`, `pkg/controller/podautoscaler/horizontal.go`.

use std::time::Instant;

use super::Config;
use super::behavior::normalize_with_behavior;
use super::normalized::{DOWN_STABILIZED, Limited, Normalized, minimum, upper_bound, within_range};
use super::numbers::{cut, real};
use crate::memory::{History, Recommendation};
use crate::objects::HorizontalPodAutoscaler;

/// Upstream: `scaleUpLimitFactor` and `scaleUpLimitMinimum`.
const SCALE_UP_LIMIT_FACTOR: f64 = 2.0;
const SCALE_UP_LIMIT_MINIMUM: f64 = 4.0;

pub fn normalize(
    autoscaler: &HorizontalPodAutoscaler,
    history: &History,
    (current, recommended): (i32, i32),
    config: &Config,
    now: Instant,
) -> Normalized {
    if let Some(behavior) = &autoscaler.behavior {
        return normalize_with_behavior(autoscaler, behavior, history, (current, recommended), config, now);
    }
    let (stabilized, recommendations) = stabilize(history, recommended, config, now);
    let limited = convert_with_rules(current, stabilized, autoscaler.min_replicas, autoscaler.max_replicas);
    Normalized::new(recommended, (stabilized, DOWN_STABILIZED), limited, recommendations)
}

/// The highest recommendation within the window, this one included.
///
/// Upstream: `stabilizeRecommendation`, which reuses the place of one outdated recommendation, and ignores the others.
fn stabilize(history: &History, recommended: i32, config: &Config, now: Instant) -> (i32, Vec<Recommendation>) {
    let mut counts: Vec<Recommendation> = history.recommendations.clone().unwrap_or_default();
    counts.retain(|earlier| now.saturating_duration_since(earlier.at) <= config.downscale_stabilization);
    counts.push(Recommendation { replicas: recommended, at: now });
    let highest = counts.iter().map(|recommendation| recommendation.replicas).max().unwrap_or(recommended);
    (highest, counts)
}

/// Upstream: `convertDesiredReplicasWithRules`.
pub fn convert_with_rules(current: i32, desired: i32, min: i32, max: i32) -> Limited {
    let most = upper_bound(max, scale_up_limit(current));
    if desired < min {
        minimum(min)
    } else if desired > most.0 {
        most
    } else {
        within_range(desired)
    }
}

/// Upstream: `calculateScaleUpLimit`.
fn scale_up_limit(current: i32) -> i32 {
    cut((SCALE_UP_LIMIT_FACTOR * real(current.into())).max(SCALE_UP_LIMIT_MINIMUM))
}
