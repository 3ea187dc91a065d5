//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Memory, Names, Queue};

pub const QUEUE: Queue = Queue::of("ReplicaSet", "replicaset");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "replicaset-operator",
        controller: "replicaset-controller",
        event_source: "replicaset-controller",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::keeps_with_status("apps", "ReplicaSet")],
    memory: Some(Memory {
        keeps: "pods that have not ended, while there is a ReplicaSet; ReplicaSets",
        bytes: "450 a pod, 3,700 a ReplicaSet",
        request: "32Mi",
        limit: "384Mi",
    }),
    ..Facts::NONE
};
