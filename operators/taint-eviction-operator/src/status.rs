//! The condition that a pod gets before it is deleted: it says why the pod ends.
//!
//! Upstream: `addConditionAndDeletePod`, `pkg/controller/tainteviction/taint_eviction.go`.

use jiff::Timestamp;
use serde_json::Value;

use crate::objects::{DELETION_BY_TAINT_MANAGER, Pod};

/// The strategic merge patch of `/status`; none if the pod already has the condition.
pub fn marked_status(pod: &Pod, now: Timestamp) -> Option<Value> {
    DELETION_BY_TAINT_MANAGER.patch(pod.disruption, Some(pod.metadata.generation), now)
}
