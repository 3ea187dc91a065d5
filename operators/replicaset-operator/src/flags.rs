//! The flags: those every operator has, upstream's of this controller, and one of ours.
//!
//! Left out: the burst of 500 pods, which upstream fixes too.

use clap::ArgAction;
use shared::process::flags::{at_least_one, parse_bool};

/// Keeps as many pods of each ReplicaSet as it asks for.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The number of replica sets that are allowed to sync concurrently. Larger number = more responsive replica
    /// management, but more CPU (and network) load.
    #[arg(long, default_value_t = 5, value_parser = at_least_one, value_name = "NUMBER")]
    pub concurrent_replicaset_syncs: usize,
    /// Whether pods that their nodes reject one after the other are replaced with back-off, of 1s at first and at most
    /// 30s, and not at once.
    #[arg(long, action = ArgAction::Set, default_value = "true", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = parse_bool, value_name = "BOOL")]
    pub rejected_pod_backoff: bool,
}
