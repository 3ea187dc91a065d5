//! Budgets, their pods and the pods' owners in a line.

use std::collections::BTreeMap;
use std::sync::Arc;

use disruption_operator::apply::Outcome;
use disruption_operator::objects::owner::OwnerScale;
use disruption_operator::objects::{BudgetStatus, Failure};
use disruption_operator::observe::Observed;
use disruption_operator::observe::scales::Scales;
use disruption_operator::plan::{Plan, Stage, next_stage, plan};
use disruption_operator::status::next_status;
use serde_json::{Value, json};
use shared::testing::{NOW, ObjectBuilder, object, uid};
use shared::working::decisions::stage;

/// A budget of the pods labelled `foo=bar`, as upstream's tests have it.
pub(crate) fn budget(field: &str, limit: impl Into<Value>) -> ObjectBuilder {
    object("policy/v1", "PodDisruptionBudget", "foobar")
        .set(&["spec", field], limit)
        .set(&["spec", "selector"], json!({ "matchLabels": { "foo": "bar" } }))
}

/// A ready pod that such a budget selects.
pub(crate) fn pod(name: &str) -> ObjectBuilder {
    shared::testing::pod(name).label("foo", "bar").ready()
}

pub(crate) fn unready(name: &str) -> ObjectBuilder {
    shared::testing::pod(name).label("foo", "bar")
}

/// The same pod with an owner of this name.
pub(crate) fn owned(pod: ObjectBuilder, api_version: &str, kind: &str, name: &str) -> ObjectBuilder {
    let owner = json!({
        "apiVersion": api_version, "kind": kind, "name": name, "uid": uid(name).to_string(), "controller": true,
    });
    pod.set(&["metadata", "ownerReferences"], json!([owner]))
}

/// A ready pod of a ReplicaSet.
pub(crate) fn of_set(name: &str, set: &str) -> ObjectBuilder {
    owned(pod(name), "apps/v1", "ReplicaSet", set)
}

/// Scales by owner: the owner's name, the scaled object's name, and its replicas.
pub(crate) fn scales(owners: &[(&str, &str, i32)]) -> Scales {
    let scale = |(name, scaled, replicas): &(&str, &str, i32)| {
        (uid(name), Ok(OwnerScale { uid: uid(scaled), replicas: *replicas }))
    };
    Scales::Read(owners.iter().map(scale).collect::<BTreeMap<_, _>>())
}

/// The same scales, and an owner of this name that has none.
pub(crate) fn failing(scales: Scales, name: &str, failure: Failure) -> Scales {
    let Scales::Read(mut read) = scales else { return scales };
    read.insert(uid(name), Err(failure));
    Scales::Read(read)
}

pub(crate) fn observed(budget: &ObjectBuilder, pods: &[ObjectBuilder], scales: Scales) -> Observed {
    let pods = pods.iter().map(ObjectBuilder::build).collect();
    Observed { budget: budget.build(), pods, has_seen_evictions: false, scales, reread: None, failing_since: None }
}

/// An observation without scales.
pub(crate) fn alone(budget: &ObjectBuilder, pods: &[ObjectBuilder]) -> Observed {
    observed(budget, pods, Scales::Unread)
}

pub(crate) fn outcome(plan: Plan) -> Outcome {
    let Plan { notices: _, counts, recheck, unread } = plan;
    Outcome { counts, recheck, unread }
}

/// The status after a sync.
pub(crate) fn synced(observed: &Observed) -> BudgetStatus {
    let outcome = outcome(plan(observed, NOW));
    next_status(observed, &outcome, NOW).unwrap_or_else(|| observed.budget.status.clone())
}

/// The same observation with this status.
pub(crate) fn with_status(observed: &Observed, budget: &ObjectBuilder, status: &BudgetStatus) -> Observed {
    let disrupted: BTreeMap<&str, String> =
        status.disrupted_pods.iter().map(|(name, time)| (&**name, time.to_string())).collect();
    let status = json!({
        "observedGeneration": status.observed_generation,
        "disruptedPods": disrupted,
        "disruptionsAllowed": status.disruptions_allowed,
        "currentHealthy": status.current_healthy,
        "desiredHealthy": status.desired_healthy,
        "expectedPods": status.expected_pods,
        "conditions": status.conditions,
    });
    Observed { budget: budget.clone().set(&["status"], status).build(), ..observed.clone() }
}

/// Assert allowed, healthy, desired and expected, as upstream's `VerifyPdbStatus`.
#[track_caller]
pub(crate) fn check(observed: &Observed, expected: (i32, i32, i32, i32)) {
    let status = synced(observed);
    let found = (status.disruptions_allowed, status.current_healthy, status.desired_healthy, status.expected_pods);
    assert_eq!(found, expected, "{status:?}");
    assert_eq!(status.observed_generation, observed.budget.metadata.generation);
    let condition = status.allowed_condition().unwrap();
    assert_eq!(condition.status == "True", expected.0 > 0, "{condition:?}");
}

/// The reasons of the events.
pub(crate) fn told(observed: &Observed) -> Vec<&'static str> {
    plan(observed, NOW).notices.iter().map(|notice| notice.reason).collect()
}

/// The text of the next stage and the JSON of its reason, if it is not the last one.
pub(crate) fn early_stage(observed: &Observed) -> Option<(String, Value)> {
    let next = next_stage(observed, NOW);
    let shown = stage(&next);
    (!matches!(next, Stage::Decide(_))).then_some((shown.text, shown.reason))
}

/// Names of pods `prefix-0`, `prefix-1`, ….
pub(crate) fn names(prefix: &str, count: i32) -> Vec<String> {
    (0..count).map(|at| format!("{prefix}-{at}")).collect()
}

/// One shared view of a fixture.
pub(crate) fn view<T: serde::de::DeserializeOwned + std::fmt::Debug>(object: &ObjectBuilder) -> Arc<T> {
    object.build()
}
