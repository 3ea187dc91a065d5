//! The condition that a pod gets before it is deleted: it says why the pod ends.
//!
//! Upstream: `addConditionAndDeletePod`, `pkg/controller/tainteviction/taint_eviction.go`.

use jiff::Timestamp;
use serde_json::{Value, json};
use shared::api::condition::TRUE;
use shared::api::pod::DISRUPTION_TARGET;
use shared::api::time::Time;

use crate::objects::{DELETION_BY_TAINT_MANAGER, DELETION_MESSAGE, Disruption, Pod};

/// The strategic merge patch of `/status`; none if the pod already has the condition. One that was True for another reason
/// keeps its time.
///
/// Upstream: `UpdatePodCondition`, `pkg/api/v1/pod/util.go`.
pub fn marked_status(pod: &Pod, now: Timestamp) -> Option<Value> {
    let mut condition = json!({
        "type": DISRUPTION_TARGET,
        "status": TRUE,
        "reason": DELETION_BY_TAINT_MANAGER,
        "message": DELETION_MESSAGE,
        "observedGeneration": pod.metadata.generation,
    });
    match pod.disruption {
        Disruption::ByTaint => return None,
        Disruption::ForAnotherReason => {}
        Disruption::No => condition["lastTransitionTime"] = json!(Time::of(now)),
    }
    Some(json!({ "status": { "conditions": [condition] } }))
}
