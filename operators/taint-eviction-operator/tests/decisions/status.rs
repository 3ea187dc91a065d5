//! How a pod is marked before it goes.

use std::sync::Arc;

use serde_json::{Value, json};
use shared::testing::{NOW, ObjectBuilder};
use taint_eviction_operator::objects::Pod;
use taint_eviction_operator::status::marked_status;

use crate::fixtures::{marked, pod};

#[track_caller]
fn check(pod: &ObjectBuilder, transition: Option<&str>) {
    let mut condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
        "message": "Taint manager: deleting due to NoExecute taint", "observedGeneration": 3,
    });
    if let Some(time) = transition {
        condition["lastTransitionTime"] = time.into();
    }
    let read: Arc<Pod> = pod.build();
    assert_eq!(marked_status(&read, NOW), Some(json!({ "status": { "conditions": [condition] } })));
}

#[test]
fn a_pod_is_marked_once_and_a_condition_that_was_true_keeps_its_time() {
    let pod = pod(&[]).generation(3);
    check(&pod, Some("2026-01-01T12:00:00Z"));
    check(&pod.clone().ready(), Some("2026-01-01T12:00:00Z"));
    check(&marked(pod.clone(), "False", "DeletionByTaintManager"), Some("2026-01-01T12:00:00Z"));
    check(&marked(pod.clone(), "True", "EvictionByEvictionAPI"), None);
    let read: Arc<Pod> = marked(pod, "True", "DeletionByTaintManager").build();
    assert_eq!(marked_status(&read, NOW), None::<Value>);
}
