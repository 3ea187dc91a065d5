//! The view of a Node: its labels, and the taints that keep pods away or end them.
//!
//! Left out: its conditions, its resources and `spec.unschedulable`. Whatever of these matters to a daemon is a taint.

use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::NODES;
use shared::api::taint::{Taint, TaintEffect};

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "RawNode")]
pub struct Node {
    pub metadata: Meta,
    /// Its taints but for those that are only a preference.
    pub taints: Box<[Taint]>,
}

shared::view!(Node, NODES);

impl Node {
    pub fn name(&self) -> Text {
        Text::new(self.metadata.name())
    }

    /// Whether both states are for the same pods. Heartbeats and images change neither labels nor taints.
    ///
    /// Upstream: `shouldIgnoreNodeUpdate`, `pkg/controller/daemon/daemon_controller.go`.
    pub fn is_alike(&self, other: &Self) -> bool {
        self.metadata.labels == other.metadata.labels && self.taints == other.taints
    }
}

#[derive(Deserialize)]
struct RawNode {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawSpec {
    #[serde(deserialize_with = "null_as_default")]
    taints: Vec<Taint>,
}

impl From<RawNode> for Node {
    fn from(RawNode { metadata, spec }: RawNode) -> Self {
        let matters = |taint: &Taint| matches!(taint.effect, TaintEffect::NoSchedule | TaintEffect::NoExecute);
        Self { metadata, taints: spec.taints.into_iter().filter(matters).collect() }
    }
}
