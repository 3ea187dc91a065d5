//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Finalizer, Names, Queue};

pub const QUEUE: Queue = Queue::of("Namespace", "namespace");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "namespace-operator",
        controller: "namespace-controller",
        event_source: "namespace-controller",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::keeps_with_status("", "Namespace")],
    finalizers: &[Finalizer { name: "kubernetes", once: "" }],
    ..Facts::NONE
};
