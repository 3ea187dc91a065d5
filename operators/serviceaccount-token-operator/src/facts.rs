//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Names, Queue, Which};

pub const QUEUE: Queue = Queue::of("Secret", "serviceaccount_tokens_service");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "serviceaccount-token-operator",
        controller: "serviceaccount-token-controller",
        event_source: "serviceaccount-token-controller",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::on("", "Secret").only(Which::WithText("/type", "kubernetes.io/service-account-token"))],
    needed_flags: &["--service-account-private-key-file={pki}/sa.key", "--root-ca-file={pki}/ca.crt"],
    ..Facts::NONE
};
