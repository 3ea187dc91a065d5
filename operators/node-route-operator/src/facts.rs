//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Exception, Facts, Lack, Names, Queue};

pub const NODES: Queue = Queue::of("Node", "route_nodes");
pub const ROUNDS: Queue = Queue::other("Routes");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "node-route-operator",
        controller: "node-route-controller",
        event_source: "route_controller",
    },
    queues: &[NODES, ROUNDS],
    acts_on: &[Acts::on("", "Node")],
    exceptions: &[Exception {
        file: "controller/rounds.rs",
        lacks: &[Lack::Key, Lack::Preview],
        why: "it lists all routes, and each Node whose routes are wrong has a key of its own",
    }],
    // The range is node-ipam-operator's.
    needed_flags: &["--cloud-provider-endpoint={cloud}", "--cluster-cidr=10.64.0.0/10"],
    // Each event has a duration in its message, so none is counted up before there are ten.
    rights_without_request: &["patch events"],
    ..Facts::NONE
};
