//! The flags: those every operator has, and upstream's of this controller.
//!
//! Left out: how often it looks and how long it waits for a node, which are upstream's constants.

use shared::controllers::brake::share;

/// Deletes pods that nobody else will ever delete.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// Number of terminated pods that can exist before the terminated pod garbage collector starts deleting terminated
    /// pods. If <= 0, the terminated pod garbage collector is disabled.
    #[arg(long, default_value_t = 12_500, value_name = "NUMBER")]
    pub terminated_pod_gc_threshold: i32,
    /// Share of the nodes that may lose their pods at once because they are gone, and in any case 10; beyond
    /// it 1 % does each minute. 0 is no limit.
    #[arg(long, default_value_t = 0.55, value_parser = share, value_name = "SHARE")]
    pub mass_deletion_share: f64,
}
