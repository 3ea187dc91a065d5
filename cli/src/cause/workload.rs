//! Causes of controllers that keep pods, and of pods.

use jiff::Timestamp;
use serde::Serialize;
use shared::api::names::LABEL_VALUE_MAX_LENGTH;

use crate::cause::refusal::Refusal;
use crate::cause::state::State;
use crate::cause::trouble::Trouble;
use crate::words::{lasting, line, list, many, when};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pods {
    pub count: i64,
    pub of: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "case")]
pub enum Workload {
    /// The object does not exist.
    Absent {
        kind: String,
        namespace: String,
        similar: Vec<String>,
    },
    Refused {
        missing: Pods,
        by: String,
        refusal: Refusal,
        next_try: Option<Timestamp>,
    },
    /// Pods are not ready.
    Pods {
        pods: Pods,
        example: String,
        trouble: Trouble,
        is_late: bool,
    },
    InvalidSelector {
        message: String,
    },
    /// The object's name is too long for the labels of its pods.
    NameTooLong {
        label: String,
        length: usize,
        longest: usize,
    },
    /// Other controllers select the same pods.
    SelectorClash {
        others: Vec<String>,
    },
    Paused {
        updated: Pods,
    },
    /// `replicas` is 0.
    ScaledToZero {
        autoscaler: String,
        may_be_its: bool,
        left: i64,
    },
    /// Pods are ready for less than `minReadySeconds`.
    MinReady {
        waiting: Pods,
        seconds: i64,
        until: Option<Timestamp>,
    },
    /// A rollout made no progress, without another cause.
    DeadlineExceeded {
        seconds: i64,
        updated: Pods,
    },
    RollingOut {
        updated: Pods,
        old: i64,
        available: i64,
    },
    Scaling {
        ready: Pods,
        there: i64,
    },
    /// The latest spec is not yet observed.
    NotObserved {
        generation: i64,
        observed: i64,
    },
    Ready {
        ready: Pods,
    },
    PodReady,
    PodDone,
    /// A condition of another kind is not true.
    Condition {
        name: String,
        reason: String,
        message: String,
        since: Option<Timestamp>,
    },
    /// A Node has the taint that its cloud removes.
    Uninitialized {
        /// What the operator says about it.
        word: String,
    },
    /// The phase of another kind is not final.
    Phase {
        phase: String,
        message: String,
    },
    NothingWrong,
}

impl Workload {
    pub fn state(&self) -> State {
        match self {
            Self::Pods { trouble, is_late: false, .. } if trouble.is_passing() => State::InProgress,
            Self::Absent { .. }
            | Self::Refused { .. }
            | Self::Pods { .. }
            | Self::InvalidSelector { .. }
            | Self::NameTooLong { .. }
            | Self::SelectorClash { .. }
            | Self::DeadlineExceeded { .. }
            | Self::Uninitialized { .. }
            | Self::Condition { .. } => State::Stuck,
            Self::ScaledToZero { left, .. } if *left > 0 => State::InProgress,
            Self::MinReady { .. }
            | Self::RollingOut { .. }
            | Self::Scaling { .. }
            | Self::NotObserved { .. }
            | Self::Phase { .. } => State::InProgress,
            Self::Paused { .. }
            | Self::ScaledToZero { .. }
            | Self::Ready { .. }
            | Self::PodReady
            | Self::PodDone
            | Self::NothingWrong => State::AtRest,
        }
    }

    pub fn text(&self, now: Timestamp) -> String {
        match self {
            Self::Absent { kind, namespace, similar } => absent(kind, namespace, similar),
            Self::Refused { missing: Pods { count, of }, by, refusal, next_try } => {
                let next = next_try.filter(|time| *time > now).map(|time| format!("; next retry {}", when(time, now)));
                let next = next.unwrap_or_default();
                format!("{count} of {} missing: {by} cannot create pods: {refusal}{next}", many(*of, "pod"))
            }
            Self::Pods { pods, example, trouble, is_late } => pods_text(*pods, example, trouble, *is_late),
            Self::InvalidSelector { message } => format!("invalid selector: {message}"),
            Self::NameTooLong { label, length, longest } => format!(
                "name too long: the label {label} of its pods would have {length} characters, more than \
                 {LABEL_VALUE_MAX_LENGTH}; use a name of at most {longest} characters"
            ),
            Self::SelectorClash { others } => format!("selector overlaps with {}", list(others)),
            Self::Paused { updated: Pods { count, of } } => {
                format!("rollout paused: {count} of {} updated", many(*of, "pod"))
            }
            Self::ScaledToZero { autoscaler, may_be_its, left } => scaled_to_zero(autoscaler, *may_be_its, *left),
            Self::MinReady { waiting: Pods { count, of }, seconds, until } => {
                let next = until
                    .map(|time| format!("; the next one becomes available {}", when(time, now)))
                    .unwrap_or_default();
                format!("{count} of {} ready, but for less than {seconds} s (minReadySeconds){next}", many(*of, "pod"))
            }
            Self::DeadlineExceeded { seconds, updated: Pods { count, of } } => {
                format!(
                    "rollout made no progress for {seconds} s (progressDeadlineSeconds): {count} of {} updated",
                    many(*of, "pod")
                )
            }
            Self::RollingOut { updated: Pods { count, of }, old, available } => {
                format!("rolling out: {count} of {} updated, {old} old, {available} available", many(*of, "pod"))
            }
            Self::Scaling { ready: Pods { count, of }, there } => {
                format!("scaling: {count} of {} ready, {there} created", many(*of, "pod"))
            }
            Self::NotObserved { generation, observed } => {
                format!("latest spec not yet observed (generation {generation}, observed {observed})")
            }
            Self::Ready { ready: Pods { count, of } } => format!("{count} of {} ready", many(*of, "pod")),
            Self::PodReady => "ready".to_owned(),
            Self::PodDone => "completed".to_owned(),
            Self::Condition { name, reason, message, since } => {
                let how = match since {
                    Some(since) => format!("has not been true {}", lasting(*since, now)),
                    None => "is not true".to_owned(),
                };
                let message = if message.is_empty() { reason.clone() } else { line(message) };
                format!("condition {name} {how}: {message}")
            }
            Self::Uninitialized { word } => {
                let word = if word.is_empty() { "no reason is known" } else { word };
                format!("not initialized by its cloud: {}", line(word))
            }
            Self::Phase { phase, message } if message.is_empty() => format!("phase {phase}"),
            Self::Phase { phase, message } => format!("phase {phase}: {}", line(message)),
            Self::NothingWrong => "no problem found".to_owned(),
        }
    }
}

fn absent(kind: &str, namespace: &str, similar: &[String]) -> String {
    let place = if namespace.is_empty() { String::new() } else { format!(" in namespace {namespace}") };
    let near = if similar.is_empty() { String::new() } else { format!("; did you mean {}?", similar.join(" or ")) };
    format!("{kind} not found{place}{near}")
}

fn scaled_to_zero(autoscaler: &str, may_be_its: bool, left: i64) -> String {
    let asked = if may_be_its { format!(" by {autoscaler}") } else { String::new() };
    let is_idle = !may_be_its && !autoscaler.is_empty();
    let idle = if is_idle { format!("; {autoscaler} does not scale up from zero") } else { String::new() };
    let left = if left == 0 { String::new() } else { format!(", {} left", many(left, "pod")) };
    format!("scaled to zero{asked} (replicas: 0){left}{idle}")
}

fn pods_text(Pods { count, of }: Pods, example: &str, trouble: &Trouble, is_late: bool) -> String {
    let late = if is_late { " (progress deadline exceeded)" } else { "" };
    if example.is_empty() {
        return format!("{trouble}{late}");
    }
    let such = if count > 1 { format!("{example} and {}", many(count - 1, "other")) } else { example.to_owned() };
    format!("{count} of {} not ready: {such}: {trouble}{late}", many(of, "pod"))
}
