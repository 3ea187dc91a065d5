//! The view of a node: its zone and its CPU.

use serde::Deserialize;
use shared::api::condition::{Condition, is_true};
use shared::api::intern::Text;
use shared::api::labels::Labels;
use shared::api::object::Meta;
use shared::api::quantity::Quantity;
use shared::api::resource::NODES;

use super::labels;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawNode")]
pub struct Node {
    /// Its metadata, without labels: each node has a set of its own, which would need memory.
    pub metadata: Meta,
    pub zone: Option<Text>,
    pub is_control_plane: bool,
    pub is_ready: bool,
    pub milli_cpu: i64,
}

shared::view!(Node, NODES);

#[derive(Deserialize)]
struct RawNode {
    metadata: Meta,
    #[serde(default)]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawStatus {
    conditions: Option<Vec<Condition>>,
    allocatable: Option<RawResources>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawResources {
    cpu: String,
}

impl From<RawNode> for Node {
    fn from(RawNode { mut metadata, status }: RawNode) -> Self {
        let own = std::mem::take(&mut metadata.labels);
        let conditions = status.conditions.unwrap_or_default();
        let cpu = status.allocatable.and_then(|resources| resources.cpu.parse::<Quantity>().ok());
        Self {
            metadata,
            zone: own.get(labels::ZONE).filter(|zone| !zone.is_empty()).map(Text::new),
            is_control_plane: is_control_plane(&own),
            is_ready: is_true(&conditions, "Ready"),
            milli_cpu: cpu.map_or(0, |cpu| cpu.milli_value()),
        }
    }
}

/// Upstream: `hasExcludedLabels`, `staging/src/k8s.io/endpointslice/topologycache/topologycache.go`.
fn is_control_plane(own: &Labels) -> bool {
    [labels::CONTROL_PLANE, labels::MASTER].iter().any(|label| own.get(label).is_some())
}
