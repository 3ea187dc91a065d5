//! The flags: those every operator has, and upstream's of this controller.
//!
//! Left out: the ignored resources, which are Events upstream too unless a configuration file says otherwise.

use shared::controllers::brake::share;
use shared::runtime::flags::{at_least_one, parse_bool};

/// Deletes what its owners leave behind.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// Enables the generic garbage collector. MUST be synced with the corresponding flag of the kube-apiserver.
    #[arg(long, action = clap::ArgAction::Set, default_value = "true", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = parse_bool, value_name = "BOOL")]
    pub enable_garbage_collector: bool,
    /// The number of garbage collector workers that are allowed to sync concurrently.
    #[arg(long, default_value_t = 20, value_parser = at_least_one, value_name = "NUMBER")]
    pub concurrent_gc_syncs: usize,
    /// Share of the objects of a kind that may be deleted at once although nobody deleted their owners, and in any case
    /// 10; beyond it 1 % goes each minute. 0 is no limit.
    #[arg(long, default_value_t = 0.03, value_parser = share, value_name = "SHARE")]
    pub mass_deletion_share: f64,
}
