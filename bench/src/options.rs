//! What is measured, and how: the flags of the benchmark.

use std::path::PathBuf;

use crate::programs::Programs;
use crate::sizes::{
    AllSizes, BatchSizes, CloudsSizes, DevicesSizes, GarbageSizes, IdentitySizes, NodesSizes, QuotaSizes, SetsSizes,
    StorageSizes, WorkloadsSizes,
};

/// Which steps are measured, and whose work they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Set {
    /// Deployments and their pods.
    Workloads,
    /// Jobs and CronJobs.
    Batch,
    /// The EndpointSlices of Services.
    Services,
    /// Objects that go with their owner or their namespace.
    Garbage,
    /// StatefulSets, DaemonSets and budgets.
    Sets,
    /// Nodes that come, rest, are lost and lose their pods.
    Nodes,
    /// Certificates and tokens.
    Identity,
    /// Endpoints, quotas and autoscalers.
    Quota,
    /// Volumes: bound, provisioned, attached and deleted.
    Storage,
    /// Claims of devices, and objects that are stored in another version.
    Devices,
    /// Load balancers of Services, beside upstream's controllers of clouds.
    Clouds,
    /// All operators, at work on Deployments and at rest.
    All,
}

/// The steps to measure, their sizes, and the programs of the contestants.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct BenchOptions {
    /// Which steps.
    #[arg(long, value_enum, default_value_t = Set::Workloads)]
    pub(crate) set: Set,
    #[command(flatten)]
    pub(crate) programs: Programs,
    /// Only steps in whose name one of these stands; what the others of a set only prepare is left out with them.
    #[arg(long, value_delimiter = ',')]
    pub(crate) steps: Vec<String>,
    /// Whether every operator runs from the program of all, so that they share its pages.
    #[arg(long)]
    pub(crate) one_program: bool,
    /// Whether all operators are one process, which takes the place of kube-controller-manager.
    #[arg(long, conflicts_with = "one_program")]
    pub(crate) one_process: bool,
    /// Whether the contestants elect leaders; unless given, only where all operators are measured.
    #[arg(long, action = clap::ArgAction::Set)]
    pub(crate) leader_elect: Option<bool>,
    /// How many times each contestant runs all steps.
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: u32,
    /// How many of these rounds the throttled kube-controller-manager takes part in; it is slow.
    #[arg(long, default_value_t = 1)]
    pub(crate) throttled_rounds: u32,
    /// The pods of the one large Deployment.
    #[arg(long, default_value_t = 1000)]
    pub(crate) pods: i32,
    /// How many pods there are when the controllers start again.
    #[arg(long, default_value_t = 5000)]
    pub(crate) present: i32,
    /// The sizes of one set's steps alone.
    #[command(flatten)]
    pub(crate) workloads: WorkloadsSizes,
    #[command(flatten)]
    pub(crate) batch: BatchSizes,
    #[command(flatten)]
    pub(crate) garbage: GarbageSizes,
    #[command(flatten)]
    pub(crate) sets: SetsSizes,
    #[command(flatten)]
    pub(crate) nodes: NodesSizes,
    #[command(flatten)]
    pub(crate) identity: IdentitySizes,
    #[command(flatten)]
    pub(crate) quota: QuotaSizes,
    #[command(flatten)]
    pub(crate) storage: StorageSizes,
    #[command(flatten)]
    pub(crate) devices: DevicesSizes,
    #[command(flatten)]
    pub(crate) clouds: CloudsSizes,
    #[command(flatten)]
    pub(crate) all: AllSizes,
    /// Where the report goes; by default a page of the set's own in docs.
    #[arg(long)]
    pub(crate) output: Option<PathBuf>,
}

impl BenchOptions {
    /// Whether a step is asked for.
    pub(crate) fn wants(&self, step: &str) -> bool {
        self.steps.is_empty() || self.steps.iter().any(|part| step.contains(part.as_str()))
    }

    /// Whether the contestants hold Leases.
    pub(crate) fn is_leader_elected(&self) -> bool {
        self.leader_elect.unwrap_or(self.set == Set::All)
    }
}
