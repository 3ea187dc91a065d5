//! Conditions of Deployments, ReplicaSets, ReplicationControllers and their like: one per type, in the order they were
//! set.
//!
//! Left out: `metav1.Condition`, which has an observedGeneration and rules of its own.

use serde::{Deserialize, Serialize};

use crate::api::intern::Text;
use crate::api::time::Time;

pub const TRUE: &str = "True";
/// The status of a condition that does not hold.
pub const FALSE: &str = "False";
pub const UNKNOWN: &str = "Unknown";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The type of the condition, for example `Available`.
    #[serde(rename = "type")]
    pub type_: Text,
    /// [`TRUE`], [`FALSE`] or [`UNKNOWN`]; any other text is kept as it is.
    pub status: Text,
    /// When it was last written. Only Deployments have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
    /// When the status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// Why, as one word in CamelCase.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub reason: Text,
    /// Why, for a person.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub message: Box<str>,
}

impl Condition {
    pub fn new(type_: &str, status: &str, reason: &str, message: impl Into<Box<str>>) -> Self {
        Self {
            type_: Text::new(type_),
            status: Text::new(status),
            last_update_time: None,
            last_transition_time: None,
            reason: Text::new(reason),
            message: message.into(),
        }
    }

    /// This condition with its last transition at `time`.
    #[must_use]
    pub fn transitioned_at(mut self, time: Time) -> Self {
        self.last_transition_time = Some(time);
        self
    }

    /// This condition with its last update at `time`.
    #[must_use]
    pub fn updated_at(mut self, time: Time) -> Self {
        self.last_update_time = Some(time);
        self
    }
}

/// The condition of this type.
///
/// Upstream: `GetDeploymentCondition`, `pkg/controller/deployment/util/deployment_util.go`.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == *type_)
}

pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == TRUE)
}

/// Sets a condition by the rule of Deployments: one of the same status and reason stays as it is, message and times
/// included; one of the same status keeps its last transition. The new condition goes to the end of the list.
///
/// Upstream: `SetDeploymentCondition`, `deployment_util.go`.
pub fn set(conditions: &mut Vec<Condition>, mut condition: Condition) {
    if let Some(current) = find(conditions, &condition.type_).filter(|current| current.status == condition.status) {
        if current.reason == condition.reason {
            return;
        }
        condition.last_transition_time = current.last_transition_time;
    }
    replace(conditions, condition);
}

/// Puts a condition at the end of the list in place of any other of its type.
pub fn replace(conditions: &mut Vec<Condition>, condition: Condition) {
    remove(conditions, &condition.type_);
    conditions.push(condition);
}

/// Removes the conditions of this type.
///
/// Upstream: `RemoveDeploymentCondition`, `deployment_util.go`.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) {
    conditions.retain(|condition| condition.type_ != *type_);
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEN: Time = Time::from_second(100);
    const NOW: Time = Time::from_second(200);

    fn condition(type_: &str, status: &str, reason: &str, time: Time) -> Condition {
        Condition::new(type_, status, reason, reason).transitioned_at(time).updated_at(time)
    }

    fn times_after_setting(condition_to_set: Condition) -> (Option<Time>, Option<Time>) {
        let mut conditions = vec![condition("Progressing", TRUE, "NewReplicaSetCreated", THEN)];
        set(&mut conditions, condition_to_set);
        let set = find(&conditions, "Progressing").unwrap();
        (set.last_transition_time, set.last_update_time)
    }

    /// Upstream: `TestSetCondition`.
    #[test]
    fn the_last_transition_moves_with_the_status_alone() {
        let same = condition("Progressing", TRUE, "NewReplicaSetCreated", NOW);
        assert_eq!(times_after_setting(same), (Some(THEN), Some(THEN)));
        let other_reason = condition("Progressing", TRUE, "ReplicaSetUpdated", NOW);
        assert_eq!(times_after_setting(other_reason), (Some(THEN), Some(NOW)));
        let other_status = condition("Progressing", FALSE, "NewReplicaSetCreated", NOW);
        assert_eq!(times_after_setting(other_status), (Some(NOW), Some(NOW)));
    }

    #[test]
    fn what_is_set_goes_to_the_end() {
        let mut conditions = vec![condition("A", TRUE, "x", THEN), condition("B", TRUE, "x", THEN)];
        set(&mut conditions, condition("A", FALSE, "x", NOW));
        set(&mut conditions, condition("C", TRUE, "x", NOW));
        let types: Vec<&str> = conditions.iter().map(|condition| condition.type_.as_str()).collect();
        assert_eq!(types, ["B", "A", "C"]);
        remove(&mut conditions, "A");
        assert_eq!(find(&conditions, "A"), None);
    }

    #[test]
    fn a_condition_holds_if_it_is_there_and_true() {
        let conditions = [condition("A", TRUE, "x", THEN), condition("B", UNKNOWN, "x", THEN)];
        assert_eq!(["A", "B", "C"].map(|type_| is_true(&conditions, type_)), [true, false, false]);
    }

    #[test]
    fn reads_and_writes_what_the_api_does() {
        let deployment = r#"{"type":"Available","status":"True","lastUpdateTime":"2026-01-02T03:04:05Z","lastTransitionTime":"2026-01-02T03:04:05Z","reason":"MinimumReplicasAvailable","message":"Deployment has minimum availability."}"#;
        let replica_set = r#"{"type":"ReplicaFailure","status":"Odd","lastTransitionTime":"2026-01-02T03:04:05Z"}"#;
        for json in [deployment, replica_set] {
            let read: Condition = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), json);
        }
        let no_time: Condition = serde_json::from_str(r#"{"type":"A","status":"True","lastUpdateTime":null}"#).unwrap();
        assert_eq!(no_time.last_update_time, None);
    }
}
