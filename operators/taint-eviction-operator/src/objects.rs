//! The views of pods and nodes: the `NoExecute` taints of a node, and the tolerations of a pod for such taints.
//!
//! As upstream, the time when a taint was added is not read.

use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use shared::api::condition::{Condition, TRUE, find};
use shared::api::intern::{Interner, Text};
use shared::api::object::{Meta, null_as_default};
use shared::api::pod::DISRUPTION_TARGET;
use shared::api::resource::{NODES, PODS};
use shared::api::taint::{NOT_READY, Taint, TaintEffect, Toleration, UNREACHABLE};

/// The reason in the condition [`DISRUPTION_TARGET`].
pub const DELETION_BY_TAINT_MANAGER: &str = "DeletionByTaintManager";
pub const DELETION_MESSAGE: &str = "Taint manager: deleting due to NoExecute taint";

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
    /// Its condition [`DISRUPTION_TARGET`].
    pub disruption: Disruption,
}

shared::view!(Pod, PODS);

/// The condition [`DISRUPTION_TARGET`] of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disruption {
    /// Missing, or not True.
    No,
    ForAnotherReason,
    ByTaint,
}

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

impl Disruption {
    /// Upstream: `UpdatePodCondition`, `pkg/api/v1/pod/util.go`, which compares the new condition with the old one.
    fn of(conditions: &[Condition]) -> Self {
        let known = find(conditions, DISRUPTION_TARGET).filter(|known| known.status == TRUE);
        let Some(known) = known else { return Self::No };
        if known.reason == DELETION_BY_TAINT_MANAGER && *known.message == *DELETION_MESSAGE {
            Self::ByTaint
        } else {
            Self::ForAnotherReason
        }
    }
}

impl From<RawPod> for Pod {
    fn from(RawPod { metadata, spec, status }: RawPod) -> Self {
        let mut tolerations = spec.tolerations;
        tolerations.retain(|toleration| matches!(toleration.effect, TaintEffect::NoExecute | TaintEffect::Unset));
        Self {
            metadata,
            node: spec.node_name,
            tolerations: TOLERATIONS.intern(tolerations.as_slice()),
            disruption: Disruption::of(&status.conditions),
        }
    }
}
