//! The flags: those every operator has, and upstream's of this controller.
//!
//! Left out: the batch of 500 pods and the waits between failures, which upstream fixes too.

use shared::flags::{OperatorFlags, SharedFlags};

/// Runs pods of each Job until enough have succeeded.
#[derive(Clone, Debug, clap::Parser)]
pub struct Flags {
    /// Those every operator has.
    #[command(flatten)]
    pub shared: SharedFlags,
    /// The number of job objects that are allowed to sync concurrently. Larger number = more responsive jobs, but more
    /// CPU (and network) load.
    #[arg(long, default_value_t = 5, value_name = "NUMBER")]
    pub concurrent_job_syncs: usize,
}

impl OperatorFlags for Flags {
    fn shared(&self) -> &SharedFlags {
        &self.shared
    }
}
