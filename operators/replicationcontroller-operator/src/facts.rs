//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Memory, Names, Queue};

pub const QUEUE: Queue = Queue::of("ReplicationController", "replicationmanager");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "replicationcontroller-operator",
        controller: "replicationcontroller-controller",
        event_source: "replication-controller",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::keeps_with_status("", "ReplicationController")],
    memory: Some(Memory {
        keeps: "pods that have not ended, while there is a ReplicationController",
        bytes: "taken as replicaset-operator's",
        request: "32Mi",
        limit: "192Mi",
    }),
    ..Facts::NONE
};
