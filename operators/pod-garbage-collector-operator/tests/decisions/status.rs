//! How a pod is marked before it goes.

use std::sync::Arc;

use pod_garbage_collector_operator::objects::DeletionReason;
use pod_garbage_collector_operator::plan::Deletion;
use pod_garbage_collector_operator::status::failed_status;
use serde_json::{Value, json};
use shared::testing::{NOW, ObjectBuilder};

use crate::fixtures::pod;

#[track_caller]
fn check(pod: &ObjectBuilder, reason: DeletionReason, expected: &Value) {
    let deletion = Deletion { pod: pod.build(), reason };
    let expected = (!expected.is_null()).then(|| json!({ "status": expected }));
    assert_eq!(failed_status(&deletion, NOW), expected);
}

/// Upstream: `TestGCInspectingPatchedPodBeforeDeletion`, and of the integration tests `TestPodGcOrphanedPodsWithFinalizer`
/// and `TestTerminatingOnOutOfServiceNode`.
#[test]
fn a_pod_that_goes_has_failed_and_says_so_if_its_node_is_gone() {
    let failed = json!({ "phase": "Failed", "observedGeneration": 3 });
    for phase in ["Pending", "Running", "Unknown", ""] {
        let alive = pod("a", "node", phase).generation(3).ready();
        for reason in [DeletionReason::OutOfService, DeletionReason::Unscheduled, DeletionReason::Terminated] {
            check(&alive, reason, &failed);
        }
        // "orphaned pod should have DisruptionTarget condition added before deletion"
        let mut orphaned = failed.clone();
        orphaned["conditions"] = json!([{
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists", "observedGeneration": 3,
            "lastTransitionTime": "2026-01-01T12:00:00Z",
        }]);
        check(&alive, DeletionReason::Orphaned, &orphaned);
    }
}

#[test]
fn a_phase_that_is_final_stays_and_gets_no_condition() {
    for phase in ["Succeeded", "Failed"] {
        for reason in [
            DeletionReason::OutOfService,
            DeletionReason::Unscheduled,
            DeletionReason::Terminated,
            DeletionReason::Orphaned,
        ] {
            check(&pod("a", "node", phase), reason, &Value::Null);
        }
    }
}

#[test]
fn a_condition_that_was_true_keeps_its_time() {
    let transition = |status: &str| {
        let conditions = json!([{ "type": "DisruptionTarget", "status": status, "reason": "EvictionByEvictionAPI" }]);
        let deletion = Deletion {
            pod: Arc::clone(&pod("a", "node", "Running").set(&["status", "conditions"], conditions).build()),
            reason: DeletionReason::Orphaned,
        };
        failed_status(&deletion, NOW).unwrap()["status"]["conditions"][0].get("lastTransitionTime").cloned()
    };
    assert_eq!(transition("True"), None);
    assert_eq!(transition("False"), Some(json!("2026-01-01T12:00:00Z")));
}
