//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Names, Queue};

pub const NODES: Queue = Queue::of("Node", "Nodes");
/// Upstream has a loop over all nodes for their addresses.
pub const ADDRESSES: Queue = Queue::of("Node", "cloud_node_addresses");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "cloud-node-operator",
        controller: "cloud-node-controller",
        event_source: "cloud-node-controller",
    },
    queues: &[NODES, ADDRESSES],
    acts_on: &[Acts::on("", "Node")],
    needed_flags: &["--cloud-provider-endpoint={cloud}"],
    ..Facts::NONE
};
