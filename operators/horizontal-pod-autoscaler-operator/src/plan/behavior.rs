//! `spec.behavior`: a stabilization window for each direction, and policies that limit the change in a period.
//!
//! Upstream: `normalizeDesiredReplicasWithBehaviors`, `pkg/controller/podautoscaler/horizontal.go`.

use std::time::{Duration, Instant};

use super::Config;
use super::normalized::{DOWN_STABILIZED, Limited, Normalized, minimum, upper_bound, within_range};
use super::numbers::{ceil, cut, narrow, real};
use crate::memory::{History, Recommendation, ScaleEvent};
use crate::objects::{Behavior, HorizontalPodAutoscaler, Policy, PolicyType, ScalingRules, Select, condition_reasons};

/// Reason and message while lower recommendations hold this one back.
const UP_STABILIZED: (&str, &str) = (
    condition_reasons::SCALE_UP_STABILIZED,
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
);

pub(super) fn normalize_with_behavior(
    autoscaler: &HorizontalPodAutoscaler,
    behavior: &Behavior,
    history: &History,
    (current, recommended): (i32, i32),
    config: &Config,
    now: Instant,
) -> Normalized {
    let (stabilized, recommendations) = stabilize(behavior, history, (current, recommended), config, now);
    let bounds = (autoscaler.min_replicas, autoscaler.max_replicas);
    let limited = convert_with_rate(behavior, history, (current, stabilized), bounds, now);
    let word = if recommended >= current { UP_STABILIZED } else { DOWN_STABILIZED };
    Normalized::new(recommended, (stabilized, word), limited, recommendations)
}

/// The length of a window; the flag's by default.
fn window(rules: &ScalingRules, config: &Config) -> Duration {
    // As upstream, the flag counts in whole seconds here.
    let of_flag = Duration::from_secs(config.downscale_stabilization.as_secs());
    rules.stabilization_window_seconds.map_or(of_flag, seconds)
}

fn seconds(count: i32) -> Duration {
    Duration::from_secs(u64::try_from(count).unwrap_or_default())
}

/// The current number, moved into the range of the recommendations of both windows.
///
/// Upstream: `stabilizeRecommendationWithBehaviors`, which reuses the place of one recommendation that is outdated for
/// both windows, and ignores the others.
pub fn stabilize(
    behavior: &Behavior,
    history: &History,
    (current, recommended): (i32, i32),
    config: &Config,
    now: Instant,
) -> (i32, Vec<Recommendation>) {
    let (up, down) = (window(&behavior.scale_up, config), window(&behavior.scale_down, config));
    let age = |earlier: &Recommendation| now.saturating_duration_since(earlier.at);
    let mut counts: Vec<Recommendation> = history.recommendations.clone().unwrap_or_default();
    let within = |window: Duration| counts.iter().filter(move |it| age(it) < window).map(|it| it.replicas);
    let least = within(up).fold(recommended, i32::min);
    let most = within(down).fold(recommended, i32::max);
    counts.retain(|earlier| age(earlier) <= up.max(down));
    counts.push(Recommendation { replicas: recommended, at: now });
    (current.max(least).min(most), counts)
}

/// Upstream: `convertDesiredReplicasWithBehaviorRate`.
pub fn convert_with_rate(
    behavior: &Behavior,
    history: &History,
    (current, desired): (i32, i32),
    (min, max): (i32, i32),
    now: Instant,
) -> Limited {
    if desired > current {
        // Recent changes can push the limit below the current number, which stays then.
        let limit = scale_up_limit(&behavior.scale_up, history, current, now).max(current);
        let most = upper_bound(max, limit);
        if desired > most.0 {
            return most;
        }
    } else if desired < current {
        let limit = scale_down_limit(&behavior.scale_down, history, current, now).min(current);
        let least = if min < limit {
            (
                limit,
                condition_reasons::SCALE_DOWN_LIMIT,
                "the desired replica count is decreasing faster than the maximum scale rate",
            )
        } else {
            minimum(min)
        };
        if desired < least.0 {
            return least;
        }
    }
    within_range(desired)
}

/// Upstream: `calculateScaleUpLimitWithScalingRules`.
pub fn scale_up_limit(rules: &ScalingRules, history: &History, current: i32, now: Instant) -> i32 {
    let allowed = |policy: &Policy| {
        let start = at_start_of(policy, history, current, now);
        match policy.type_ {
            PolicyType::Pods => narrow(i128::from(start) + i128::from(policy.value)),
            // Rounded up, because a percentage of few replicas would never add one.
            PolicyType::Percent => ceil(real(start.into()) * (1.0 + real(policy.value.into()) / 100.0)),
            PolicyType::Other => current,
        }
    };
    let each = rules.policies.iter().map(allowed);
    match rules.select {
        Select::Disabled => current,
        Select::Min => each.min().unwrap_or(i32::MAX),
        Select::Max | Select::Other => each.max().unwrap_or(i32::MIN),
    }
}

/// Upstream: `calculateScaleDownLimitWithBehaviors`.
pub fn scale_down_limit(rules: &ScalingRules, history: &History, current: i32, now: Instant) -> i32 {
    let allowed = |policy: &Policy| {
        let start = at_start_of(policy, history, current, now);
        match policy.type_ {
            PolicyType::Pods => narrow(i128::from(start) - i128::from(policy.value)),
            PolicyType::Percent => cut(real(start.into()) * (1.0 - real(policy.value.into()) / 100.0)),
            PolicyType::Other => current,
        }
    };
    let each = rules.policies.iter().map(allowed);
    match rules.select {
        Select::Disabled => current,
        Select::Min => each.max().unwrap_or(i32::MIN),
        Select::Max | Select::Other => each.min().unwrap_or(i32::MAX),
    }
}

/// The replicas at the start of a policy's period.
fn at_start_of(policy: &Policy, history: &History, current: i32, now: Instant) -> i32 {
    let (added, removed) = (changes(&history.ups, policy, now), changes(&history.downs, policy, now));
    narrow(i128::from(current) - added + removed)
}

/// Upstream: `getReplicasChangePerPeriod`.
fn changes(events: &[ScaleEvent], policy: &Policy, now: Instant) -> i128 {
    let period = seconds(policy.period_seconds);
    let within = |event: &&ScaleEvent| now.saturating_duration_since(event.at) < period;
    events.iter().filter(within).map(|event| i128::from(event.change)).sum()
}
