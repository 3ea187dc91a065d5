//! Derives a diagnosis from the evidence: pure, so that every state is a row of a table. A cause in the object itself
//! comes first. If the object is merely unfinished, trouble of its operators comes before that.

mod batch;
mod chain;
pub(crate) mod deletion;
mod node;
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

const GOOD: [&str; 6] = ["Ready", "Available", "Established", "NamesAccepted", "ScalingActive", "AbleToScale"];

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
    let problem = match next_actor(&found, evidence, object) {
        NextActor::Nobody => None,
        NextActor::Operators => operators::problem(evidence, object, None),
        NextActor::Operator(operator) => operators::problem(evidence, object, Some(operator)),
        NextActor::Recorded => operators::absent(evidence, object),
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
        "Node" => node::cause(evidence, object).unwrap_or_else(|| other(evidence, object)),
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

/// Diagnosis of any other kind, by its conditions and phase.
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

/// The operator that has to act next, and so may be the cause.
enum NextActor<'a> {
    Nobody,
    /// The operators of the object and of its dependents.
    Operators,
    Operator(&'a str),
    /// Whoever the object's operator recorded; the record may be old if that operator is not running.
    Recorded,
}

/// Who has to act next, if this cause only says that the object is unfinished.
fn next_actor<'a>(cause: &'a Cause, evidence: &Evidence, object: Object<'_>) -> NextActor<'a> {
    let if_due = |is_due: bool, actor: NextActor<'a>| if is_due { actor } else { NextActor::Nobody };
    match cause {
        Cause::Workload(
            Workload::NotObserved { .. }
            | Workload::RollingOut { .. }
            | Workload::Scaling { .. }
            | Workload::DeadlineExceeded { .. },
        )
        | Cause::Batch(Batch::Running { .. } | Batch::PodsFail { .. })
        | Cause::Services(Services::NotPublished { .. }) => NextActor::Operators,
        Cause::Deletion(Deletion::Foreground { .. } | Deletion::Orphaning { .. } | Deletion::OwnerAbsent { .. }) => {
            NextActor::Operator(kinds::COLLECTOR)
        }
        Cause::Deletion(Deletion::BlockedByDependents { held, remover, .. }) => {
            NextActor::Operator(if held.is_empty() { kinds::COLLECTOR } else { remover })
        }
        Cause::Deletion(Deletion::Finalizer { remover, .. }) => NextActor::Operator(remover),
        Cause::Deletion(Deletion::NamespaceContent { .. } | Deletion::NamespaceBlocked { .. })
        | Cause::Cron(Cron::MissedDeadline { .. } | Cron::TooManyMissed { .. }) => NextActor::Recorded,
        Cause::Deletion(Deletion::NamespaceEmptying { .. } | Deletion::Going { .. }) => {
            if_due(object.kind() == "Namespace", NextActor::Operator("namespace-operator"))
        }
        Cause::Workload(Workload::ScaledToZero { left, .. }) => if_due(*left > 0, NextActor::Operators),
        Cause::Batch(Batch::Complete { expires, .. }) => {
            let is_due = expires.is_some_and(|expires| expires < evidence.now);
            if_due(is_due, NextActor::Operator("ttl-after-finished-operator"))
        }
        Cause::Cron(Cron::NotDue { next, .. }) => {
            if_due(next.is_none_or(|next| next < evidence.now), NextActor::Operators)
        }
        Cause::Workload(_)
        | Cause::Batch(_)
        | Cause::Cron(_)
        | Cause::Services(_)
        | Cause::Deletion(_)
        | Cause::Operators(_) => NextActor::Nobody,
    }
}
