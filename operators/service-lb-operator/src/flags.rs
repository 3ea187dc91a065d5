//! The flags: those every operator has, those of every controller of a cloud, and upstream's of this controller.

use cloud::flags::{ClusterFlags, RequiredProvider};
use shared::process::flags::at_least_one;

/// Asks a cloud's provider for the load balancers of Services, as service-lb-controller does.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    #[command(flatten)]
    pub provider: RequiredProvider,
    #[command(flatten)]
    pub cluster: ClusterFlags,
    /// The number of services that are allowed to sync concurrently. Larger number = more responsive service
    /// management, but more CPU (and network) load.
    #[arg(long, default_value_t = 1, value_parser = at_least_one, value_name = "NUMBER")]
    pub concurrent_service_syncs: usize,
}
