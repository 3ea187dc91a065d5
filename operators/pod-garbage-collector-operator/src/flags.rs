//! The flags: those every operator has, upstream's of this controller, and one of its own.

use shared::controllers::brake::share;

/// Deletes pods that nothing else deletes: terminated, orphaned and stuck ones.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// Number of terminated pods that can exist before the terminated pod garbage collector starts deleting terminated
    /// pods. If <= 0, the terminated pod garbage collector is disabled.
    #[arg(long, default_value_t = 12_500, value_name = "NUMBER")]
    pub terminated_pod_gc_threshold: i32,
    /// Slows down the deletion of pods whose nodes are gone. The pods of this share of the nodes, and of at least 10 nodes,
    /// may be deleted at once; beyond it those of 3 % of the nodes are deleted each minute. 0 is no limit.
    #[arg(long, default_value_t = 0.55, value_parser = share, value_name = "SHARE")]
    pub mass_deletion_share: f64,
}
