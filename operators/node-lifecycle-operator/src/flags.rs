//! The flags: those every operator has, and upstream's of this controller.

use shared::process::flags::GoDuration;

use crate::plan::Config;

/// Watches the health of nodes, and taints those that are not well.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The period for checking the health of all nodes.
    #[arg(long, default_value = "5s", value_name = "DURATION", value_parser = GoDuration::positive)]
    pub node_monitor_period: GoDuration,
    /// Amount of time which we allow running Node to be unresponsive before marking it unhealthy. Must be several times
    /// the period at which a kubelet renews its Lease.
    #[arg(long, default_value = "50s", value_name = "DURATION")]
    pub node_monitor_grace_period: GoDuration,
    /// Amount of time which we allow starting Node to be unresponsive before marking it unhealthy.
    #[arg(long, default_value = "1m0s", value_name = "DURATION")]
    pub node_startup_grace_period: GoDuration,
    /// Number of nodes per second on which pods are deleted in case of node failure when a zone is healthy (see
    /// --unhealthy-zone-threshold for definition of healthy/unhealthy). Zone refers to entire cluster in non-multizone
    /// clusters.
    #[arg(long, default_value_t = 0.1, value_name = "NUMBER")]
    pub node_eviction_rate: f64,
    /// Number of nodes per second on which pods are deleted in case of node failure when a zone is unhealthy (see
    /// --unhealthy-zone-threshold for definition of healthy/unhealthy). Zone refers to entire cluster in non-multizone
    /// clusters. This value is implicitly overridden to 0 if the cluster size is smaller than
    /// --large-cluster-size-threshold.
    #[arg(long, default_value_t = 0.01, value_name = "NUMBER")]
    pub secondary_node_eviction_rate: f64,
    /// Number of nodes from which node-lifecycle-controller treats the cluster as large for the eviction logic
    /// purposes. --secondary-node-eviction-rate is implicitly overridden to 0 for clusters this size or smaller.
    /// Notice: If nodes reside in multiple zones, this threshold will be considered as zone node size threshold for
    /// each zone to determine node eviction rate independently.
    #[arg(long, default_value_t = 50, value_name = "NUMBER")]
    pub large_cluster_size_threshold: i32,
    /// Fraction of Nodes in a zone which needs to be not Ready (minimum 3) for zone to be treated as unhealthy.
    #[arg(long, default_value_t = 0.55, value_name = "NUMBER")]
    pub unhealthy_zone_threshold: f64,
}

impl From<&Flags> for Config {
    fn from(flags: &Flags) -> Self {
        Self {
            period: flags.node_monitor_period.0,
            grace: flags.node_monitor_grace_period.0,
            startup_grace: flags.node_startup_grace_period.0,
            rate: flags.node_eviction_rate,
            secondary_rate: flags.secondary_node_eviction_rate,
            large_zone: flags.large_cluster_size_threshold,
            unhealthy_threshold: flags.unhealthy_zone_threshold,
        }
    }
}
