//! How large the steps of each set are, as flags.

/// The steps of Deployments.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct WorkloadsSizes {
    /// How many small Deployments of two pods there are.
    #[arg(long, default_value_t = 300)]
    pub(crate) deployments: u32,
}

/// The steps of Jobs and CronJobs.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct BatchSizes {
    /// The pods of the one large Job.
    #[arg(long, default_value_t = 2000)]
    pub(crate) completions: u32,
    /// How many of them run at a time.
    #[arg(long, default_value_t = 200)]
    pub(crate) parallelism: u32,
    /// How many small Jobs of one pod there are.
    #[arg(long, default_value_t = 500)]
    pub(crate) jobs: u32,
    /// How many CronJobs are due at once.
    #[arg(long, default_value_t = 200)]
    pub(crate) cron_jobs: u32,
}

/// The steps of owners and namespaces.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct GarbageSizes {
    /// How many Deployments are deleted at once, each with one ReplicaSet.
    #[arg(long, default_value_t = 100)]
    pub(crate) trees: u32,
    /// How many pods each of these ReplicaSets has.
    #[arg(long, default_value_t = 10)]
    pub(crate) tree_pods: u32,
    /// How many objects there are in the namespace that is deleted.
    #[arg(long, default_value_t = 5000)]
    pub(crate) namespace_objects: u32,
    /// How many objects there are, owners and dependents, when the controllers start again.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) owned: u32,
}

/// The steps of StatefulSets, DaemonSets and budgets.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct SetsSizes {
    /// The pods of the one StatefulSet that doesn't order them.
    #[arg(long, default_value_t = 500)]
    pub(crate) parallel_pods: i32,
    /// How many ordered StatefulSets of three pods there are.
    #[arg(long, default_value_t = 100)]
    pub(crate) ordered: u32,
    /// How many nodes there are, each of which gets a pod of the DaemonSet.
    #[arg(long, default_value_t = 1000)]
    pub(crate) nodes: u32,
    /// For how many seconds nodes do nothing but say that they live: each writes its status once, and renews its Lease.
    #[arg(long, default_value_t = 60)]
    pub(crate) heartbeats: u64,
    /// How many budgets there are, each for a Deployment of ten pods.
    #[arg(long, default_value_t = 500)]
    pub(crate) budgets: u32,
}

/// The steps of nodes.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct NodesSizes {
    /// How many nodes there are in the end, in four zones.
    #[arg(long, default_value_t = 2000)]
    pub(crate) all_nodes: u32,
    /// How many of them come while it is measured.
    #[arg(long, default_value_t = 1000)]
    pub(crate) new_nodes: u32,
    /// For how many seconds nodes only renew their Leases.
    #[arg(long, default_value_t = 120)]
    pub(crate) node_rest: u64,
    /// How many pods are evicted.
    #[arg(long, default_value_t = 1000)]
    pub(crate) evicted: u32,
}

/// The steps of certificates and tokens.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct IdentitySizes {
    /// How many certificates are asked for.
    #[arg(long, default_value_t = 1000)]
    pub(crate) certificates: u32,
    /// How many Secrets ask for a token.
    #[arg(long, default_value_t = 1000)]
    pub(crate) tokens: u32,
}

/// The steps of Endpoints, quotas and autoscalers.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct QuotaSizes {
    /// How many Services there are, each of a Deployment.
    #[arg(long, default_value_t = 20)]
    pub(crate) services: u32,
    /// How many pods all of these Deployments have together.
    #[arg(long, default_value_t = 1000)]
    pub(crate) listed_pods: u32,
    /// How many namespaces there are with a quota each.
    #[arg(long, default_value_t = 500)]
    pub(crate) quotas: u32,
    /// How many pods come and go in all of these namespaces together.
    #[arg(long, default_value_t = 5000)]
    pub(crate) charged_pods: u32,
    /// How many autoscalers there are, each of a ReplicaSet with one pod.
    #[arg(long, default_value_t = 1000)]
    pub(crate) autoscalers: u32,
    /// How many kinds are defined when the controllers start again.
    #[arg(long, default_value_t = 300)]
    pub(crate) kinds: u32,
    /// How many objects there are then.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) kept_objects: u32,
}

/// The steps of volumes.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct StorageSizes {
    /// How many claims are bound to volumes that exist.
    #[arg(long, default_value_t = 2000)]
    pub(crate) existing_volumes: u32,
    /// How many claims get a new volume, which a pod each then uses.
    #[arg(long, default_value_t = 1000)]
    pub(crate) provisioned: u32,
    /// How many nodes these pods run on.
    #[arg(long, default_value_t = 100)]
    pub(crate) storage_nodes: u32,
}

/// The steps of devices and of storage versions.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct DevicesSizes {
    /// How many pods come and go with a claim from a template.
    #[arg(long, default_value_t = 2000)]
    pub(crate) claiming_pods: u32,
    /// How many objects are stored in another version.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) migrated: u32,
}

/// The steps of load balancers.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct CloudsSizes {
    /// How many Services get a load balancer.
    #[arg(long, default_value_t = 1000)]
    pub(crate) balanced: u32,
    /// How many nodes are behind each.
    #[arg(long, default_value_t = 100)]
    pub(crate) cloud_nodes: u32,
    /// After how many milliseconds the cloud answers.
    #[arg(long, default_value_t = 50)]
    pub(crate) cloud_latency: u64,
}

/// The steps of all operators.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct AllSizes {
    /// How many Deployments of two pods all operators see come.
    #[arg(long, default_value_t = 200)]
    pub(crate) all_deployments: u32,
    /// How many Deployments there are while all operators rest, and roll in the end.
    #[arg(long, default_value_t = 100)]
    pub(crate) rolling: u32,
    /// How many pods each of these has.
    #[arg(long, default_value_t = 100)]
    pub(crate) rolling_pods: i32,
    /// How many of them roll at once.
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rolling_at_once: u32,
    /// How many seconds of rest are measured.
    #[arg(long, default_value_t = 60)]
    pub(crate) rest: u64,
}
