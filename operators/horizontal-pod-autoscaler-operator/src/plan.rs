//! How many replicas a target gets, and the events and conditions that follow.
//!
//! Upstream: `reconcileAutoscaler`, `pkg/controller/podautoscaler/horizontal.go`.

pub mod behavior;
pub mod combine;
pub mod normalize;
pub mod normalized;
mod numbers;
pub mod pods;
pub mod reasons;
pub mod replica_calculator;
pub mod requests;
pub mod samples;
pub mod selector;
pub mod sources;
pub mod utilization;

use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use shared::api::condition::TRUE;
use shared::working::decisions::{self, LiveRead, Reasoned};
use shared::working::events::PlannedEvent;

use crate::memory::{History, Recommendation};
use crate::objects::{
    AutoscalerCondition, HorizontalPodAutoscaler, MetricStatus, Reference, Scale, condition_reasons, conditions, events,
};
use crate::observe::{Known, Observed, ScaleFailure};
use combine::{Combined, combine, warning};
use normalize::normalize;
use normalized::Normalized;
use reasons::{Question, Reason};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The part by which a metric may miss its target without scaling.
    pub tolerance: f64,
    /// How far back recommendations count when scaling down.
    pub downscale_stabilization: Duration,
    /// How long a pod may take to start up.
    pub cpu_initialization_period: Duration,
    /// How long a starting pod may be unready without counting as once ready.
    pub initial_readiness_delay: Duration,
    /// The age from which on a metric's value is ignored; zero for none.
    pub metrics_max_age: Duration,
    /// Whether to ignore pods beyond the replicas that the target asks for.
    pub ignores_surge: bool,
    pub has_scale_to_zero: bool,
    pub has_configurable_tolerance: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The events, except for the one about the scaling itself.
    pub notices: Vec<PlannedEvent>,
    /// The conditions, in the order in which they are set.
    pub conditions: Vec<PlannedCondition>,
    /// Whether to remove the condition `ScaledToZero`.
    pub drops_scaled_to_zero: bool,
    /// The new recommendations; none if they are unchanged.
    pub recommendations: Option<Vec<Recommendation>>,
    /// The results of the metrics, for upstream's metrics.
    pub tallies: Vec<Tally>,
    pub action: Action,
    /// The failure, which the log gets too.
    pub failure: Option<Failure>,
    pub reason: Reason,
}

/// What to do to the target; `metrics` are the lines of the metrics in the status.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Do nothing: its scale cannot be read.
    None,
    /// Leave its number, because none can be computed.
    Leave {
        current: i32,
        metrics: Vec<MetricStatus>,
    },
    Keep {
        current: i32,
        metrics: Vec<MetricStatus>,
    },
    Scale(Rescale),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Rescale {
    pub from: i32,
    pub to: i32,
    pub cause: Cause,
    pub metrics: Vec<MetricStatus>,
    /// The condition `ScaledToZero`; none removes it.
    pub scaled_to_zero: Option<bool>,
}

/// Why the number changes, in the words of the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    AboveMax,
    BelowMin,
    AboveTarget(String),
    BelowTarget,
    /// Only a bound asks for another number.
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedCondition {
    pub type_: &'static str,
    pub holds: bool,
    pub word: &'static str,
    pub message: Cow<'static, str>,
}

impl PlannedCondition {
    pub fn new(type_: &'static str, holds: bool, word: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self { type_, holds, word, message: message.into() }
    }
}

/// A failure that an event or a condition reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub message: String,
    pub is_spec: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    pub type_: String,
    pub action: ActionLabel,
    pub error: ErrorLabel,
}

/// A label of upstream's metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionLabel {
    ScaleUp,
    ScaleDown,
    None,
}

impl ActionLabel {
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
    Spec,
    Internal,
    None,
}

enum Basis {
    Disabled,
    Bound(i32, Cause),
    Metrics,
}

/// Plans the live read of the scale. No cache has it, because the target may be of any kind.
pub fn plan_scale(known: &Known) -> LiveRead<Question> {
    let Reference { kind, name, .. } = &known.autoscaler.target;
    LiveRead { step: "read the scale", reason: Question::Scale { target: format!("{kind} {name}") } }
}

/// Plans the live read of the metrics, if they decide.
pub fn plan_metrics(observed: &Observed, config: &Config) -> Option<LiveRead<Question>> {
    let current = observed.scale.as_ref().ok()?.scale.spec.replicas;
    match basis(&observed.autoscaler, current, config) {
        Basis::Disabled | Basis::Bound(..) => None,
        Basis::Metrics => {
            let reason = Question::Metrics { current, metrics: observed.autoscaler.metrics.len() };
            Some(LiveRead { step: "read the metrics and the pods", reason })
        }
    }
}

fn basis(autoscaler: &HorizontalPodAutoscaler, current: i32, config: &Config) -> Basis {
    let HorizontalPodAutoscaler { min_replicas: min, max_replicas: max, .. } = *autoscaler;
    if current == 0 {
        // Metrics of pods say nothing while there are no pods.
        let can_scale_up = min != 0 || autoscaler.has_object_or_external_metrics();
        if scaled_to_zero(autoscaler, config) && can_scale_up { Basis::Metrics } else { Basis::Disabled }
    } else if current > max {
        Basis::Bound(max, Cause::AboveMax)
    } else if current < min {
        Basis::Bound(min, Cause::BelowMin)
    } else {
        Basis::Metrics
    }
}

/// Whether the autoscaler itself scaled its target to zero.
///
/// Upstream: `getScaledToZeroConditionStatus`.
fn scaled_to_zero(autoscaler: &HorizontalPodAutoscaler, config: &Config) -> bool {
    let holds = |condition: &AutoscalerCondition| condition.status == *TRUE;
    config.has_scale_to_zero && autoscaler.status.condition(conditions::SCALED_TO_ZERO).is_some_and(holds)
}

/// `now` is the wall clock at the instant `at`: objects and metrics have times of the one, the history has the other.
pub fn plan(observed: &Observed, config: &Config, (now, at): (Timestamp, Instant)) -> Plan {
    let autoscaler = &*observed.autoscaler;
    let scale = match &observed.scale {
        Ok(read) => &read.scale,
        Err(failure) => return without_scale(autoscaler, failure),
    };
    let current = scale.spec.replicas;
    let (history, is_new) = with_first(&observed.history, current, at);
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
    match basis(autoscaler, current, config) {
        Basis::Disabled => {
            plan.conditions.push(PlannedCondition::new(
                conditions::SCALING_ACTIVE,
                false,
                condition_reasons::SCALING_DISABLED,
                "scaling is disabled since the replica count of the target is zero",
            ));
            plan.drops_scaled_to_zero = !config.has_scale_to_zero;
            plan.action = Action::Keep { current, metrics: Vec::new() };
        }
        Basis::Bound(bound, cause) => {
            plan.reason = Reason::OutOfBounds { current, bound };
            plan.action = Action::Scale(rescale(autoscaler, (current, bound), cause, Vec::new(), config));
        }
        Basis::Metrics => by_metrics(&mut plan, observed, scale, &history, config, (now, at)),
    }
    plan
}

/// Upstream: `reconcileAutoscaler`, where the scale cannot be read.
fn without_scale(autoscaler: &HorizontalPodAutoscaler, failure: &ScaleFailure) -> Plan {
    let ScaleFailure { message, step, is_spec } = failure;
    let told = format!("the HPA controller was unable to get the target's current scale: {message}");
    let word = condition_reasons::FAILED_GET_SCALE;
    Plan {
        notices: vec![warning(autoscaler, events::FAILED_GET_SCALE, message.clone())],
        conditions: vec![PlannedCondition::new(conditions::ABLE_TO_SCALE, false, word, told)],
        drops_scaled_to_zero: false,
        recommendations: None,
        tallies: Vec::new(),
        action: Action::None,
        failure: Some(Failure { message: step.clone(), is_spec: *is_spec }),
        reason: Reason::no_scale(message),
    }
}

/// The history, with the current number as its first recommendation; and whether that is new.
///
/// Upstream: `recordInitialRecommendation`.
fn with_first(history: &History, current: i32, at: Instant) -> (History, bool) {
    if history.recommendations.is_some() {
        return (history.clone(), false);
    }
    let first = vec![Recommendation { replicas: current, at }];
    (History { recommendations: Some(first), ..history.clone() }, true)
}

fn by_metrics(
    plan: &mut Plan,
    observed: &Observed,
    scale: &Scale,
    history: &History,
    config: &Config,
    (now, at): (Timestamp, Instant),
) {
    let (autoscaler, current) = (&*observed.autoscaler, scale.spec.replicas);
    let Combined { notices, active, statuses, tallies, proposal, error } = combine(observed, scale, config, now);
    plan.notices = notices;
    plan.conditions.extend(active);
    plan.tallies = tallies;
    let Reference { kind, name, .. } = &autoscaler.target;
    let Some((proposed, metric)) = proposal else {
        let error = error.unwrap_or_default();
        plan.notices.push(warning(autoscaler, events::FAILED_COMPUTE_METRICS_REPLICAS, error.clone()));
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
    let normalized = normalize(autoscaler, history, (current, recommended), config, at);
    let Normalized { mut replicas, able, limited, recommendations } = normalized;
    let mut cause = match recommended.cmp(&current) {
        std::cmp::Ordering::Greater => Cause::AboveTarget(metric.clone()),
        std::cmp::Ordering::Less => Cause::BelowTarget,
        std::cmp::Ordering::Equal => Cause::None,
    };
    // The minimum may have been raised since the autoscaler scaled its target to zero.
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

/// `event FailedGetPodsMetric; scale 3 to 5 (5 by cpu resource; ReadyForNewScale, DesiredWithinRange)`.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for notice in &self.notices {
            write!(f, "event {}; ", notice.reason)?;
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
