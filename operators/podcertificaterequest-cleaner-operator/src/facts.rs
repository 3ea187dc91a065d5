//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Exception, Facts, KnownDifference, Lack, Names, Queue};

pub const REQUESTS: Queue = Queue::of("PodCertificateRequest", "podcertificaterequest-cleaner");
pub const ROUNDS: Queue = Queue::other("podcertificaterequest_rounds");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "podcertificaterequest-cleaner-operator",
        controller: "podcertificaterequest-cleaner-controller",
        event_source: "podcertificaterequest-cleaner-controller",
    },
    queues: &[REQUESTS, ROUNDS],
    acts_on: &[Acts::keeps("certificates.k8s.io", "PodCertificateRequest")],
    differences: &[KnownDifference {
        resource: "podcertificaterequests.certificates.k8s.io",
        paths: &[],
        decided: "delete (",
        sentence: "A request goes when it is 15 minutes old; upstream looks every five minutes, so that it stays for \
                   up to five minutes longer.",
    }],
    // A request is read and deleted a quarter of an hour after it was created, and no life takes that long.
    rights_without_request: &["get podcertificaterequests", "delete podcertificaterequests"],
    exceptions: &[
        Exception {
            file: "controller.rs",
            lacks: &[Lack::Preview],
            why: "it follows no request: each is read before anything is decided, which is what its preview says",
        },
        Exception {
            file: "controller/rounds.rs",
            lacks: &[Lack::Key, Lack::Preview],
            why: "it looks at all requests together, live, and each request that it finds has a key of its own",
        },
    ],
    ..Facts::NONE
};
