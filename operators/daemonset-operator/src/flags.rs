//! The flags: those every operator has, and upstream's of this controller.
//!
//! Left out: the burst of 250 pods, which upstream fixes too.

use shared::process::flags::at_least_one;

/// Keeps a pod of each DaemonSet on every node that it is for.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The number of daemonset objects that are allowed to sync concurrently. Larger number = more responsive
    /// daemonsets, but more CPU (and network) load.
    #[arg(long, default_value_t = 2, value_parser = at_least_one, value_name = "NUMBER")]
    pub concurrent_daemonset_syncs: usize,
}
