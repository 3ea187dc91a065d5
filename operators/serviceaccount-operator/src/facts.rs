//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Names, Queue, Which};

pub const QUEUE: Queue = Queue::of("Namespace", "serviceaccount");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "serviceaccount-operator",
        controller: "serviceaccount-controller",
        event_source: "serviceaccount-controller",
    },
    queues: &[QUEUE],
    acts_on: &[
        Acts::keeps("", "ServiceAccount").only(Which::WithText("/metadata/name", "default")),
        Acts::on("", "Namespace"),
    ],
    ..Facts::NONE
};
