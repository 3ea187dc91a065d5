//! The flags: those every operator has, and upstream's of this controller.
//!
//! Left out: `--namespace-sync-period`. Informers here have no resync; a namespace that is not empty yet is looked at
//! again by a timer of its own.

use shared::flags::{OperatorFlags, SharedFlags};

/// Empties namespaces that are being deleted.
#[derive(Clone, Debug, clap::Parser)]
pub struct Flags {
    /// Those every operator has.
    #[command(flatten)]
    pub shared: SharedFlags,
    /// The number of namespace objects that are allowed to sync concurrently. Larger number = more responsive namespace
    /// termination, but more CPU (and network) load.
    #[arg(long, default_value_t = 10, value_name = "NUMBER")]
    pub concurrent_namespace_syncs: usize,
}

impl OperatorFlags for Flags {
    fn shared(&self) -> &SharedFlags {
        &self.shared
    }
}
