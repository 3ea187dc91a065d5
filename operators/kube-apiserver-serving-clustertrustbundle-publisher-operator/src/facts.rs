//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Names, Queue, Which};

pub const QUEUE: Queue = Queue::other("ca_cert_publisher_cluster_trust_bundles");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "kube-apiserver-serving-clustertrustbundle-publisher-operator",
        controller: "kube-apiserver-serving-clustertrustbundle-publisher-controller",
        event_source: "kube-apiserver-serving-clustertrustbundle-publisher-controller",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::keeps("certificates.k8s.io", "ClusterTrustBundle")
        .only(Which::WithText("/spec/signerName", "kubernetes.io/kube-apiserver-serving"))],
    // The apiserver checks it within a write, and logs no request.
    rights_without_request: &["attest signers"],
    ..Facts::NONE
};
