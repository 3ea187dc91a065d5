//! The flags: those every operator has, upstream's of this controller, and those of the provider and of the brake.

use cloud::flags::RequiredProvider;
use shared::controllers::brake::share;
use shared::process::flags::GoDuration;

use crate::plan::Config;

/// Deletes Nodes whose instances do not exist in the cloud any more, and taints those whose instances are shut down.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    #[command(flatten)]
    pub provider: RequiredProvider,
    /// The period for syncing NodeStatus in cloud-node-lifecycle-controller.
    #[arg(long, default_value = "5s", value_name = "DURATION", value_parser = GoDuration::positive)]
    pub node_monitor_period: GoDuration,
    /// Slows down the deletion of Nodes. This share of the Nodes, and at least 10, may be deleted at once; beyond it 3 %
    /// of the Nodes are deleted each minute. A Node is deleted only if the provider knows another one. 0 is no limit.
    #[arg(long, default_value_t = 0.55, value_parser = share, value_name = "SHARE")]
    pub mass_deletion_share: f64,
}

impl From<&Flags> for Config {
    fn from(flags: &Flags) -> Self {
        Self { period: flags.node_monitor_period.0, asks_about_others: flags.mass_deletion_share > 0.0 }
    }
}
