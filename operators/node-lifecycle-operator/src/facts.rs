//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Exception, Facts, Lack, Names, Queue};

pub const NODES: Queue = Queue::of("Node", "node_lifecycle_controller");
pub const PODS: Queue = Queue::of("Node", "node_lifecycle_controller_pods");
pub const ROUNDS: Queue = Queue::other("node_lifecycle_rounds");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "node-lifecycle-operator",
        controller: "node-lifecycle-controller",
        event_source: "node-controller",
    },
    queues: &[NODES, PODS, ROUNDS],
    acts_on: &[Acts::on("", "Node")],
    exceptions: &[Exception {
        file: "controller/rounds.rs",
        lacks: &[Lack::Key, Lack::Preview],
        why: "it looks at all nodes together, and each node that it finds has a key of its own",
    }],
    ..Facts::NONE
};
