//! The condition by which a controller tells why it deletes a pod.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::DISRUPTION_TARGET;
use crate::api::condition::{Condition, TRUE, find};
use crate::api::time::Time;

/// One controller's condition [`DISRUPTION_TARGET`].
#[derive(Clone, Copy, Debug)]
pub struct DisruptionTarget {
    pub reason: &'static str,
    pub message: &'static str,
}

/// The condition [`DISRUPTION_TARGET`] of a pod, as one controller sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disruption {
    /// Missing, or not True.
    No,
    ForAnotherReason,
    /// As the controller would write it.
    Marked,
}

impl DisruptionTarget {
    /// Upstream: `UpdatePodCondition`, `pkg/api/v1/pod/util.go`, which compares the new condition with the old one.
    pub fn find(&self, conditions: &[Condition]) -> Disruption {
        let known = find(conditions, DISRUPTION_TARGET).filter(|known| known.status == TRUE);
        let Some(known) = known else { return Disruption::No };
        if known.reason == self.reason && *known.message == *self.message {
            Disruption::Marked
        } else {
            Disruption::ForAnotherReason
        }
    }

    /// The strategic merge patch of `/status`; none if the pod already has the condition. One that was True for another
    /// reason keeps its time.
    pub fn patch(&self, known: Disruption, observed_generation: Option<i64>, now: Timestamp) -> Option<Value> {
        let mut condition = json!({
            "type": DISRUPTION_TARGET,
            "status": TRUE,
            "reason": self.reason,
            "message": self.message,
        });
        if let Some(generation) = observed_generation {
            condition["observedGeneration"] = generation.into();
        }
        match known {
            Disruption::Marked => return None,
            Disruption::ForAnotherReason => {}
            Disruption::No => condition["lastTransitionTime"] = json!(Time::of(now)),
        }
        Some(json!({ "status": { "conditions": [condition] } }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::NOW;

    const TARGET: DisruptionTarget = DisruptionTarget { reason: "DeletionByTest", message: "deleted by a test" };

    fn condition(type_: &str, status: &str, reason: &str) -> Condition {
        Condition::new(type_, status, reason, TARGET.message)
    }

    #[test]
    fn a_pod_is_marked_if_the_condition_says_what_would_be_written() {
        let row = |conditions: &[Condition], expected| assert_eq!(TARGET.find(conditions), expected, "{conditions:?}");
        row(&[], Disruption::No);
        row(&[condition("Ready", "True", "DeletionByTest")], Disruption::No);
        row(&[condition(DISRUPTION_TARGET, "False", "DeletionByTest")], Disruption::No);
        row(&[condition(DISRUPTION_TARGET, "True", "PreemptionByScheduler")], Disruption::ForAnotherReason);
        row(
            &[condition("Ready", "True", ""), condition(DISRUPTION_TARGET, "True", "DeletionByTest")],
            Disruption::Marked,
        );
    }

    #[test]
    fn a_pod_is_marked_once_and_a_condition_that_was_true_keeps_its_time() {
        let patch = |known, generation| TARGET.patch(known, generation, NOW);
        let mut condition = json!({
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTest", "message": "deleted by a test",
        });
        let of = |condition: &Value| Some(json!({ "status": { "conditions": [condition] } }));
        assert_eq!(patch(Disruption::Marked, None), None);
        assert_eq!(patch(Disruption::ForAnotherReason, None), of(&condition));
        condition["lastTransitionTime"] = "2026-01-01T12:00:00Z".into();
        assert_eq!(patch(Disruption::No, None), of(&condition));
        condition["observedGeneration"] = 3.into();
        assert_eq!(patch(Disruption::No, Some(3)), of(&condition));
    }
}
