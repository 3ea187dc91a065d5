//! Why a controller does not have the pods that it wants.

use std::collections::HashMap;
use std::mem::discriminant;

use jiff::{SignedDuration, Timestamp};
use shared::api::names::{LABEL_VALUE_MAX_LENGTH, STATEFUL_SET_NAME_MAX_LENGTH};
use shared::controllers::revisions::REVISION_LABEL;

use crate::cause::Cause;
use crate::cause::refusal::Refusal;
use crate::cause::trouble::Trouble;
use crate::cause::workload::{Pods, Workload};
use crate::diagnose::{operators, pods};
use crate::evidence::{Evidence, event_time};
use crate::object::Object;

pub(crate) const KINDS: [&str; 5] = ["Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet"];

struct Fleet<'a> {
    evidence: &'a Evidence,
    object: Object<'a>,
    /// The owners of the pods: the object, or its `ReplicaSets`.
    keepers: Vec<Object<'a>>,
    pods: Vec<Object<'a>>,
    /// Pods that are being deleted and block their replacements.
    in_the_way: Vec<Object<'a>>,
    wanted: i64,
    ready: i64,
}

pub(crate) fn cause(evidence: &Evidence, object: Object<'_>) -> Cause {
    let fleet = Fleet::new(evidence, object);
    let found = fleet
        .of_spec()
        .or_else(|| fleet.name_too_long())
        .or_else(|| fleet.refused())
        .or_else(|| fleet.paused().or_else(|| fleet.zero()))
        .or_else(|| fleet.troubled())
        .or_else(|| fleet.on_the_way())
        .or_else(|| fleet.clash());
    found.unwrap_or_else(|| Workload::Ready { ready: fleet.of(fleet.ready) }.into())
}

fn number<T>(items: &[T]) -> i64 {
    i64::try_from(items.len()).unwrap_or(i64::MAX)
}

impl<'a> Fleet<'a> {
    fn new(evidence: &'a Evidence, object: Object<'a>) -> Self {
        let keepers: Vec<Object<'a>> = if object.kind() == "Deployment" {
            evidence.owned_by(object.uid()).filter(|owned| owned.kind() == "ReplicaSet").collect()
        } else {
            vec![object]
        };
        let owned = keepers.iter().flat_map(|keeper| evidence.owned_by(keeper.uid()));
        let owned: Vec<Object<'a>> = owned.filter(|owned| owned.kind() == "Pod").collect();
        let (pods, others): (Vec<Object<'a>>, Vec<Object<'a>>) =
            owned.into_iter().partition(|pod| pods::is_active(*pod));
        let replaces =
            object.text("/spec/strategy/type") == "Recreate" || ["StatefulSet", "DaemonSet"].contains(&object.kind());
        let in_the_way = others.into_iter().filter(|pod| replaces && pod.deleted().is_some()).collect();
        let wanted = if object.kind() == "DaemonSet" {
            object.count("/status/desiredNumberScheduled")
        } else {
            object.number("/spec/replicas").unwrap_or(1)
        };
        let ready = i64::try_from(pods.iter().filter(|pod| pods::is_ready(**pod)).count()).unwrap_or(i64::MAX);
        Self { evidence, object, keepers, pods, in_the_way, wanted, ready }
    }

    fn of(&self, count: i64) -> Pods {
        Pods { count, of: self.wanted }
    }

    fn there(&self) -> i64 {
        number(&self.pods)
    }

    fn updated(&self) -> i64 {
        let field = if self.object.kind() == "DaemonSet" { "updatedNumberScheduled" } else { "updatedReplicas" };
        self.object.count(&format!("/status/{field}"))
    }

    fn has_rollouts(&self) -> bool {
        ["Deployment", "StatefulSet", "DaemonSet"].contains(&self.object.kind())
    }

    fn of_spec(&self) -> Option<Cause> {
        let kind = self.object.kind();
        if let Some(selector) = self.object.selector().filter(|_| kind != "ReplicationController") {
            let labels = self.object.labels("/spec/template/metadata/labels");
            let message = match selector {
                Err(message) => Some(message),
                Ok(selector) if selector.is_empty() => Some("it is empty and selects everything".to_owned()),
                Ok(selector) if !selector.matches(&labels) => {
                    Some(format!("{selector} does not match the labels of the pod template"))
                }
                Ok(_) => None,
            };
            if let Some(message) = message {
                return Some(Workload::InvalidSelector { message }.into());
            }
        }
        let (generation, observed) =
            (self.object.count("/metadata/generation"), self.object.count("/status/observedGeneration"));
        (observed < generation).then(|| Workload::NotObserved { generation, observed }.into())
    }

    /// A StatefulSet's pods are labelled with the name of their revision, which begins with its own.
    fn name_too_long(&self) -> Option<Cause> {
        let lacks_pods = self.there() < self.wanted || (self.updated() < self.wanted && !self.is_on_delete());
        let length = self.object.text("/status/updateRevision").len();
        let label = REVISION_LABEL.to_owned();
        (self.object.kind() == "StatefulSet" && lacks_pods && length > LABEL_VALUE_MAX_LENGTH)
            .then(|| Workload::NameTooLong { label, length, longest: STATEFUL_SET_NAME_MAX_LENGTH }.into())
    }

    fn refused(&self) -> Option<Cause> {
        let refusal = self.keepers.iter().find_map(|keeper| {
            let own = self.evidence.owned_by(keeper.uid());
            let own = own.filter(|pod| pod.kind() == "Pod" && pods::is_active(*pod)).count();
            let wanted = if keeper.uid() == self.object.uid() { self.wanted } else { keeper.count("/spec/replicas") };
            let is_short = i64::try_from(own).is_ok_and(|own| own < wanted);
            is_short.then(|| refusal(self.evidence, *keeper)).flatten().map(|found| (keeper, found))
        });
        let condition = self.object.condition("ReplicaFailure").filter(|condition| condition.status == "True");
        let (by, (refusal, next_try)) = match (refusal, condition) {
            (Some((keeper, found)), _) => (*keeper, found),
            (None, Some(condition)) if self.there() < self.wanted => {
                (self.object, (Refusal::read(condition.message), None))
            }
            (None, _) => return None,
        };
        // Without a next retry, the condition or event may be old.
        if let Some(absent) = operators::absent(self.evidence, by).filter(|_| next_try.is_none()) {
            return Some(absent);
        }
        if let Refusal::NotAllowed { message } = &refusal {
            return Some(operators::without_role(by, message));
        }
        let missing = self.of((self.wanted - self.there()).max(1));
        let by = format!("{} {}", by.kind(), by.name());
        Some(Workload::Refused { missing, by, refusal, next_try }.into())
    }

    fn paused(&self) -> Option<Cause> {
        let is_paused = self.object.is("/spec/paused") && self.updated() < self.wanted;
        is_paused.then(|| Workload::Paused { updated: self.of(self.updated()) }.into())
    }

    fn zero(&self) -> Option<Cause> {
        let is_target = |scaler: &Object<'_>| {
            (scaler.text("/spec/scaleTargetRef/kind"), scaler.text("/spec/scaleTargetRef/name"))
                == (self.object.kind(), self.object.name())
        };
        let scaler = self.evidence.of_kind("HorizontalPodAutoscaler").find(is_target);
        let autoscaler = scaler.map(Object::called).unwrap_or_default();
        let may_be_its = scaler.is_some_and(|scaler| scaler.number("/spec/minReplicas") == Some(0));
        (self.wanted == 0).then(|| Workload::ScaledToZero { autoscaler, may_be_its, left: self.there() }.into())
    }

    fn is_late(&self) -> bool {
        self.object.condition("Progressing").is_some_and(|condition| condition.reason == "ProgressDeadlineExceeded")
    }

    /// The trouble with the highest weight, then of most pods. Trouble that resolves itself counts only past the
    /// deadline, or if a replacement waits for it.
    fn troubled(&self) -> Option<Cause> {
        let is_short = self.there() < self.wanted;
        let is_late = self.is_late();
        let troubles_of = |pods: &[Object<'a>]| -> Vec<(Object<'a>, Trouble)> {
            pods.iter().filter_map(|pod| Some((*pod, pods::trouble(self.evidence, *pod)?))).collect()
        };
        let mut troubles = troubles_of(&self.pods);
        troubles.retain(|(_, trouble)| is_late || !trouble.is_passing());
        if is_short {
            troubles.extend(troubles_of(&self.in_the_way));
        }
        let mut counts = HashMap::new();
        for (_, trouble) in &troubles {
            *counts.entry(discriminant(trouble)).or_insert(0) += 1;
        }
        let weigh = |trouble: &Trouble| (trouble.weight(), counts.get(&discriminant(trouble)).copied().unwrap_or(0));
        let (pod, trouble) = troubles.iter().rev().max_by_key(|(_, trouble)| weigh(trouble))?;
        let (_, count) = weigh(trouble);
        let of = self.wanted.max(count);
        let pods = Pods { count, of };
        Some(Workload::Pods { pods, example: pod.name().to_owned(), trouble: trouble.clone(), is_late }.into())
    }

    fn on_the_way(&self) -> Option<Cause> {
        if let Some(cause) = self.min_ready() {
            return Some(cause);
        }
        let updated = self.updated();
        let old = self.there() - updated.min(self.there());
        if self.is_late() {
            let seconds = self.object.number("/spec/progressDeadlineSeconds").unwrap_or(600);
            return Some(Workload::DeadlineExceeded { seconds, updated: self.of(updated) }.into());
        }
        if self.has_rollouts() && (updated < self.wanted || old > 0) && self.there() > 0 && !self.is_on_delete() {
            let available =
                self.object.count("/status/availableReplicas").max(self.object.count("/status/numberAvailable"));
            return Some(Workload::RollingOut { updated: self.of(updated), old, available }.into());
        }
        let is_short = self.ready < self.wanted || self.there() > self.wanted;
        is_short.then(|| Workload::Scaling { ready: self.of(self.ready), there: self.there() }.into())
    }

    fn is_on_delete(&self) -> bool {
        self.object.text("/spec/updateStrategy/type") == "OnDelete"
            || self.object.count("/spec/updateStrategy/rollingUpdate/partition") > 0
    }

    fn min_ready(&self) -> Option<Cause> {
        let seconds = self.object.count("/spec/minReadySeconds");
        let counts = |pod: &Object<'_>| -> Option<Timestamp> {
            let since = pod.condition("Ready").filter(|condition| condition.status == "True")?.since?;
            since.checked_add(SignedDuration::from_secs(seconds)).ok()
        };
        let due = self.pods.iter().filter_map(counts).filter(|time| *time > self.evidence.now);
        let due: Vec<Timestamp> = due.collect();
        let waiting = self.of(number(&due));
        (seconds > 0 && !due.is_empty() && self.ready >= self.wanted)
            .then(|| Workload::MinReady { waiting, seconds, until: due.into_iter().min() }.into())
    }

    /// Other controllers whose selectors match this template.
    fn clash(&self) -> Option<Cause> {
        let labels = self.object.labels("/spec/template/metadata/labels");
        let is_other = |other: &Object<'_>| {
            KINDS.contains(&other.kind())
                && other.namespace() == self.object.namespace()
                && other.uid() != self.object.uid()
                && !other.owners().any(|owner| owner.is_controller)
                && !self.object.is_owned_by(other.uid())
        };
        let selects = |other: &Object<'_>| match other.selector().filter(|_| other.kind() != "ReplicationController") {
            Some(Ok(selector)) => !selector.is_empty() && selector.matches(&labels),
            Some(Err(_)) => false,
            None => {
                let selector = other.labels("/spec/selector");
                !selector.is_empty() && labels.contains_all(&selector)
            }
        };
        let others = self.evidence.all().filter(is_other).filter(selects).map(Object::called);
        let others: Vec<String> = others.collect();
        let owned = self.object.owners().any(|owner| owner.is_controller);
        (!others.is_empty() && !owned).then(|| Workload::SelectorClash { others }.into())
    }
}

/// The refusal and the next retry: from the operator, a condition or an event.
pub(crate) fn refusal(evidence: &Evidence, keeper: Object<'_>) -> Option<(Refusal, Option<Timestamp>)> {
    let failing = operators::failing_key(evidence, keeper).map(|(error, next_try)| (Refusal::read(&error), next_try));
    // Other errors are the operator's own.
    let failing = failing.filter(|(refusal, _)| !matches!(refusal, Refusal::Other { .. }));
    failing.or_else(|| Some((Refusal::read(recorded_refusal(evidence, keeper)?), None)))
}

fn recorded_refusal<'a>(evidence: &'a Evidence, keeper: Object<'a>) -> Option<&'a str> {
    if let Some(condition) = keeper.condition("ReplicaFailure").filter(|condition| condition.status == "True") {
        return Some(condition.message);
    }
    let event = evidence.event(keeper, &["FailedCreate"])?;
    let created = evidence.event(keeper, &["SuccessfulCreate"]);
    let is_newest = created.is_none_or(|created| event_time(created) <= event_time(event));
    is_newest.then(|| event.text("/message"))
}
