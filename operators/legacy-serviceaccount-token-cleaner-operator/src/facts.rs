//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Names, Queue, Which};

pub const QUEUE: Queue = Queue::other("legacy_service_account_token_cleaner");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "legacy-serviceaccount-token-cleaner-operator",
        controller: "legacy-serviceaccount-token-cleaner-controller",
        event_source: "legacy-serviceaccount-token-cleaner-controller",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::on("", "Secret").only(Which::WithText("/type", "kubernetes.io/service-account-token"))],
    ..Facts::NONE
};
