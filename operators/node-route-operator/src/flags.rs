//! The flags: those every operator has, those of every controller of a cloud, and upstream's of this controller.
//!
//! Left out: `--allocate-node-cidrs`, which upstream's controller does not read: a Node gets the routes of its CIDRs,
//! whoever assigned them.
//!
//! Upstream: `AddFlags`, `k8s.io/cloud-provider/options/kubecloudshared.go`.

use clap::ArgAction;
use cloud::flags::{ClusterFlags, RequiredProvider};
use shared::api::cidr::{self, Cidr};
use shared::process::flags::{GoDuration, parse_bool};

/// Keeps a cloud's routes to the pods of each Node, as node-route-controller does.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    #[command(flatten)]
    pub provider: RequiredProvider,
    #[command(flatten)]
    pub cluster: ClusterFlags,
    /// CIDR Range for Pods in cluster, or one of IPv4 and one of IPv6 with a comma between them. Routes to other
    /// destinations are never deleted. A cloud that has no routes needs none.
    #[arg(long, default_value = "", hide_default_value = true, value_parser = cluster_cidrs, value_name = "CIDRS")]
    pub cluster_cidr: Box<[Cidr]>,
    /// Should the CIDRs of Nodes be configured on the cloud provider.
    #[arg(long, action = ArgAction::Set, default_value = "true", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = parse_bool, value_name = "BOOL")]
    pub configure_cloud_routes: bool,
    /// The period for reconciling routes created for Nodes by cloud provider.
    #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = GoDuration::positive)]
    pub route_reconciliation_period: GoDuration,
}

fn cluster_cidrs(texts: &str) -> Result<Box<[Cidr]>, String> {
    if texts.trim().is_empty() { Ok(Box::default()) } else { cidr::cluster_cidrs(texts).map(Into::into) }
}
