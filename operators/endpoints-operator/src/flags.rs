//! The flags: those of every operator, and upstream's.

use shared::process::flags::{GoDuration, at_least_one};

/// Lists the pods of each Service in its Endpoints, as endpoints-controller does.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The number of endpoint syncing operations that will be done concurrently. Larger number = faster endpoint
    /// updating, but more CPU (and network) load.
    #[arg(long, default_value_t = 5, value_parser = at_least_one, value_name = "NUMBER")]
    pub concurrent_endpoint_syncs: usize,
    /// The length of endpoint updates batching period. Processing of pod changes will be delayed by this duration to
    /// join them with potential upcoming updates and reduce the overall number of endpoints updates. Larger number =
    /// higher endpoint programming latency, but lower number of endpoints revision generated.
    #[arg(long, default_value = "0s", value_name = "DURATION")]
    pub endpoint_updates_batch_period: GoDuration,
}
