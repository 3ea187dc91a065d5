//! From evidence to a diagnosis: pure, so that every stuck state is a row of a table.
//!
//! A cause in the object itself comes first. Where the object only says that it is not done yet, a cause that keeps its
//! operators from work comes before that. Left out: reading anything.

mod batch;
mod chain;
pub(crate) mod deletion;
pub(crate) mod operators;
pub(crate) mod pods;
mod service;
mod workload;

use crate::cause::Cause;
use crate::cause::batch::Batch;
use crate::cause::cron::Cron;
use crate::cause::deletion::Deletion;
use crate::cause::service::Services;
use crate::cause::workload::{Pods, Workload};
use crate::diagnosis::Diagnosis;
use crate::evidence::Evidence;
use crate::kinds;
use crate::object::Object;

/// Conditions that are true where all is well.
const GOOD: [&str; 6] = ["Ready", "Available", "Established", "NamesAccepted", "ScalingActive", "AbleToScale"];

/// The cause of an object's state, and the evidence that leads to it.
pub fn diagnose(evidence: &Evidence) -> Diagnosis {
    let target = &evidence.target;
    let cause = match evidence.object() {
        Some(object) => of_object(evidence, object),
        None => Workload::Absent {
            kind: target.kind.clone(),
            namespace: target.namespace.clone(),
            similar: evidence.similar.clone(),
        }
        .into(),
    };
    let chain = evidence.object().map(|object| chain::of(evidence, object)).unwrap_or_default();
    Diagnosis::new(evidence, cause, chain)
}

fn of_object(evidence: &Evidence, object: Object<'_>) -> Cause {
    if let Some(alarm) = operators::alarm(evidence, object) {
        return alarm;
    }
    let found = deletion::cause(evidence, object).unwrap_or_else(|| of_kind(evidence, object));
    let problem = match turn(&found, evidence, object) {
        Turn::Nobody => None,
        Turn::Keepers => operators::problem(evidence, object, None),
        Turn::Of(operator) => operators::problem(evidence, object, Some(operator)),
        Turn::Told => operators::absent(evidence, object),
    };
    problem.unwrap_or(found)
}

fn of_kind(evidence: &Evidence, object: Object<'_>) -> Cause {
    match object.kind() {
        kind if workload::KINDS.contains(&kind) => workload::cause(evidence, object),
        "Job" => batch::job(evidence, object),
        "CronJob" => batch::cron_job(evidence, object),
        "Pod" => pod(evidence, object),
        "Service" => service::cause(evidence, object),
        _ => other(evidence, object),
    }
}

fn pod(evidence: &Evidence, pod: Object<'_>) -> Cause {
    let found = match pods::trouble(evidence, pod) {
        Some(trouble) => {
            Workload::Pods { pods: Pods { count: 1, of: 1 }, example: String::new(), trouble, is_late: false }
        }
        None if pod.text("/status/phase") == "Succeeded" => Workload::PodDone,
        None => Workload::PodReady,
    };
    found.into()
}

/// A kind of which nothing is known but what most kinds have: conditions and a phase.
fn other(evidence: &Evidence, object: Object<'_>) -> Cause {
    let bad = object.conditions().find(|condition| GOOD.contains(&condition.name) && condition.status != "True");
    if let Some(bad) = bad {
        let (name, reason, message) = (bad.name.to_owned(), bad.reason.to_owned(), bad.message.to_owned());
        return Workload::Condition { name, reason, message, since: bad.since }.into();
    }
    let phase = object.text("/status/phase");
    if ["Pending", "Released", "Failed", "Lost"].contains(&phase) {
        let events = evidence.events_of(object);
        let message = events.last().map(|event| event.text("/message")).unwrap_or_default().to_owned();
        return Workload::Phase { phase: phase.to_owned(), message }.into();
    }
    Workload::NothingWrong.into()
}

/// The one that has to act next, and so may be the cause.
enum Turn<'a> {
    /// No operator.
    Nobody,
    /// Those that keep it and what it owns.
    Keepers,
    /// This one, if it is one of the operators.
    Of(&'a str),
    /// Somebody else, as the one that keeps it wrote down; that may be long past where it is not at work.
    Told,
}

/// Whose turn it is where this only says that it is not done yet.
fn turn<'a>(cause: &'a Cause, evidence: &Evidence, object: Object<'_>) -> Turn<'a> {
    let if_due = |is_due: bool, turn: Turn<'a>| if is_due { turn } else { Turn::Nobody };
    match cause {
        Cause::Workload(
            Workload::NotObserved { .. }
            | Workload::RollingOut { .. }
            | Workload::Scaling { .. }
            | Workload::DeadlineExceeded { .. },
        )
        | Cause::Batch(Batch::Running { .. } | Batch::PodsFail { .. })
        | Cause::Services(Services::NotPublished { .. }) => Turn::Keepers,
        Cause::Deletion(Deletion::Foreground { .. } | Deletion::Orphaning { .. } | Deletion::OwnerAbsent { .. }) => {
            Turn::Of(kinds::COLLECTOR)
        }
        Cause::Deletion(Deletion::BlockedByDependents { held, remover, .. }) => {
            Turn::Of(if held.is_empty() { kinds::COLLECTOR } else { remover })
        }
        Cause::Deletion(Deletion::Finalizer { remover, .. }) => Turn::Of(remover),
        Cause::Deletion(Deletion::NamespaceContent { .. } | Deletion::NamespaceBlocked { .. })
        | Cause::Cron(Cron::MissedDeadline { .. } | Cron::TooManyMissed { .. }) => Turn::Told,
        Cause::Deletion(Deletion::NamespaceEmptying { .. } | Deletion::Going { .. }) => {
            if_due(object.kind() == "Namespace", Turn::Of("namespace-operator"))
        }
        Cause::Workload(Workload::ScaledToZero { left, .. }) => if_due(*left > 0, Turn::Keepers),
        Cause::Batch(Batch::Complete { expires, .. }) => {
            let is_due = expires.is_some_and(|expires| expires < evidence.now);
            if_due(is_due, Turn::Of("ttl-after-finished-operator"))
        }
        Cause::Cron(Cron::NotDue { next, .. }) => if_due(next.is_none_or(|next| next < evidence.now), Turn::Keepers),
        Cause::Workload(_)
        | Cause::Batch(_)
        | Cause::Cron(_)
        | Cause::Services(_)
        | Cause::Deletion(_)
        | Cause::Operators(_) => Turn::Nobody,
    }
}
