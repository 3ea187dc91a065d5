//! The kube-apiserver-serving-clustertrustbundle-publisher-operator's process.

use std::process::ExitCode;

use kube_apiserver_serving_clustertrustbundle_publisher_operator::controller::ClusterTrustBundlePublisherOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<ClusterTrustBundlePublisherOperator>()
}
