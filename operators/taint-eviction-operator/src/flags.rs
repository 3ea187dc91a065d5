//! The flags: those every operator has, and one of its own. Upstream has none for this controller, and
//! the numbers of its workers are fixed here as well.

use shared::controllers::brake::share;

/// Deletes pods whose nodes have taints that they do not tolerate.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// Share of the nodes that may lose their pods at once because they seem not to be ready, and in any case
    /// 10; beyond it 1 % does each minute. 0 is no limit.
    #[arg(long, default_value_t = 0.55, value_parser = share, value_name = "SHARE")]
    pub mass_deletion_share: f64,
}
