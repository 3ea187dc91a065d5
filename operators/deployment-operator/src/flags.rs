//! The flags: those every operator has, and upstream's of this controller.
//!
//! Left out: `--deployment-controller-sync-period`, which upstream has dropped too.

use shared::process::flags::at_least_one;

/// Rolls the pods of each Deployment from one template to the next.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The number of deployment objects that are allowed to sync concurrently. Larger number = more responsive
    /// deployments, but more CPU (and network) load.
    #[arg(long, default_value_t = 5, value_parser = at_least_one, value_name = "NUMBER")]
    pub concurrent_deployment_syncs: usize,
}
