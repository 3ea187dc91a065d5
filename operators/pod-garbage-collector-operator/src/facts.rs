//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Exception, Facts, Lack, Names, Queue};

pub const ROUNDS: Queue = Queue::other("pod_gc_collector");
pub const BINDINGS: Queue = Queue::other("pod_gc_bindings");
pub const MISSING: Queue = Queue::of("Node", "orphaned_pods_nodes");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "pod-garbage-collector-operator",
        controller: "pod-garbage-collector-controller",
        event_source: "pod-garbage-collector-controller",
    },
    queues: &[ROUNDS, BINDINGS, MISSING],
    acts_on: &[Acts::keeps("", "Pod"), Acts::on("", "Node")],
    // Only a mass loss of nodes leads to these events.
    rights_without_request: &["create events", "patch events"],
    exceptions: &[Exception {
        file: "controller/bindings.rs",
        lacks: &[Lack::Key, Lack::Preview],
        why: "it looks at all bound pods together, live, and the nodes that it finds missing have keys of their own",
    }],
    ..Facts::NONE
};
