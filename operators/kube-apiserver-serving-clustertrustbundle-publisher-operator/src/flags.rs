//! The flags: those every operator has, and upstream's of this controller.
//!
//! The CA is read with the flags. Left out: reading it again, which is [`shared::controllers::root_ca`]'s.

use shared::controllers::root_ca::{GivenRootCaFile, root_ca_file};

/// Publishes the CA of the apiserver's certificate in a ClusterTrustBundle.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// A PEM-encoded CA bundle: what is published. Without it: the CA by which this operator verifies the apiserver, of
    /// its kubeconfig or of its pod's ServiceAccount.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = root_ca_file())]
    pub root_ca_file: GivenRootCaFile,
}
