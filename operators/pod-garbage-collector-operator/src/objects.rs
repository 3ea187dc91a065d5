//! The views of pods and nodes: a pod's node and phase, and whether a node can still report on its pods.
//!
//! Pods are followed by their metadata; a pod is read whole when it may be deleted.
//! Left out: containers, and owners, which make no difference.

use serde::Deserialize;
use shared::api::condition::{Condition, is_true};
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::pod::{DISRUPTION_TARGET, Phase};
use shared::api::resource::{NODES, PODS};
use shared::api::taint::{OUT_OF_SERVICE, Taint};

/// The reason in the status of a pod that a kubelet has evicted. Upstream: `Reason`, `pkg/kubelet/eviction`.
const EVICTED: &str = "Evicted";

/// The field selector of pods none of whose containers will run again; a phase that is missing, or that nobody knows,
/// counts as ended.
///
/// Upstream: `isPodTerminated`, `pkg/controller/podgc/gc_controller.go`.
pub const ENDED: &str = "status.phase!=Pending,status.phase!=Running,status.phase!=Unknown";

/// Of [`ENDED`] pods those that have not succeeded.
pub const UNSUCCESSFUL: &str =
    "status.phase!=Pending,status.phase!=Running,status.phase!=Unknown,status.phase!=Succeeded";

/// A pod by its metadata.
#[derive(Debug, PartialEq, Deserialize)]
pub struct PodMetadata {
    /// Its metadata.
    pub metadata: Meta,
}

shared::view!(PodMetadata, PODS);

/// A pod.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawPod")]
pub struct Pod {
    /// Its metadata.
    pub metadata: Meta,
    /// The node that it is bound to; `""` for none.
    pub node: Text,
    /// How far it has come.
    pub phase: Phase,
    /// Its kubelet has evicted it.
    pub is_evicted: bool,
    /// It has the condition [`DISRUPTION_TARGET`] already.
    pub is_disruption_target: bool,
}

impl Pod {
    /// A pod of which nothing but its metadata was read, and which is known to have succeeded.
    pub fn succeeded(pod: &PodMetadata) -> Self {
        Self {
            metadata: pod.metadata.clone(),
            node: Text::default(),
            phase: Phase::Succeeded,
            is_evicted: false,
            is_disruption_target: false,
        }
    }
}

shared::view!(Pod, PODS);

/// A node.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawNode")]
pub struct Node {
    /// Its metadata.
    pub metadata: Meta,
    /// Its condition Ready is True.
    pub is_ready: bool,
    /// A person has said that it has failed for good.
    pub is_tainted: bool,
}

impl Node {
    /// Whether nothing that runs there can be asked to end any more.
    pub fn is_out_of_service(&self) -> bool {
        self.is_tainted && !self.is_ready
    }
}

shared::view!(Node, NODES);

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
#[serde(default)]
struct RawPodStatus {
    #[serde(deserialize_with = "null_as_default")]
    phase: Phase,
    #[serde(deserialize_with = "null_as_default")]
    reason: String,
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<Condition>,
}

impl From<RawPod> for Pod {
    fn from(RawPod { metadata, spec, status }: RawPod) -> Self {
        let RawPodStatus { phase, reason, conditions } = status;
        Self {
            metadata,
            node: spec.node_name,
            phase,
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
