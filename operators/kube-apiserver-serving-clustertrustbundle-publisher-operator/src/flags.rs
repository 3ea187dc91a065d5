//! The flags: those every operator has, and upstream's of this controller.

use shared::controllers::root_ca::{GivenRootCaFile, root_ca_file};

/// Publishes the CA of the apiserver's certificate in a ClusterTrustBundle.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The PEM-encoded CA bundle to publish. Without it: the CA with which this operator verifies the apiserver, from its
    /// kubeconfig or from its pod's ServiceAccount.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = root_ca_file())]
    pub root_ca_file: GivenRootCaFile,
}
