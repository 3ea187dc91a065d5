//! The evidence in order: owners, the object, its operators' answers, its dependents.

use shared::api::explain::{Explanation, KeyState, Outcome, Stage};

use crate::diagnose::{operators, pods, workload};
use crate::diagnosis::Link;
use crate::evidence::{Evidence, event_time};
use crate::object::Object;
use crate::runner::Runner;
use crate::words::{line, many, when};

const DEPTH_MAX: usize = 4;
const PODS_MAX: usize = 5;
const EVENTS_MAX: usize = 2;
const OWNED_MAX: usize = 8;

pub(crate) fn of(evidence: &Evidence, object: Object<'_>) -> Vec<Link> {
    let mut chain = Chain { evidence, links: Vec::new() };
    let depth = chain.owners(object, 0);
    chain.object(object, depth);
    chain.around(object, depth);
    chain.links
}

struct Chain<'a> {
    evidence: &'a Evidence,
    links: Vec<Link>,
}

impl Chain<'_> {
    fn push(&mut self, depth: usize, about: impl Into<String>, text: impl Into<String>) -> &mut Link {
        let link = Link { depth, about: about.into(), text: text.into(), time: None, is_bad: false };
        let at = self.links.len();
        self.links.push(link);
        &mut self.links[at]
    }

    /// Adds the owners, the topmost first, and returns the depth of the object.
    fn owners(&mut self, object: Object<'_>, above: usize) -> usize {
        let owner = object.owners().find(|owner| owner.is_controller).or_else(|| object.owners().next());
        let Some(owner) = owner.filter(|_| above < DEPTH_MAX) else { return 0 };
        let Some(found) = self.evidence.with_uid(owner.uid) else {
            let absent = self.evidence.absent_owners.iter().any(|uid| uid == owner.uid);
            let text = if absent { "owner, not found" } else { "owner, not read" };
            self.push(0, format!("{}/{}", owner.kind.to_lowercase(), owner.name), text).is_bad = absent;
            return 1;
        };
        let depth = self.owners(found, above + 1);
        self.summary(found, depth);
        self.operators(found, depth + 1);
        depth + 1
    }

    fn summary(&mut self, object: Object<'_>, depth: usize) {
        let trouble = (object.kind() == "Pod").then(|| pods::trouble(self.evidence, object)).flatten();
        let time = object.deleted().or_else(|| object.created());
        let text = summary(object, trouble.as_ref().map(ToString::to_string));
        let link = self.push(depth, object.called(), text);
        link.time = time;
        link.is_bad = trouble.is_some_and(|trouble| !trouble.is_passing());
    }

    fn object(&mut self, object: Object<'_>, depth: usize) {
        self.summary(object, depth);
        self.conditions(object, depth + 1);
        self.events(object, depth + 1);
        self.operators(object, depth + 1);
        if depth < DEPTH_MAX {
            self.owned(object, depth + 1);
        }
    }

    fn conditions(&mut self, object: Object<'_>, depth: usize) {
        let bad = |name: &str, status: &str| match name {
            "ReplicaFailure" | "Failed" | "FailureTarget" => status == "True",
            "Available" | "Progressing" => status != "True",
            name => name.starts_with("Namespace") && status == "True",
        };
        for condition in object.conditions().filter(|condition| bad(condition.name, condition.status)) {
            let text = format!("{} ({})", line(condition.message), condition.reason);
            let link = self.push(depth, format!("condition {}={}", condition.name, condition.status), text);
            link.time = condition.since;
            link.is_bad = true;
        }
    }

    fn events(&mut self, object: Object<'_>, depth: usize) {
        let events = self.evidence.events_of(object);
        let warnings = events.into_iter().rev().filter(|event| event.text("/type") == "Warning").take(EVENTS_MAX);
        let warnings: Vec<Object<'_>> = warnings.collect();
        for event in warnings {
            let count = event.count("/count").max(event.count("/series/count"));
            let times = if count > 1 { format!(" ({})", many(count, "time")) } else { String::new() };
            let text = format!("{}{times}", line(event.text("/message")));
            self.push(depth, format!("event {}", event.text("/reason")), text).time = event_time(event);
        }
    }

    fn operators(&mut self, object: Object<'_>, depth: usize) {
        let evidence = self.evidence;
        for asked in &evidence.operators {
            let Some(answer) = operators::answer(asked, object) else { continue };
            for key in &answer.keys {
                self.key(answer, key, depth);
            }
        }
        // An operator that did not answer is listed once, at the target.
        if evidence.object().map(Object::uid) != Some(object.uid()) {
            return;
        }
        for asked in &evidence.operators {
            if let Some(silence) = &asked.silence {
                let (runner, _) = operators::runner(evidence, asked, object);
                let runs =
                    if runner == Runner::Manager { " (kube-controller-manager runs its controller)" } else { "" };
                self.push(depth, asked.operator.clone(), format!("not asked: {silence}{runs}"));
            }
        }
    }

    fn key(&mut self, answer: &Explanation, key: &KeyState, depth: usize) {
        let now = if key.now.is_empty() { "object is not in the caches".to_owned() } else { stages(&key.now) };
        let link = self.push(depth, answer.operator.clone(), format!("would do now: {now}{}", waits(key, answer)));
        link.is_bad = key.standing.failures > 0 || !key.standing.held.is_empty();
        if let Some(last) = key.last.first() {
            let failed = last.outcome == Outcome::Failed;
            let error = last.error.as_deref().map(|error| format!(", failed: {}", line(error))).unwrap_or_default();
            let count = if last.count > 1 { format!(", {} times", last.count) } else { String::new() };
            let link = self.push(
                depth,
                answer.operator.clone(),
                format!("last decision: {}{count}{error}", stages(&last.stages)),
            );
            link.time = Some(last.time);
            link.is_bad = failed;
        }
    }

    fn owned(&mut self, object: Object<'_>, depth: usize) {
        let evidence = self.evidence;
        let (of_pods, mut others): (Vec<Object<'_>>, Vec<Object<'_>>) = evidence
            .owned_by(object.uid())
            .filter(|owned| owned.kind() != "Event")
            .partition(|owned| owned.kind() == "Pod");
        // Old ReplicaSets at zero replicas are omitted.
        others.retain(|owned| {
            owned.kind() != "ReplicaSet" || owned.count("/spec/replicas") + owned.count("/status/replicas") > 0
        });
        others.sort_by_key(|owned| std::cmp::Reverse(owned.created()));
        for owned in others.iter().take(OWNED_MAX) {
            self.object(*owned, depth);
        }
        if others.len() > OWNED_MAX {
            self.push(depth, "others", format!("{} more", others.len() - OWNED_MAX));
        }
        let (troubled, well): (Vec<Object<'_>>, Vec<Object<'_>>) =
            of_pods.into_iter().partition(|pod| pods::trouble(evidence, *pod).is_some());
        for pod in troubled.iter().take(PODS_MAX) {
            self.summary(*pod, depth);
            self.events(*pod, depth + 1);
        }
        if troubled.len() > PODS_MAX {
            self.push(depth, "others", format!("{} more not ready", troubled.len() - PODS_MAX));
        }
        if !well.is_empty() {
            let count = i64::try_from(well.len()).unwrap_or(i64::MAX);
            self.push(depth, many(count, "pod"), "ready or completed");
        }
    }

    /// Adds autoscalers, budgets, quotas and a namespace that is being deleted.
    fn around(&mut self, object: Object<'_>, depth: usize) {
        let evidence = self.evidence;
        let is_target = |scaler: &Object<'_>| {
            (scaler.text("/spec/scaleTargetRef/kind"), scaler.text("/spec/scaleTargetRef/name"))
                == (object.kind(), object.name())
        };
        for scaler in evidence.of_kind("HorizontalPodAutoscaler").filter(is_target) {
            let (min, max) = (scaler.number("/spec/minReplicas").unwrap_or(1), scaler.count("/spec/maxReplicas"));
            let wants = scaler.count("/status/desiredReplicas");
            let bad =
                scaler.conditions().find(|condition| condition.name != "ScalingLimited" && condition.status == "False");
            let said = bad.map(|condition| format!("; {}", line(condition.message))).unwrap_or_default();
            self.push(depth, scaler.called(), format!("wants {wants} pods (from {min} to {max}){said}")).is_bad =
                bad.is_some();
        }
        let labels = object.labels("/spec/template/metadata/labels");
        let covers =
            |budget: &Object<'_>| budget.selector().is_some_and(|selector| selector.is_ok_and(|s| s.matches(&labels)));
        let has_pods = workload::KINDS.contains(&object.kind());
        for budget in evidence.of_kind("PodDisruptionBudget").filter(|budget| has_pods && covers(budget)) {
            let allowed = budget.count("/status/disruptionsAllowed");
            let text = format!(
                "{} of {} desired pods healthy, {} disruptions allowed",
                budget.count("/status/currentHealthy"),
                budget.count("/status/desiredHealthy"),
                allowed
            );
            self.push(depth, budget.called(), text);
        }
        for quota in evidence.of_kind("ResourceQuota") {
            let text = used_up(quota);
            if !text.is_empty() {
                self.push(depth, quota.called(), format!("exhausted: {text}")).is_bad = true;
            }
        }
        let ending = evidence.of_kind("Namespace").find(|namespace| namespace.name() == object.namespace());
        if let Some(namespace) = ending.filter(|namespace| namespace.deleted().is_some()) {
            let link = self.push(depth, namespace.called(), "is being deleted");
            link.time = namespace.deleted();
            link.is_bad = true;
        }
    }
}

/// Exhausted resources of a quota: `pods 17/17`.
fn used_up(quota: Object<'_>) -> String {
    let amounts = |pointer: &str| quota.0.pointer(pointer).and_then(serde_json::Value::as_object);
    let (Some(hard), Some(used)) = (amounts("/status/hard"), amounts("/status/used")) else { return String::new() };
    let full = hard.iter().filter_map(|(name, limit)| {
        let parse = |value: &serde_json::Value| value.as_str()?.parse::<shared::api::quantity::Quantity>().ok();
        let (limit, used) = (parse(limit)?, parse(used.get(name)?)?);
        (used >= limit).then(|| format!("{name} {used}/{limit}"))
    });
    full.collect::<Vec<_>>().join(", ")
}

fn stages(stages: &[Stage]) -> String {
    stages.iter().map(|stage| stage.text.as_str()).collect::<Vec<_>>().join("; ")
}

/// Failures, holds and timers of the key, in brackets.
fn waits(key: &KeyState, answer: &Explanation) -> String {
    let standing = &key.standing;
    let now = answer.time;
    let mut said = Vec::new();
    if standing.failures > 0 {
        let next = standing.next_try.map(|time| format!(", next retry {}", when(time, now))).unwrap_or_default();
        said.push(format!("{} in a row{next}", many(i64::from(standing.failures), "failure")));
    }
    for held in &standing.held {
        said.push(format!("held until {} of {}", held.until, held.resource));
    }
    if let Some(since) = standing.queued {
        said.push(format!("queued {}", when(since, now)));
    }
    if let Some(timer) = &standing.timer {
        let purpose = if timer.purpose.is_empty() { String::new() } else { format!(" for {}", timer.purpose) };
        said.push(format!("next sync {}{purpose}", when(timer.due, now)));
    }
    if said.is_empty() { String::new() } else { format!(" [{}]", said.join(", ")) }
}

fn summary(object: Object<'_>, trouble: Option<String>) -> String {
    let deleted = if object.deleted().is_some() { "being deleted; " } else { "" };
    let said = match object.kind() {
        "Pod" => trouble.unwrap_or_else(|| "ready".to_owned()),
        "Deployment" | "StatefulSet" | "ReplicaSet" | "ReplicationController" => {
            let updated = object.number("/status/updatedReplicas").map(|count| format!(", {count} updated"));
            format!(
                "{} desired, {} current{}, {} ready, {} available",
                object.number("/spec/replicas").unwrap_or(1),
                object.count("/status/replicas"),
                updated.unwrap_or_default(),
                object.count("/status/readyReplicas"),
                object.count("/status/availableReplicas")
            )
        }
        "DaemonSet" => format!(
            "{} desired, {} ready, {} available",
            object.count("/status/desiredNumberScheduled"),
            object.count("/status/numberReady"),
            object.count("/status/numberAvailable")
        ),
        "Job" => format!(
            "{} active, {} succeeded, {} failed",
            object.count("/status/active"),
            object.count("/status/succeeded"),
            object.count("/status/failed")
        ),
        "Service" => {
            let selector = object.labels("/spec/selector");
            let pairs: Vec<String> = selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let selects =
                if pairs.is_empty() { "no selector".to_owned() } else { format!("selects {}", pairs.join(",")) };
            format!("{}, {selects}", object.text("/spec/type"))
        }
        "CronJob" => format!("schedule `{}`", object.text("/spec/schedule")),
        "EndpointSlice" => format!("{} endpoints ({})", object.list("/endpoints").count(), object.text("/addressType")),
        _ if object.has("/status/phase") => object.text("/status/phase").to_owned(),
        _ => "exists".to_owned(),
    };
    format!("{deleted}{said}")
}
