//! The flags: those every operator has, and upstream's of this controller.
//!
//! The key and the CA are read with the flags, so an unusable file ends the process at its start.

use shared::controllers::root_ca::{GivenRootCaFile, root_ca_file};
use shared::process::flags::at_least_one;

use crate::apply::key::{KeyFile, key_file};

/// Fills in the Secrets that ask for a token of a ServiceAccount.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// Enables legacy secret-based tokens when set. Filename containing a PEM-encoded private RSA or ECDSA key used to
    /// sign service account tokens.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = key_file())]
    pub service_account_private_key_file: KeyFile,
    /// If set, this root certificate authority will be included in service account's token secret. This must be a valid
    /// PEM-encoded CA bundle. The default is the CA with which this operator verifies the apiserver: that of its
    /// kubeconfig or of its pod's ServiceAccount.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = root_ca_file())]
    pub root_ca_file: GivenRootCaFile,
    /// The number of service account token objects that are allowed to sync concurrently. Larger number = more
    /// responsive token generation, but more CPU (and network) load.
    #[arg(long, default_value_t = 5, value_parser = at_least_one, value_name = "NUMBER")]
    pub concurrent_serviceaccount_token_syncs: usize,
}
