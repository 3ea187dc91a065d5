//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Memory, Names, Queue};

pub const NODES: Queue = Queue::of("Node", "noexec_taint_node");
pub const PODS: Queue = Queue::of("Pod", "noexec_taint_pod");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "taint-eviction-operator",
        controller: "taint-eviction-controller",
        event_source: "taint-eviction-controller",
    },
    queues: &[NODES, PODS],
    acts_on: &[Acts::on("", "Node"), Acts::on("", "Pod")],
    memory: Some(Memory {
        keeps: "pods of tainted nodes; beyond 16 of these, all pods",
        bytes: "taken as 450 a pod",
        request: "32Mi",
        limit: "192Mi",
    }),
    ..Facts::NONE
};
