//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Names, Queue, Which};

pub const QUEUE: Queue = Queue::of("Secret", "token_cleaner");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "token-cleaner-operator",
        controller: "token-cleaner-controller",
        event_source: "token-cleaner-controller",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::keeps("", "Secret").only(Which::WithText("/type", "bootstrap.kubernetes.io/token"))],
    ..Facts::NONE
};
