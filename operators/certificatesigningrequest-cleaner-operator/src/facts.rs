//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, KnownDifference, Names, Queue};

pub const QUEUE: Queue = Queue::of("CertificateSigningRequest", "certificatesigningrequest_cleaner");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "certificatesigningrequest-cleaner-operator",
        controller: "certificatesigningrequest-cleaner-controller",
        event_source: "certificatesigningrequest-cleaner-controller",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::on("certificates.k8s.io", "CertificateSigningRequest")],
    differences: &[KnownDifference {
        resource: "certificatesigningrequests.certificates.k8s.io",
        paths: &[],
        decided: "delete (",
        sentence: "A request goes when its time is over; upstream looks each hour, so that it stays for up to an hour \
                   longer.",
    }],
    ..Facts::NONE
};
