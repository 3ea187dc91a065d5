//! The status without the entries of dead apiservers: the version that the others share, and the condition about it.
//!
//! Upstream: `SetCommonEncodingVersion`, `staging/src/k8s.io/apiserver/pkg/storageversion/updater.go`.

use jiff::Timestamp;
use serde_json::{Value, json};
use shared::api::condition::{FALSE, TRUE};
use shared::api::time::Time;

use crate::apply::Outcome;
use crate::observe::{Live, Observed};

const ALL_EQUAL: &str = "AllEncodingVersionsEqual";
const COMMON: &str = "commonEncodingVersion";

/// The StorageVersion to write; none if its status stays as it is.
pub fn next_status(observed: &Observed, outcome: &Outcome, now: Timestamp) -> Option<Value> {
    let (Some(Live::Found { object, dead: _ }), Some(entries)) = (&observed.live, &outcome.entries) else {
        return None;
    };
    let mut object = object.clone();
    let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
    let status = object["status"].as_object_mut()?;
    status.insert("storageVersions".to_owned(), json!(entries));
    let common = common_version(entries);
    let before = match common {
        Some(common) => status.insert(COMMON.to_owned(), json!(common)),
        None => status.remove(COMMON),
    };
    let has_changed = common.is_some() && before.is_some_and(|before| before.as_str() != common);
    set_condition(status.entry("conditions").or_insert_with(|| json!([])), common, has_changed, generation, now);
    Some(object)
}

/// The version in which all these apiservers store; none if they differ.
fn common_version(entries: &[Value]) -> Option<&str> {
    let mut versions = entries.iter().map(|entry| entry["encodingVersion"].as_str().unwrap_or_default());
    let first = versions.next()?;
    versions.all(|version| version == first).then_some(first)
}

/// Sets the condition in its place, or at the end. Its time moves with its status, and with the common version.
///
/// Upstream: `setStatusCondition`.
fn set_condition(conditions: &mut Value, common: Option<&str>, has_changed: bool, generation: i64, now: Timestamp) {
    let (status, reason, message) = match common {
        Some(_) => (TRUE, "CommonEncodingVersionSet", "Common encoding version set"),
        None => (FALSE, "CommonEncodingVersionUnset", "Common encoding version unset"),
    };
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    let at = conditions.iter().position(|known| known["type"] == ALL_EQUAL).unwrap_or(conditions.len());
    if at == conditions.len() {
        conditions.push(json!({ "type": ALL_EQUAL }));
    }
    let condition = &mut conditions[at];
    if condition["status"] != status || has_changed {
        condition["lastTransitionTime"] = json!(Time::of(now));
    }
    condition["status"] = status.into();
    condition["reason"] = reason.into();
    condition["message"] = message.into();
    condition["observedGeneration"] = generation.into();
}
