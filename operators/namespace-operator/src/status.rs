//! The five conditions of a namespace that is being deleted.
//!
//! Upstream: `pkg/controller/namespace/deletion/status_condition_utils.go`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use shared::api::time::Time;

use crate::objects::{Emptied, Round};
use crate::observe::Observed;

/// A condition's type, and its reason and message without a failure.
struct Type(&'static str, &'static str, &'static str);

const DISCOVERY_FAILURE: Type =
    Type("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered");
const PARSING_FAILURE: Type = Type(
    "NamespaceDeletionGroupVersionParsingFailure",
    "ParsedGroupVersions",
    "All legacy kube types successfully parsed",
);
const CONTENT_FAILURE: Type = Type(
    "NamespaceDeletionContentFailure",
    "ContentDeleted",
    "All content successfully deleted, may be waiting on finalization",
);
const CONTENT_REMAINING: Type = Type("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed");
const FINALIZERS_REMAINING: Type =
    Type("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished");

/// The failure: reason and message.
type Failure = (&'static str, String);

/// The body for `/status`; none if nothing changes.
pub fn next_status(observed: &Observed, outcome: &Round, now: Timestamp) -> Option<Value> {
    // A group version that cannot be parsed is a failure of discovery here.
    let conditions = [
        (DISCOVERY_FAILURE, discovery_failure(outcome)),
        (PARSING_FAILURE, None),
        (CONTENT_FAILURE, content_failure(outcome)),
        (CONTENT_REMAINING, content_remaining(outcome)),
        (FINALIZERS_REMAINING, finalizers_remaining(outcome)),
    ];
    let mut body = observed.namespace.0.clone();
    if !body["status"]["conditions"].is_array() {
        body["status"]["conditions"] = json!([]);
    }
    let known = body["status"]["conditions"].as_array_mut()?;
    let mut is_changed = false;
    for (kind, failure) in conditions {
        is_changed |= set(known, &kind, failure, now);
    }
    is_changed.then_some(body)
}

/// Upstream: `updateConditions`.
fn set(known: &mut Vec<Value>, kind: &Type, failure: Option<Failure>, now: Timestamp) -> bool {
    let Type(name, well_reason, well_message) = *kind;
    let status = if failure.is_some() { "True" } else { "False" };
    let (reason, message) = failure.unwrap_or_else(|| (well_reason, well_message.to_owned()));
    let time = Time::of(now);
    let Some(condition) = known.iter_mut().find(|condition| condition["type"] == name) else {
        known.push(json!({
            "type": name, "status": status, "lastTransitionTime": time, "reason": reason, "message": message,
        }));
        return true;
    };
    let is_same = condition["status"] == status && condition["reason"] == reason && condition["message"] == message;
    if is_same {
        return false;
    }
    if condition["status"] != status {
        condition["lastTransitionTime"] = json!(time);
    }
    (condition["status"], condition["reason"], condition["message"]) = (status.into(), reason.into(), message.into());
    true
}

fn discovery_failure(outcome: &Round) -> Option<Failure> {
    outcome.undiscovered.clone().map(|message| ("DiscoveryFailed", message))
}

fn content_failure(outcome: &Round) -> Option<Failure> {
    let mut errors: Vec<&str> = outcome.kinds().filter_map(|kind| kind.error.as_deref()).collect();
    errors.sort_unstable();
    let message = || format!("Failed to delete all resource types, {} remaining: {}", errors.len(), errors.join(", "));
    (!errors.is_empty()).then(|| ("ContentDeletionFailed", message()))
}

/// The kinds with remaining objects; none while pods remain, because the other kinds have not been listed.
fn looked_at(outcome: &Round) -> impl Iterator<Item = &Emptied> {
    outcome.kinds().filter(|kind| kind.remaining > 0 && !outcome.waits_for_pods())
}

fn content_remaining(outcome: &Round) -> Option<Failure> {
    let mut lines: Vec<String> = looked_at(outcome)
        .map(|kind| {
            let (plural, group) = (&kind.resource.plural, &kind.resource.group);
            format!("{plural}.{group} has {} resource instances", kind.remaining)
        })
        .collect();
    lines.sort_unstable();
    let message = || format!("Some resources are remaining: {}", lines.join(", "));
    (!lines.is_empty()).then(|| ("SomeResourcesRemain", message()))
}

fn finalizers_remaining(outcome: &Round) -> Option<Failure> {
    let mut totals: BTreeMap<&str, usize> = BTreeMap::new();
    for (finalizer, count) in looked_at(outcome).flat_map(|kind| &kind.finalizers) {
        *totals.entry(finalizer).or_default() += count;
    }
    let lines: Vec<String> =
        totals.iter().map(|(finalizer, count)| format!("{finalizer} in {count} resource instances")).collect();
    let message = || format!("Some content in the namespace has finalizers remaining: {}", lines.join(", "));
    (!lines.is_empty()).then(|| ("SomeFinalizersRemain", message()))
}
