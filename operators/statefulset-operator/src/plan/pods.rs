//! What a pod is to its StatefulSet.
//!
//! Upstream: `pkg/controller/statefulset/stateful_set_utils.go`.

use shared::api::pod::Phase;

use crate::objects::names::{claim_name, is_pod_name, ordinal};
use crate::objects::pod::Pod;
use crate::objects::{POD_NAME_LABEL, StatefulSet, UpdateType};

/// Whether name and label say the same.
///
/// Upstream: `identityMatches`.
pub fn identity_matches(set: &StatefulSet, pod: &Pod) -> bool {
    let meta = &pod.metadata;
    is_pod_name(set.metadata.name(), meta.name()) && meta.labels.get(POD_NAME_LABEL) == Some(meta.name())
}

/// Whether the pod's volumes are the claims of its ordinal.
///
/// Upstream: `storageMatches`.
pub fn storage_matches(set: &StatefulSet, pod: &Pod) -> bool {
    let ordinal = ordinal(pod);
    let is_right = |template: &str| {
        pod.claim(template).is_some_and(|claim| claim == claim_name(template, set.metadata.name(), ordinal))
    };
    ordinal >= 0 && set.spec.volume_claim_templates.iter().all(|template| is_right(&template.name))
}

/// Upstream: `isRunningAndReady`.
pub fn is_running_and_ready(pod: &Pod) -> bool {
    pod.phase == Phase::Running && pod.readiness.is_ready()
}

/// Whether a pod of this ordinal is made from the current revision, and not from the update revision.
///
/// Upstream: `newVersionedStatefulSetPod`.
pub fn is_of_current(set: &StatefulSet, ordinal: i64) -> bool {
    let strategy = &set.spec.update_strategy;
    match &strategy.rolling_update {
        Some(_) => ordinal < set.spec.partition_start(),
        None if strategy.type_ == UpdateType::RollingUpdate => {
            ordinal < i64::from(set.spec.start) + i64::from(set.status.current_replicas)
        }
        None => false,
    }
}
