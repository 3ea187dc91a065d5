//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Names, Queue, Which};

pub const QUEUE: Queue = Queue::of("Namespace", "root_ca_cert_publisher");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "root-ca-certificate-publisher-operator",
        controller: "root-ca-certificate-publisher-controller",
        event_source: "root-ca-certificate-publisher-controller",
    },
    queues: &[QUEUE],
    acts_on: &[
        Acts::keeps("", "ConfigMap").only(Which::WithText("/metadata/name", "kube-root-ca.crt")),
        Acts::on("", "Namespace"),
    ],
    ..Facts::NONE
};
