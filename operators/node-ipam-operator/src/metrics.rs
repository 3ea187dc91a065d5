//! Upstream's own metrics of this controller, under upstream's names.
//!
//! Left out: the metrics of every operator (queues, requests, leadership), which are [`shared::process::metrics`]'.
//!
//! Upstream: `pkg/controller/nodeipam/ipam/cidrset/metrics.go`.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use shared::process::metrics::Metrics;

use crate::objects::cidr_set::CidrSet;

const ALLOCATIONS: &str = "node_ipam_controller_cidrset_cidrs_allocations";
const RELEASES: &str = "node_ipam_controller_cidrset_cidrs_releases";
// Upstream spells it so.
const MAX_CIDRS: &str = "node_ipam_controller_cirdset_max_cidrs";
const USAGE: &str = "node_ipam_controller_cidrset_usage_cidrs";
const TRIES: &str = "node_ipam_controller_cidrset_allocation_tries_per_request";

type ClusterCidr = [(&'static str, String); 1];

#[derive(Clone)]
struct Buckets;

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(exponential_buckets(1.0, 5.0, 5))
    }
}

#[derive(Clone)]
pub struct CidrSetMetrics {
    allocations: Family<ClusterCidr, Counter>,
    releases: Family<ClusterCidr, Counter>,
    max_cidrs: Family<ClusterCidr, Gauge>,
    usage: Family<ClusterCidr, Gauge<f64, AtomicU64>>,
    tries: Family<ClusterCidr, Histogram, Buckets>,
}

impl CidrSetMetrics {
    pub fn register(metrics: &Metrics) -> Self {
        let own = Self {
            allocations: Family::default(),
            releases: Family::default(),
            max_cidrs: Family::default(),
            usage: Family::default(),
            tries: Family::new_with_constructor(Buckets),
        };
        let Self { allocations, releases, max_cidrs, usage, tries } = own.clone();
        metrics.register(ALLOCATIONS, "Counter measuring total number of CIDR allocations", allocations);
        metrics.register(RELEASES, "Counter measuring total number of CIDR releases", releases);
        metrics.register(MAX_CIDRS, "Maximum number of CIDRs that can be allocated", max_cidrs);
        metrics.register(USAGE, "Gauge measuring percentage of allocated CIDRs", usage);
        metrics.register(TRIES, "Number of CIDRs that were not free, before the one that an allocation found", tries);
        own
    }

    /// The metrics of one range, with the blocks that are taken already.
    pub fn of(&self, set: &CidrSet) -> SetMetrics {
        let label = [("clusterCIDR", set.cluster_cidr().to_string())];
        self.max_cidrs.get_or_create(&label).set(i64::try_from(set.max_cidrs()).unwrap_or(i64::MAX));
        let own = SetMetrics {
            allocations: self.allocations.get_or_create_owned(&label),
            releases: self.releases.get_or_create_owned(&label),
            usage: self.usage.get_or_create_owned(&label),
            tries: self.tries.get_or_create_owned(&label),
        };
        own.allocated(set.used(), set);
        own
    }
}

pub struct SetMetrics {
    allocations: Counter,
    releases: Counter,
    usage: Gauge<f64, AtomicU64>,
    tries: Histogram,
}

impl SetMetrics {
    pub fn allocated(&self, blocks: u64, set: &CidrSet) {
        self.allocations.inc_by(blocks);
        self.usage.set(usage(set));
    }

    /// So many blocks of this set are free again.
    pub fn released(&self, blocks: u64, set: &CidrSet) {
        self.releases.inc_by(blocks);
        self.usage.set(usage(set));
    }

    pub fn searched(&self, tries: u64) {
        self.tries.observe(float(tries));
    }
}

/// The part of the blocks that is taken, from 0 to 1.
fn usage(set: &CidrSet) -> f64 {
    float(set.used()) / float(set.max_cidrs())
}

/// Exact up to the number of all addresses of IPv4.
fn float(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
