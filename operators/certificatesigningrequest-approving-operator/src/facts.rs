//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Names, Queue};

pub const QUEUE: Queue = Queue::of("CertificateSigningRequest", "certificate");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "certificatesigningrequest-approving-operator",
        controller: "certificatesigningrequest-approving-controller",
        event_source: "certificatesigningrequest-approving-controller",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::keeps("certificates.k8s.io", "CertificateSigningRequest")],
    // The apiserver checks it within a write, and logs no request.
    rights_without_request: &["approve signers"],
    reviews_access: true,
    ..Facts::NONE
};
