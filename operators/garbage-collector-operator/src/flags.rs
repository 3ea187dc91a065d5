//! The flags: those every operator has, upstream's of this controller, and one of its own.
//!
//! The ignored resources cannot be configured: they are Events, which is upstream's default.

use shared::controllers::brake::share;
use shared::process::flags::{at_least_one, parse_bool};

/// Deletes objects whose owners no longer exist.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// Enables the generic garbage collector. MUST be synced with the corresponding flag of the kube-apiserver.
    #[arg(long, action = clap::ArgAction::Set, default_value = "true", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = parse_bool, value_name = "BOOL")]
    pub enable_garbage_collector: bool,
    /// The number of garbage collector workers that are allowed to sync concurrently.
    #[arg(long, default_value_t = 20, value_parser = at_least_one, value_name = "NUMBER")]
    pub concurrent_gc_syncs: usize,
    /// Slows down deletions that no user's change explains. This share of the objects of a kind that have owners, and at
    /// least 10 of them, may be deleted at once; beyond it 3 % are deleted each minute. A deletion is explained if the
    /// operator saw that an owner was deleted. 0 is no limit.
    #[arg(long, default_value_t = 0.0, value_parser = share, value_name = "SHARE")]
    pub mass_deletion_share: f64,
}
