//! Decides how many replicas a target should have, from one observation and the time: a value with everything that
//! follows from it, and why.
//!
//! Left out: the status that follows, which is [`crate::status`]'s.
//!
//! Upstream: `reconcileAutoscaler`, `pkg/controller/podautoscaler/horizontal.go`.

pub mod behavior;
pub mod combine;
pub mod normalize;
mod numbers;
pub mod pods;
pub mod reason;
pub mod replica_calculator;
pub mod requests;
pub mod samples;
pub mod selector;
pub mod sources;
pub mod utilization;

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::condition::TRUE;
use shared::api::object::ObjectReference;
use shared::runtime::decisions::{self, LiveRead, Reasoned};
use shared::runtime::events::EventType;

use crate::objects::{HorizontalPodAutoscaler, MetricStatus, Reference, Scale, condition_reasons, conditions, events};
use crate::observe::history::{History, Recommendation};
use crate::observe::{Known, Observed, ScaleFailure};
use combine::{Combined, about, combine};
use normalize::{Normalized, normalize};
use reason::{Question, Reason};

/// The values of the flags.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// By which part a metric may be off its target without scaling.
    pub tolerance: f64,
    /// How far back recommendations count before there are fewer replicas.
    pub downscale_stabilization: Duration,
    /// How long a pod may be starting up.
    pub cpu_initialization_period: Duration,
    /// How long a pod may be unready before that counts as having been ready.
    pub initial_readiness_delay: Duration,
    /// After this a metric's value counts no more; zero for never.
    pub metrics_max_age: Duration,
    /// Whether pods beyond what the target asks for count for nothing.
    pub ignores_surge: bool,
    /// Whether an autoscaler may scale to zero.
    pub has_scale_to_zero: bool,
    /// Whether an autoscaler may have tolerances of its own.
    pub has_configurable_tolerance: bool,
}

/// One sync, decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The events, but for those about the change itself.
    pub notices: Vec<PlannedEvent>,
    /// The conditions, in the order in which they are set.
    pub conditions: Vec<PlannedCondition>,
    /// Whether the condition `ScaledToZero` is taken away.
    pub drops_scaled_to_zero: bool,
    /// The recommendations that count from now on; none if they are as they were.
    pub recommendations: Option<Vec<Recommendation>>,
    /// What was computed, for upstream's metrics.
    pub tallies: Vec<Tally>,
    /// What is done.
    pub action: Action,
    /// The error that people are told of, with the step that failed.
    pub failure: Option<Failure>,
    /// Why.
    pub reason: Reason,
}

/// What is done to the target.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Nothing is known of it.
    None,
    /// It stays at this number, of which nobody knows whether it is right.
    Leave {
        /// The number.
        current: i32,
        /// The lines of the metrics.
        metrics: Vec<MetricStatus>,
    },
    /// It stays at this number, which is right.
    Keep {
        /// The number.
        current: i32,
        /// The lines of the metrics.
        metrics: Vec<MetricStatus>,
    },
    /// It gets another number.
    Scale(Rescale),
}

/// Another number for the target.
#[derive(Clone, Debug, PartialEq)]
pub struct Rescale {
    /// The number that it asks for.
    pub from: i32,
    /// The number that it gets.
    pub to: i32,
    /// Why, as events have it.
    pub cause: Cause,
    /// The lines of the metrics.
    pub metrics: Vec<MetricStatus>,
    /// The condition `ScaledToZero` that follows; none where it is taken away.
    pub scaled_to_zero: Option<bool>,
}

/// Why the number changes, in the words of the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It is above the maximum.
    AboveMax,
    /// It is below the minimum.
    BelowMin,
    /// A metric asks for more.
    AboveTarget(String),
    /// None asks for as many.
    BelowTarget,
    /// The metrics ask for no other number, and a bound does.
    None,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AboveMax => f.write_str("Current number of replicas above Spec.MaxReplicas"),
            Self::BelowMin => f.write_str("Current number of replicas below Spec.MinReplicas"),
            Self::AboveTarget(metric) => write!(f, "{metric} above target"),
            Self::BelowTarget => f.write_str("All metrics below target"),
            Self::None => Ok(()),
        }
    }
}

/// An event about the autoscaler.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedEvent {
    /// This state of it.
    pub about: ObjectReference,
    /// Normal or Warning.
    pub kind: EventType,
    /// Its reason.
    pub reason: &'static str,
    /// The text for people.
    pub message: String,
}

/// A condition that is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedCondition {
    /// Its type.
    pub type_: &'static str,
    /// Whether it holds.
    pub holds: bool,
    /// Its reason.
    pub word: &'static str,
    /// The text for people.
    pub message: Cow<'static, str>,
}

impl PlannedCondition {
    /// A condition.
    pub fn new(type_: &'static str, holds: bool, word: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self { type_, holds, word, message: message.into() }
    }
}

/// An error that people are told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What went wrong.
    pub message: String,
    /// Whether the autoscaler itself is wrong.
    pub is_spec: bool,
}

/// What was computed for one metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The type of its source.
    pub type_: String,
    /// Where it points.
    pub action: ActionLabel,
    /// What went wrong.
    pub error: ErrorLabel,
}

/// A label of upstream's metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionLabel {
    /// More replicas.
    ScaleUp,
    /// Fewer.
    ScaleDown,
    /// As many.
    None,
}

impl ActionLabel {
    /// The way from one number to another.
    pub fn of(from: i32, to: i32) -> Self {
        match to.cmp(&from) {
            std::cmp::Ordering::Greater => Self::ScaleUp,
            std::cmp::Ordering::Less => Self::ScaleDown,
            std::cmp::Ordering::Equal => Self::None,
        }
    }
}

/// A label of upstream's metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorLabel {
    /// The autoscaler itself is wrong.
    Spec,
    /// Something else is.
    Internal,
    /// Nothing is.
    None,
}

/// How a number of replicas is found.
enum Way {
    /// It stays at zero.
    Disabled,
    /// It becomes this bound.
    Bound(i32, Cause),
    /// By the metrics.
    Metrics,
}

/// The scale is always read live: the target may be of any kind, and nobody follows it.
pub fn plan_scale(known: &Known) -> LiveRead<Question> {
    let Reference { kind, name, .. } = &known.autoscaler.target;
    LiveRead { step: "read the scale", reason: Question::Scale { target: format!("{kind} {name}") } }
}

/// Plans a live read of the metrics where they decide.
pub fn plan_metrics(observed: &Observed, config: &Config) -> Option<LiveRead<Question>> {
    let current = observed.scale.as_ref().ok()?.scale.spec.replicas;
    match way(&observed.autoscaler, current, config) {
        Way::Disabled | Way::Bound(..) => None,
        Way::Metrics => {
            let reason = Question::Metrics { current, metrics: observed.autoscaler.metrics.len() };
            Some(LiveRead { step: "read the metrics and the pods", reason })
        }
    }
}

fn way(autoscaler: &HorizontalPodAutoscaler, current: i32, config: &Config) -> Way {
    let HorizontalPodAutoscaler { min_replicas: min, max_replicas: max, .. } = *autoscaler;
    if current == 0 {
        let by_itself = scaled_to_zero(autoscaler, config);
        let has_a_way = min != 0 || autoscaler.has_object_or_external_metrics();
        if by_itself && has_a_way { Way::Metrics } else { Way::Disabled }
    } else if current > max {
        Way::Bound(max, Cause::AboveMax)
    } else if current < min {
        Way::Bound(min, Cause::BelowMin)
    } else {
        Way::Metrics
    }
}

/// Whether it was the autoscaler that put its target at zero.
///
/// Upstream: `getScaledToZeroConditionStatus`.
fn scaled_to_zero(autoscaler: &HorizontalPodAutoscaler, config: &Config) -> bool {
    let is_so = |condition: &crate::objects::AutoscalerCondition| condition.status == *TRUE;
    config.has_scale_to_zero && autoscaler.status.condition(conditions::SCALED_TO_ZERO).is_some_and(is_so)
}

/// Decides one sync.
pub fn plan(observed: &Observed, config: &Config, now: Timestamp) -> Plan {
    let autoscaler = &*observed.autoscaler;
    let scale = match &observed.scale {
        Ok(read) => &read.scale,
        Err(failure) => return without_scale(autoscaler, failure),
    };
    let current = scale.spec.replicas;
    let (history, is_new) = with_first(&observed.history, current, now);
    let mut plan = Plan {
        notices: Vec::new(),
        conditions: vec![PlannedCondition::new(
            conditions::ABLE_TO_SCALE,
            true,
            condition_reasons::SUCCEEDED_GET_SCALE,
            "the HPA controller was able to get the target's current scale",
        )],
        drops_scaled_to_zero: false,
        recommendations: history.recommendations.clone().filter(|_| is_new),
        tallies: Vec::new(),
        action: Action::None,
        failure: None,
        reason: Reason::Disabled,
    };
    match way(autoscaler, current, config) {
        Way::Disabled => {
            plan.conditions.push(PlannedCondition::new(
                conditions::SCALING_ACTIVE,
                false,
                condition_reasons::SCALING_DISABLED,
                "scaling is disabled since the replica count of the target is zero",
            ));
            plan.drops_scaled_to_zero = !config.has_scale_to_zero;
            plan.action = Action::Keep { current, metrics: Vec::new() };
        }
        Way::Bound(bound, cause) => {
            plan.reason = Reason::OutOfBounds { current, bound };
            plan.action = Action::Scale(rescale(autoscaler, (current, bound), cause, Vec::new(), config));
        }
        Way::Metrics => by_metrics(&mut plan, observed, scale, &history, config, now),
    }
    plan
}

/// Upstream: `reconcileAutoscaler`, where the scale cannot be read.
fn without_scale(autoscaler: &HorizontalPodAutoscaler, failure: &ScaleFailure) -> Plan {
    let ScaleFailure { message, step, is_spec } = failure;
    let told = format!("the HPA controller was unable to get the target's current scale: {message}");
    let word = condition_reasons::FAILED_GET_SCALE;
    Plan {
        notices: vec![about(autoscaler, events::FAILED_GET_SCALE, message.clone())],
        conditions: vec![PlannedCondition::new(conditions::ABLE_TO_SCALE, false, word, told)],
        drops_scaled_to_zero: false,
        recommendations: None,
        tallies: Vec::new(),
        action: Action::None,
        failure: Some(Failure { message: step.clone(), is_spec: *is_spec }),
        reason: Reason::no_scale(message),
    }
}

/// Before anything was recommended, the number that there is counts as recommended.
///
/// Upstream: `recordInitialRecommendation`.
fn with_first(history: &History, current: i32, now: Timestamp) -> (History, bool) {
    if history.recommendations.is_some() {
        return (history.clone(), false);
    }
    let first = vec![Recommendation { replicas: current, at: now }];
    (History { recommendations: Some(first), ..history.clone() }, true)
}

fn by_metrics(plan: &mut Plan, observed: &Observed, scale: &Scale, history: &History, config: &Config, now: Timestamp) {
    let (autoscaler, current) = (&*observed.autoscaler, scale.spec.replicas);
    let Combined { notices, active, statuses, tallies, proposal, error } = combine(observed, scale, config, now);
    plan.notices = notices;
    plan.conditions.extend(active);
    plan.tallies = tallies;
    let Reference { kind, name, .. } = &autoscaler.target;
    let Some((proposed, metric)) = proposal else {
        let error = error.unwrap_or_default();
        plan.notices.push(about(autoscaler, events::FAILED_COMPUTE_METRICS_REPLICAS, error.clone()));
        let message = format!(
            "failed to compute desired number of replicas based on listed metrics for {kind}/{}/{name}: {error}",
            autoscaler.metadata.namespace()
        );
        plan.failure = Some(Failure { message, is_spec: false });
        plan.reason = Reason::not_computed(&error);
        plan.action = Action::Leave { current, metrics: statuses };
        return;
    };
    let recommended = proposed.max(0);
    let normalized = normalize(autoscaler, history, (current, recommended), config, now);
    let Normalized { mut replicas, able, limited, recommendations } = normalized;
    let mut cause = match recommended.cmp(&current) {
        std::cmp::Ordering::Greater => Cause::AboveTarget(metric.clone()),
        std::cmp::Ordering::Less => Cause::BelowTarget,
        std::cmp::Ordering::Equal => Cause::None,
    };
    // Only one that scaled to zero itself comes here with none, and its minimum may have been raised since.
    if current == 0 && replicas < autoscaler.min_replicas {
        replicas = autoscaler.min_replicas;
        if cause == Cause::None {
            cause = Cause::BelowMin;
        }
    }
    plan.reason = Reason::computed((recommended, &metric), able.word, limited.word, error.as_deref());
    plan.conditions.extend([able, limited]);
    plan.recommendations = Some(recommendations);
    plan.failure = error.map(|message| Failure { message, is_spec: false });
    plan.action = if replicas == current {
        Action::Keep { current, metrics: statuses }
    } else {
        Action::Scale(rescale(autoscaler, (current, replicas), cause, statuses, config))
    };
}

fn rescale(
    autoscaler: &HorizontalPodAutoscaler,
    (from, to): (i32, i32),
    cause: Cause,
    metrics: Vec<MetricStatus>,
    config: &Config,
) -> Rescale {
    let is_to_zero = from > 0 && to == 0 && autoscaler.min_replicas == 0 && autoscaler.has_object_or_external_metrics();
    Rescale { from, to, cause, metrics, scaled_to_zero: config.has_scale_to_zero.then_some(is_to_zero) }
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

/// `tell FailedGetPodsMetric; scale 3 to 5 (5 by cpu resource; ReadyForNewScale, DesiredWithinRange)`.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for notice in &self.notices {
            write!(f, "tell {}; ", notice.reason)?;
        }
        match &self.action {
            Action::None => f.write_str("do nothing")?,
            Action::Leave { current, .. } => write!(f, "leave {current}")?,
            Action::Keep { current, .. } => write!(f, "keep {current}")?,
            Action::Scale(Rescale { from, to, .. }) => write!(f, "scale {from} to {to}")?,
        }
        write!(f, " ({})", self.reason)
    }
}
