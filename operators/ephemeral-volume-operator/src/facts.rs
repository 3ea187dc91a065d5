//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Names, Queue};

pub const QUEUE: Queue = Queue::of("Pod", "ephemeral_volume");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "ephemeral-volume-operator",
        controller: "ephemeral-volume-controller",
        event_source: "ephemeral_volume",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::on("", "Pod")],
    rights_without_request: &["get persistentvolumeclaims"],
    ..Facts::NONE
};
