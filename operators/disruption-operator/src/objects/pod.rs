//! A pod: its owner, whether it is healthy, and whether something outside of it is said to end it.
//!
//! Left out: everything of the spec.

use serde::Deserialize;
use shared::api::condition::{Condition, TRUE, find, is_true};
use shared::api::object::{Meta, null_as_default};
use shared::api::pod::{DISRUPTION_TARGET, Phase};
use shared::api::resource::PODS;
use shared::api::time::Time;

/// The reason of a disruption by the kubelet, which may take any time to end the pod. Upstream:
/// `PodReasonTerminationByKubelet`.
const TERMINATION_BY_KUBELET: &str = "TerminationByKubelet";

/// A pod.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawPod")]
pub struct Pod {
    /// Its metadata.
    pub metadata: Meta,
    /// Its condition Ready is True.
    pub is_ready: bool,
    /// No container of it will ever run again.
    pub has_ended: bool,
    /// Something outside of it is about to end it, the kubelet aside.
    pub target: Option<Target>,
}

shared::view!(Pod, PODS);

/// The condition `DisruptionTarget` of a pod, if it is True.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Since when, if it says so.
    pub since: Option<Time>,
}

impl Pod {
    /// Whether it makes no difference to any budget that one is replaced by the other.
    pub fn is_alike(&self, other: &Self) -> bool {
        let state = |pod: &Self| (pod.is_ready, pod.metadata.is_being_deleted());
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
