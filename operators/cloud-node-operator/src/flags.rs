//! The flags: those every operator has, upstream's of this controller, and those of the provider.

use cloud::flags::RequiredProvider;
use shared::process::flags::{GoDuration, at_least_one};

use crate::plan::Config;

/// Initializes Nodes by what a cloud knows about their instances, and keeps their addresses.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    #[command(flatten)]
    pub provider: RequiredProvider,
    /// Number of workers concurrently synchronizing nodes.
    #[arg(long, default_value_t = 1, value_parser = at_least_one, value_name = "NUMBER")]
    pub concurrent_node_syncs: usize,
    /// Number of workers concurrently updating node statuses. If unspecified or 0, --concurrent-node-syncs is used
    /// instead.
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    pub concurrent_node_status_updates: usize,
    /// Specifies how often the controller updates nodes' status.
    #[arg(long, default_value = "5m0s", value_name = "DURATION", value_parser = GoDuration::positive)]
    pub node_status_update_frequency: GoDuration,
}

impl Flags {
    pub(crate) fn address_workers(&self) -> usize {
        match self.concurrent_node_status_updates {
            0 => self.concurrent_node_syncs,
            workers => workers,
        }
    }
}

impl From<&Flags> for Config {
    fn from(flags: &Flags) -> Self {
        Self { period: flags.node_status_update_frequency.0 }
    }
}
