//! The flags: those every operator has, and upstream's of this controller.
//!
//! Left out: the burst of 500 pods, which upstream fixes too.

use shared::runtime::flags::at_least_one;

/// Keeps as many pods of each ReplicaSet as it asks for.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The number of replica sets that are allowed to sync concurrently. Larger number = more responsive replica
    /// management, but more CPU (and network) load.
    #[arg(long, default_value_t = 5, value_parser = at_least_one, value_name = "NUMBER")]
    pub concurrent_replicaset_syncs: usize,
}
