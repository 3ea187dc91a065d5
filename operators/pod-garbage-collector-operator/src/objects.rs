//! The views of pods and nodes: a pod's node and phase, whether a node can still report on its pods, and the reasons for
//! which pods are deleted.
//!
//! Pods are followed by their metadata; a pod that may be deleted is read whole.

use std::fmt;

use serde::{Deserialize, Serialize};
use shared::api::condition::{Condition, is_true};
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::pod::{DISRUPTION_TARGET, Phase};
use shared::api::resource::{NODES, PODS};
use shared::api::taint::{OUT_OF_SERVICE, Taint};
use shared::api::time::Time;

/// The reason in the status of a pod that a kubelet has evicted. Upstream: `Reason`, `pkg/kubelet/eviction`.
const EVICTED: &str = "Evicted";

/// The field selector of terminated pods; a missing or unknown phase counts as terminated.
///
/// Upstream: `isPodTerminated`, `pkg/controller/podgc/gc_controller.go`.
pub const ENDED: &str = "status.phase!=Pending,status.phase!=Running,status.phase!=Unknown";

/// The field selector of [`ENDED`] pods that have not succeeded.
pub const UNSUCCESSFUL: &str =
    "status.phase!=Pending,status.phase!=Running,status.phase!=Unknown,status.phase!=Succeeded";

#[derive(Debug, PartialEq, Deserialize)]
pub struct PodMetadata {
    pub metadata: Meta,
}

shared::view!(PodMetadata, PODS);

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawPod")]
pub struct Pod {
    pub metadata: Meta,
    /// The node that it is bound to; `""` for none.
    pub node: Text,
    pub phase: Phase,
    /// Whether its kubelet has acknowledged it: before that none of its containers can have run.
    pub has_run: bool,
    pub is_evicted: bool,
    /// Whether its condition [`DISRUPTION_TARGET`] is True.
    pub is_disruption_target: bool,
}

impl Pod {
    /// A pod that has succeeded, by its metadata alone.
    pub fn succeeded(pod: &PodMetadata) -> Self {
        Self {
            metadata: pod.metadata.clone(),
            node: Text::default(),
            phase: Phase::Succeeded,
            has_run: true,
            is_evicted: false,
            is_disruption_target: false,
        }
    }
}

shared::view!(Pod, PODS);

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawNode")]
pub struct Node {
    pub metadata: Meta,
    pub is_ready: bool,
    /// Whether a user has marked it as out of service.
    pub is_tainted: bool,
}

impl Node {
    pub fn is_out_of_service(&self) -> bool {
        self.is_tainted && !self.is_ready
    }
}

shared::view!(Node, NODES);

/// Why a pod is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum DeletionReason {
    /// It has terminated, and too many others have terminated after it.
    Terminated,
    /// It is being deleted, and its node is out of service.
    OutOfService,
    Orphaned,
    /// It is being deleted, and was never bound to a node.
    Unscheduled,
}

impl DeletionReason {
    /// As in upstream's metrics (`pkg/controller/podgc/metrics`).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Terminated => "terminated",
            Self::OutOfService => "out-of-service",
            Self::Orphaned => "orphaned",
            Self::Unscheduled => "unscheduled",
        }
    }
}

impl fmt::Display for DeletionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// By how many a number of terminated pods exceeds the threshold; a threshold that is not positive is no limit.
pub fn excess(ended: usize, threshold: i32) -> usize {
    let threshold = usize::try_from(threshold).ok().filter(|threshold| *threshold > 0);
    threshold.map_or(0, |threshold| ended.saturating_sub(threshold))
}

#[derive(Deserialize)]
struct RawPod {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawPodSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawPodStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawPodSpec {
    #[serde(deserialize_with = "null_as_default")]
    node_name: Text,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawPodStatus {
    #[serde(deserialize_with = "null_as_default")]
    phase: Phase,
    start_time: Option<Time>,
    #[serde(deserialize_with = "null_as_default")]
    reason: String,
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<Condition>,
}

impl From<RawPod> for Pod {
    fn from(RawPod { metadata, spec, status }: RawPod) -> Self {
        let RawPodStatus { phase, start_time, reason, conditions } = status;
        Self {
            metadata,
            node: spec.node_name,
            phase,
            has_run: phase != Phase::Pending || start_time.is_some(),
            is_evicted: phase == Phase::Failed && reason == EVICTED,
            is_disruption_target: is_true(&conditions, DISRUPTION_TARGET),
        }
    }
}

#[derive(Deserialize)]
struct RawNode {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawNodeSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawNodeStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawNodeSpec {
    #[serde(deserialize_with = "null_as_default")]
    taints: Vec<Taint>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawNodeStatus {
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<Condition>,
}

impl From<RawNode> for Node {
    fn from(RawNode { metadata, spec, status }: RawNode) -> Self {
        Self {
            metadata,
            is_ready: is_true(&status.conditions, "Ready"),
            is_tainted: spec.taints.iter().any(|taint| taint.key == OUT_OF_SERVICE),
        }
    }
}
