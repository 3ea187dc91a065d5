//! The flags: those every operator has, and one of its own. Upstream has none for this controller.

use shared::controllers::brake::share;

/// Deletes pods whose nodes have taints that they do not tolerate.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// Slows down evictions from nodes that are not ready or unreachable. The pods of this share of the nodes, and of at
    /// least 10 nodes, may be deleted at once; beyond it those of 3 % of the nodes are deleted each minute. 0 is no limit.
    #[arg(long, default_value_t = 0.55, value_parser = share, value_name = "SHARE")]
    pub mass_deletion_share: f64,
}
