//! What is weighed, and for how long at most.

use std::time::Duration;

use crate::programs::Programs;

pub(crate) const DEADLINE: Duration = Duration::from_secs(3600);
pub(crate) const PODS_OF_EACH: u32 = 500;

/// The programs to measure, and the objects that they follow.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct MemoryOptions {
    #[command(flatten)]
    pub(crate) programs: Programs,
    /// How many Deployments of 500 pods there are in the end.
    #[arg(long, default_value_t = 20)]
    pub(crate) deployments: u32,
    /// Weighs each operator by itself, without objects and with as many pods.
    #[arg(long)]
    pub(crate) each: bool,
    /// With `--each`: how many Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs without pods there are besides.
    #[arg(long, requires = "each", default_value_t = 0)]
    pub(crate) workloads: u32,
    /// With `--each`: these alone.
    #[arg(long, value_delimiter = ',', requires = "each")]
    pub(crate) only: Vec<String>,
    /// Each operator from the program of all, not from its own.
    #[arg(long)]
    pub(crate) one_program: bool,
}
