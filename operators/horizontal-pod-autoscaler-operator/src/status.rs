//! The status of an autoscaler after a sync. Conditions of other writers stay as they are.
//!
//! Upstream: `setStatus` and `updateStatusIfNeeded`, `pkg/controller/podautoscaler/horizontal.go`.

use jiff::Timestamp;
use shared::api::condition::{FALSE, TRUE};
use shared::api::intern::Text;
use shared::api::time::Time;

use crate::apply::{Outcome, Scaled};
use crate::objects::{
    AutoscalerCondition, AutoscalerStatus, HorizontalPodAutoscaler, MetricStatus, condition_reasons, conditions,
};

/// The status, if it changes.
pub fn next_status(
    autoscaler: &HorizontalPodAutoscaler,
    outcome: &Outcome,
    now: Timestamp,
) -> Option<AutoscalerStatus> {
    let mut status = autoscaler.status.clone();
    for planned in &outcome.conditions {
        set(&mut status, (planned.type_, planned.holds), planned.word, planned.message.to_string(), now);
    }
    if outcome.drops_scaled_to_zero {
        status.conditions.retain(|condition| condition.type_ != *conditions::SCALED_TO_ZERO);
    }
    let desired_before = status.desired_replicas;
    match &outcome.result {
        Scaled::Unknown => {}
        Scaled::Left { current, metrics } => report(&mut status, (*current, desired_before), metrics),
        Scaled::Kept { current, metrics } => report(&mut status, (*current, *current), metrics),
        Scaled::Failed { current, metrics, error } => {
            let message = format!("the HPA controller was unable to update the target scale: {error}");
            let word = condition_reasons::FAILED_UPDATE_SCALE;
            set(&mut status, (conditions::ABLE_TO_SCALE, false), word, message, now);
            report(&mut status, (*current, desired_before), metrics);
        }
        Scaled::Done { from, to, metrics, scaled_to_zero } => {
            let message = format!("the HPA controller was able to update the target scale to {to}");
            let word = condition_reasons::SUCCEEDED_RESCALE;
            set(&mut status, (conditions::ABLE_TO_SCALE, true), word, message, now);
            set_scaled_to_zero(&mut status, *scaled_to_zero, now);
            report(&mut status, (*from, *to), metrics);
            status.last_scale_time = Some(Time::of(now));
        }
    }
    (status != autoscaler.status).then_some(status)
}

/// As upstream, the new status has no observed generation.
fn report(status: &mut AutoscalerStatus, (current, desired): (i32, i32), metrics: &[MetricStatus]) {
    status.observed_generation = None;
    status.current_replicas = current;
    status.desired_replicas = desired;
    status.current_metrics = metrics.to_vec();
}

fn set_scaled_to_zero(status: &mut AutoscalerStatus, scaled_to_zero: Option<bool>, now: Timestamp) {
    let (holds, word, message) = match scaled_to_zero {
        None => {
            status.conditions.retain(|condition| condition.type_ != *conditions::SCALED_TO_ZERO);
            return;
        }
        Some(true) => (true, condition_reasons::SCALED_TO_ZERO, "the HPA controller scaled the workload to zero"),
        Some(false) => {
            (false, condition_reasons::NOT_SCALED_TO_ZERO, "the HPA controller did not scale the workload to zero")
        }
    };
    set(status, (conditions::SCALED_TO_ZERO, holds), word, message.to_owned(), now);
}

fn set(status: &mut AutoscalerStatus, (type_, holds): (&str, bool), word: &str, message: String, now: Timestamp) {
    status.set_condition(AutoscalerCondition {
        type_: Text::new(type_),
        status: Text::new(if holds { TRUE } else { FALSE }),
        last_transition_time: Some(Time::of(now)),
        reason: Text::new(word),
        message: message.into(),
    });
}
