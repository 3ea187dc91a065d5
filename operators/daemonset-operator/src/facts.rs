//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Memory, Names, Queue};

pub const SETS: Queue = Queue::of("DaemonSet", "daemonset");
pub const NODES: Queue = Queue::of("Node", "daemonset-node-updates");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "daemonset-operator",
        controller: "daemonset-controller",
        event_source: "daemonset-controller",
    },
    queues: &[SETS, NODES],
    acts_on: &[Acts::keeps_with_status("apps", "DaemonSet")],
    memory: Some(Memory {
        keeps: "pods of namespaces with a DaemonSet; DaemonSets and their revisions",
        bytes: "390 a pod, 12,000 a DaemonSet",
        request: "32Mi",
        limit: "192Mi",
    }),
    ..Facts::NONE
};
