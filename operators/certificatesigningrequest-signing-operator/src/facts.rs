//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Names, Queue};

pub const QUEUE: Queue = Queue::of("CertificateSigningRequest", "certificate");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "certificatesigningrequest-signing-operator",
        controller: "certificatesigningrequest-signing-controller",
        event_source: "certificatesigningrequest-signing-controller",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::on("certificates.k8s.io", "CertificateSigningRequest")],
    needed_flags: &["--cluster-signing-cert-file={pki}/ca.crt", "--cluster-signing-key-file={pki}/ca.key"],
    // The apiserver checks it within a write, and logs no request.
    rights_without_request: &["sign signers"],
    ..Facts::NONE
};
