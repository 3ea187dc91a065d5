//! The views of pods and nodes: the `NoExecute` taints of a node, and the tolerations of a pod for such taints.
//!
//! As upstream, the time when a taint was added is not read.

use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use shared::api::condition::Condition;
use shared::api::intern::{Interner, Text};
use shared::api::object::{Meta, null_as_default};
use shared::api::pod::disruption::{Disruption, DisruptionTarget};
use shared::api::resource::{NODES, PODS};
use shared::api::taint::{NOT_READY, Taint, TaintEffect, Toleration, UNREACHABLE};

/// The condition that a pod gets before it is deleted.
pub const DELETION_BY_TAINT_MANAGER: DisruptionTarget =
    DisruptionTarget { reason: "DeletionByTaintManager", message: "Taint manager: deleting due to NoExecute taint" };

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawNode")]
pub struct Node {
    pub metadata: Meta,
    /// Its `NoExecute` taints.
    pub taints: Box<[Taint]>,
}

impl Node {
    /// Whether it has `NoExecute` taints.
    pub fn evicts_pods(&self) -> bool {
        !self.taints.is_empty()
    }

    pub fn is_tainted_for_health(&self) -> bool {
        self.taints.iter().any(is_for_health)
    }
}

shared::view!(Node, NODES);

/// Whether a taint reports its node's health: node-lifecycle-controller adds it to a node that is not ready.
pub fn is_for_health(taint: &Taint) -> bool {
    [NOT_READY, UNREACHABLE].contains(&taint.key.as_str())
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawPod")]
pub struct Pod {
    pub metadata: Meta,
    /// The node that it is bound to; `""` for none.
    pub node: Text,
    /// Its tolerations for `NoExecute` taints. Most pods share the same ones.
    pub tolerations: Arc<[Toleration]>,
    /// Its condition DisruptionTarget.
    pub disruption: Disruption,
}

shared::view!(Pod, PODS);

static TOLERATIONS: LazyLock<Interner<[Toleration]>> = LazyLock::new(Interner::new);

#[derive(Deserialize)]
struct RawNode {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawNodeSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawNodeSpec {
    #[serde(deserialize_with = "null_as_default")]
    taints: Vec<Taint>,
}

/// Upstream: `getNoExecuteTaints`, `pkg/controller/tainteviction/taint_eviction.go`.
impl From<RawNode> for Node {
    fn from(RawNode { metadata, spec }: RawNode) -> Self {
        let taints = spec.taints.into_iter().filter(|taint| taint.effect == TaintEffect::NoExecute);
        Self { metadata, taints: taints.collect() }
    }
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
    #[serde(deserialize_with = "null_as_default")]
    tolerations: Vec<Toleration>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawPodStatus {
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<Condition>,
}

impl From<RawPod> for Pod {
    fn from(RawPod { metadata, spec, status }: RawPod) -> Self {
        let mut tolerations = spec.tolerations;
        tolerations.retain(|toleration| matches!(toleration.effect, TaintEffect::NoExecute | TaintEffect::Unset));
        Self {
            metadata,
            node: spec.node_name,
            tolerations: TOLERATIONS.intern(tolerations.as_slice()),
            disruption: DELETION_BY_TAINT_MANAGER.find(&status.conditions),
        }
    }
}
