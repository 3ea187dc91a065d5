//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Names, Queue};

/// Upstream has a loop over all nodes and no queue.
pub const QUEUE: Queue = Queue::of("Node", "cloud_node_lifecycle");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "cloud-node-lifecycle-operator",
        controller: "cloud-node-lifecycle-controller",
        event_source: "cloud-node-lifecycle-controller",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::on("", "Node")],
    needed_flags: &["--cloud-provider-endpoint={cloud}"],
    ..Facts::NONE
};
