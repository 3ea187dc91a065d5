//! Causes of controllers that keep pods, and of pods themselves.

use jiff::Timestamp;
use serde::Serialize;

use crate::cause::State;
use crate::cause::refusal::Refusal;
use crate::cause::trouble::Trouble;
use crate::words::{lasting, line, list, many, when};

/// How many pods there are, and how many there should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pods {
    /// Concerned.
    pub count: i64,
    /// In all.
    pub of: i64,
}

/// Why pods are as they are.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "case")]
pub enum Workload {
    /// It does not exist.
    Absent {
        /// `Deployment`.
        kind: String,
        /// Where; `""` for a kind that has no namespaces.
        namespace: String,
        /// Names that are nearly the same.
        similar: Vec<String>,
    },
    /// Pods are missing as the apiserver refuses them.
    Refused {
        /// How many.
        missing: Pods,
        /// Whose pods.
        by: String,
        /// The refusal.
        refusal: Refusal,
        /// When it is tried again.
        next_try: Option<Timestamp>,
    },
    /// Pods are there and not ready.
    Pods {
        /// How many of them for this reason.
        pods: Pods,
        /// One of them; `""` where the object is the pod.
        example: String,
        /// Why.
        trouble: Trouble,
        /// Whether the progress deadline has passed, too.
        is_late: bool,
    },
    /// Its selector cannot be used.
    InvalidSelector {
        /// The fault in it.
        message: String,
    },
    /// Others select the same pods.
    SelectorClash {
        /// Which ones.
        others: Vec<String>,
    },
    /// Its template was changed, and it is paused.
    Paused {
        /// How many pods are of the new template.
        updated: Pods,
    },
    /// Nobody wants a pod.
    ScaledToZero {
        /// Which autoscaler would scale it; `""` for none.
        autoscaler: String,
        /// Whether that one may have said so: with `minReplicas: 0`.
        may_be_its: bool,
        /// How many pods are still there.
        left: i64,
    },
    /// Pods must be ready for a while before they count.
    MinReady {
        /// How many are ready and don't count yet.
        waiting: Pods,
        /// `minReadySeconds`.
        seconds: i64,
        /// When the next one counts.
        until: Option<Timestamp>,
    },
    /// A rollout did not get on for too long, and nothing else says why.
    DeadlineExceeded {
        /// `progressDeadlineSeconds`.
        seconds: i64,
        /// How many pods are of the new template.
        updated: Pods,
    },
    /// A rollout goes on.
    RollingOut {
        /// How many pods are of the new template.
        updated: Pods,
        /// How many pods of the old one are left.
        old: i64,
        /// How many are available.
        available: i64,
    },
    /// Pods are being created or deleted, or get ready.
    Scaling {
        /// How many are ready.
        ready: Pods,
        /// How many there are.
        there: i64,
    },
    /// The newest state was not looked at yet.
    NotObserved {
        /// Which state this is.
        generation: i64,
        /// Which one was looked at.
        observed: i64,
    },
    /// All pods are there.
    Ready {
        /// How many.
        ready: Pods,
    },
    /// The pod is ready.
    PodReady,
    /// The pod has ended well.
    PodDone,
    /// Nothing is known of this kind of object; one of its conditions says that something is wrong.
    Condition {
        /// `Ready`.
        name: String,
        /// One word.
        reason: String,
        /// For people.
        message: String,
        /// Since when.
        since: Option<Timestamp>,
    },
    /// Its `status.phase` says that it is not there yet.
    Phase {
        /// `Pending`.
        phase: String,
        /// The newest warning about it.
        message: String,
    },
    /// Nothing says that anything is wrong.
    NothingWrong,
}

impl Workload {
    /// Whether anybody has to do something.
    pub fn state(&self) -> State {
        match self {
            Self::Pods { trouble, is_late: false, .. } if trouble.is_passing() => State::InProgress,
            Self::Absent { .. }
            | Self::Refused { .. }
            | Self::Pods { .. }
            | Self::InvalidSelector { .. }
            | Self::SelectorClash { .. }
            | Self::DeadlineExceeded { .. }
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

    /// In words.
    pub fn text(&self, now: Timestamp) -> String {
        match self {
            Self::Absent { kind, namespace, similar } => absent(kind, namespace, similar),
            Self::Refused { missing: Pods { count, of }, by, refusal, next_try } => {
                let next = next_try.filter(|time| *time > now).map(|time| format!(", next try {}", when(time, now)));
                let next = next.unwrap_or_default();
                format!("{count} of {} missing: {by} is refused by {refusal}{next}", many(*of, "pod"))
            }
            Self::Pods { pods, example, trouble, is_late } => pods_text(*pods, example, trouble, *is_late),
            Self::InvalidSelector { message } => format!("its selector cannot be used: {message}"),
            Self::SelectorClash { others } => format!("its selector also selects the pods of {}", list(others)),
            Self::Paused { updated: Pods { count, of } } => {
                format!("its rollout is paused: {count} of {} are of the new template", many(*of, "pod"))
            }
            Self::ScaledToZero { autoscaler, may_be_its, left } => scaled_to_zero(autoscaler, *may_be_its, *left),
            Self::MinReady { waiting: Pods { count, of }, seconds, until } => {
                let next = until.map(|time| format!(", the next one counts {}", when(time, now))).unwrap_or_default();
                format!("{count} of {} ready, but not for {seconds} s yet (minReadySeconds){next}", are(*of))
            }
            Self::DeadlineExceeded { seconds, updated: Pods { count, of } } => {
                format!(
                    "its rollout did not get on for {seconds} s (progressDeadlineSeconds): {count} of {of} pods are of the new template"
                )
            }
            Self::RollingOut { updated: Pods { count, of }, old, available } => {
                format!("rolling out: {count} of {} of the new template, {old} old, {available} available", are(*of))
            }
            Self::Scaling { ready: Pods { count, of }, there } => {
                format!("{count} of {} ready, {there} there", are(*of))
            }
            Self::NotObserved { generation, observed } => {
                format!("its newest state was not looked at yet (generation {generation}, looked at {observed})")
            }
            Self::Ready { ready: Pods { count, of } } => format!("{count} of {} there and ready", are(*of)),
            Self::PodReady => "it is ready".to_owned(),
            Self::PodDone => "it has ended well".to_owned(),
            Self::Condition { name, reason, message, since } => {
                let since = since.map(|time| format!(" {}", lasting(time, now))).unwrap_or_default();
                let said = if message.is_empty() { reason.clone() } else { line(message) };
                format!("{name} is not true{since}: {said}")
            }
            Self::Phase { phase, message } if message.is_empty() => format!("it is {phase}"),
            Self::Phase { phase, message } => format!("it is {phase}: {}", line(message)),
            Self::NothingWrong => "nothing says that anything is wrong".to_owned(),
        }
    }
}

/// `1 pod is`, `2 pods are`.
fn are(count: i64) -> String {
    format!("{} {}", many(count, "pod"), if count == 1 { "is" } else { "are" })
}

fn absent(kind: &str, namespace: &str, similar: &[String]) -> String {
    let place = if namespace.is_empty() { String::new() } else { format!(" in namespace {namespace}") };
    let near = if similar.is_empty() { String::new() } else { format!("; there is {}", list(similar)) };
    format!("there is no such {kind}{place}{near}")
}

fn scaled_to_zero(autoscaler: &str, may_be_its: bool, left: i64) -> String {
    let asked = if may_be_its { format!(" by {autoscaler}") } else { String::new() };
    let is_idle = !may_be_its && !autoscaler.is_empty();
    let idle = if is_idle { format!(", and {autoscaler} leaves alone what is at zero") } else { String::new() };
    let left = if left == 0 { String::new() } else { format!(", {left} still there") };
    format!("no pod is asked for{asked} (replicas: 0){left}{idle}")
}

fn pods_text(Pods { count, of }: Pods, example: &str, trouble: &Trouble, is_late: bool) -> String {
    let late = if is_late { " (past its progress deadline)" } else { "" };
    if example.is_empty() {
        return format!("{trouble}{late}");
    }
    let such = if count > 1 { format!("{example} and {}", many(count - 1, "other")) } else { example.to_owned() };
    format!("{count} of {} not ready: {such}: {trouble}{late}", are(of))
}
