//! The flags: those of every operator, and upstream's of this controller.

use shared::process::flags::at_least_one;

/// Deletes finished Jobs when their time to live is over.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The number of ttl-after-finished-controller workers that are allowed to sync concurrently.
    #[arg(long, default_value_t = 5, value_parser = at_least_one, value_name = "NUMBER")]
    pub concurrent_ttl_after_finished_syncs: usize,
}
