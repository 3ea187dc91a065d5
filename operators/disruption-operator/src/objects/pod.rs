//! A pod: its owner, its health, and its condition DisruptionTarget.

use serde::Deserialize;
use shared::api::condition::{Condition, TRUE, find, is_true};
use shared::api::object::{Meta, null_as_default};
use shared::api::pod::{DISRUPTION_TARGET, Phase};
use shared::api::resource::PODS;
use shared::api::time::Time;

/// The reason of a disruption by the kubelet, which has no time limit.
///
/// Upstream: `PodReasonTerminationByKubelet`, `staging/src/k8s.io/api/core/v1/types.go`.
const TERMINATION_BY_KUBELET: &str = "TerminationByKubelet";

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawPod")]
pub struct Pod {
    pub metadata: Meta,
    pub is_ready: bool,
    pub has_ended: bool,
    /// Its condition DisruptionTarget, unless the kubelet set it.
    pub target: Option<Target>,
}

shared::view!(Pod, PODS);

/// A condition `DisruptionTarget` that is True.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The time of its last transition, if known.
    pub since: Option<Time>,
}

impl Pod {
    /// Whether the application counts on it: it is ready, has not ended, and is not being deleted.
    pub fn is_healthy(&self) -> bool {
        self.is_ready && !self.has_ended && !self.metadata.is_being_deleted()
    }

    /// Whether both states count the same for every budget.
    pub fn is_alike(&self, other: &Self) -> bool {
        let state = |pod: &Self| (pod.is_ready, pod.has_ended, pod.metadata.is_being_deleted());
        state(self) == state(other)
            && self.metadata.labels == other.metadata.labels
            && self.metadata.controller == other.metadata.controller
    }
}

#[derive(Deserialize)]
struct RawPod {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawStatus {
    #[serde(deserialize_with = "null_as_default")]
    phase: Phase,
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<Condition>,
}

impl From<RawPod> for Pod {
    fn from(RawPod { metadata, status }: RawPod) -> Self {
        let RawStatus { phase, conditions } = status;
        let is_target = |condition: &&Condition| condition.status == TRUE && condition.reason != TERMINATION_BY_KUBELET;
        let target = find(&conditions, DISRUPTION_TARGET).filter(is_target);
        Self {
            metadata,
            is_ready: is_true(&conditions, "Ready"),
            has_ended: phase.is_terminal(),
            target: target.map(|condition| Target { since: condition.last_transition_time }),
        }
    }
}
