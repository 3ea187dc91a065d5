//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, KnownDifference, Names, Queue, Which};

pub const QUEUE: Queue = Queue::of("ConfigMap", "bootstrap_signer_queue");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "bootstrap-signer-operator",
        controller: "bootstrap-signer-controller",
        event_source: "bootstrap-signer-controller",
    },
    queues: &[QUEUE],
    acts_on: &[
        Acts::on("", "ConfigMap").only(Which::WithText("/metadata/name", "cluster-info")),
        Acts::on("", "Secret").only(Which::WithText("/type", "bootstrap.kubernetes.io/token")),
    ],
    differences: &[KnownDifference {
        resource: "configmaps",
        paths: &["data.jws-kubeconfig-"],
        decided: "signs nothing: expired",
        sentence: "A signature is removed when its token expires.",
    }],
    ..Facts::NONE
};
