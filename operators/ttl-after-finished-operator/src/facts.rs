//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Names, Queue};

pub const QUEUE: Queue = Queue::of("Job", "ttl_jobs_to_delete");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "ttl-after-finished-operator",
        controller: "ttl-after-finished-controller",
        event_source: "ttl-after-finished-controller",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::on("batch", "Job")],
    ..Facts::NONE
};
