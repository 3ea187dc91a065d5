//! The view of a Node: its labels, and the taints that keep pods away or end them.
//!
//! Left out: its conditions, its resources and `spec.unschedulable`. Whatever of these matters to a daemon is a taint.

use std::fmt;

use serde::{Deserialize, Serialize};
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::NODES;

/// The view of a Node.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "RawNode")]
pub struct Node {
    /// Its metadata.
    pub metadata: Meta,
    /// Its taints but for those that are only a preference.
    pub taints: Box<[Taint]>,
}

shared::view!(Node, NODES);

impl Node {
    /// Its name, shared.
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

/// A taint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Taint {
    /// Its key.
    pub key: Text,
    /// Its value; mostly `""`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub value: Text,
    /// Its effect.
    pub effect: TaintEffect,
}

/// The effect of a taint on pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum TaintEffect {
    /// No new one comes.
    NoSchedule,
    /// Those that are there go, too.
    NoExecute,
}

impl TaintEffect {
    /// `None` for a preference, and for what this build does not know.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "NoSchedule" => Some(Self::NoSchedule),
            "NoExecute" => Some(Self::NoExecute),
            _ => None,
        }
    }

    /// As the API writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

/// As `kubectl` prints it.
impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, effect } = self;
        let equals = if value.is_empty() { "" } else { "=" };
        write!(f, "{key}{equals}{value}:{}", effect.as_str())
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
    taints: Vec<RawTaint>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawTaint {
    key: Text,
    value: Text,
    effect: Text,
}

impl From<RawNode> for Node {
    fn from(RawNode { metadata, spec }: RawNode) -> Self {
        let taint = |RawTaint { key, value, effect }| Some(Taint { key, value, effect: TaintEffect::parse(&effect)? });
        Self { metadata, taints: spec.taints.into_iter().filter_map(taint).collect() }
    }
}
