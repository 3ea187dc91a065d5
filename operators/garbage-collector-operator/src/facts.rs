//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Finalizer, Memory, Names, Queue};

pub const DELETES: Queue = Queue::other("garbage_collector_attempt_to_delete");
pub const ORPHANS: Queue = Queue::other("garbage_collector_attempt_to_orphan");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "garbage-collector-operator",
        controller: "garbage-collector-controller",
        event_source: "garbage-collector-controller",
    },
    queues: &[DELETES, ORPHANS],
    // Changes of the graph take a lock instead.
    queues_without: &["garbage_collector_graph_changes"],
    acts_on: &[Acts::on("*", "*")],
    finalizers: &[Finalizer { name: "foregroundDeletion", once: "" }, Finalizer { name: "orphan", once: "" }],
    memory: Some(Memory {
        keeps: "every object but Events: uid, names, references",
        bytes: "280 to 490",
        request: "32Mi",
        limit: "320Mi",
    }),
    ..Facts::NONE
};
