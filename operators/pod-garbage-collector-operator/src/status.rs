//! The status of a pod before it is deleted: no kubelet reports how it ended, and controllers count a pod only once its
//! phase is final.
//!
//! Upstream: `markFailedAndDeletePodWithCondition`, `pkg/controller/podgc/gc_controller.go`.

use jiff::Timestamp;
use serde_json::{Value, json};
use shared::api::condition::TRUE;
use shared::api::pod::DISRUPTION_TARGET;
use shared::api::time::Time;

use crate::objects::{DeletionReason, Pod};
use crate::plan::Deletion;

const ORPHANED_REASON: &str = "DeletionByPodGC";
const ORPHANED_MESSAGE: &str = "PodGC: node no longer exists";

/// The strategic merge patch of `/status`; none if the pod's phase is final.
pub fn failed_status(deletion: &Deletion, now: Timestamp) -> Option<Value> {
    let Deletion { pod, reason } = deletion;
    if pod.phase.is_terminal() {
        return None;
    }
    let mut status = json!({ "phase": "Failed", "observedGeneration": pod.metadata.generation });
    if *reason == DeletionReason::Orphaned {
        status["conditions"] = json!([disruption_target(pod, now)]);
    }
    Some(json!({ "status": status }))
}

/// A condition that was True before keeps its time.
///
/// Upstream: `UpdatePodCondition`, `pkg/api/v1/pod/util.go`.
fn disruption_target(pod: &Pod, now: Timestamp) -> Value {
    let mut condition = json!({
        "type": DISRUPTION_TARGET,
        "status": TRUE,
        "reason": ORPHANED_REASON,
        "message": ORPHANED_MESSAGE,
        "observedGeneration": pod.metadata.generation,
    });
    if !pod.is_disruption_target {
        condition["lastTransitionTime"] = json!(Time::of(now));
    }
    condition
}
