//! Upstream's own metrics of this controller, under upstream's names.
//!
//! Left out: what every operator shows (queues, requests, leadership), which is [`shared::runtime::metrics`]'.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use shared::api::object::Key;
use shared::runtime::metrics::Metrics;

use crate::objects::PodManagementPolicy;
use crate::plan::rolling::Unavailability;

const MAX_UNAVAILABLE: &str = "statefulset_controller_statefulset_max_unavailable";
const MAX_UNAVAILABLE_HELP: &str = "Maximum number of unavailable pods allowed during StatefulSet rolling updates";
const UNAVAILABLE_REPLICAS: &str = "statefulset_controller_statefulset_unavailable_replicas";
const UNAVAILABLE_REPLICAS_HELP: &str = "Current number of unavailable pods in StatefulSet";
const STALE_SYNC_SKIPS: &str = "statefulset_controller_stale_sync_skips";
const STALE_SYNC_SKIPS_HELP: &str = "Total number of StatefulSet syncs skipped due to a stale watch cache";

type GroupResource = [(&'static str, String); 2];
type OfSet = [(&'static str, String); 3];

/// The metrics of this operator.
#[derive(Clone)]
pub struct StatefulSetMetrics {
    max_unavailable: Family<OfSet, Gauge>,
    unavailable_replicas: Family<OfSet, Gauge>,
    stale_sync_skips: Family<GroupResource, Counter>,
}

impl StatefulSetMetrics {
    /// Registers them with the process's metrics.
    ///
    /// Upstream: `Register`, `pkg/controller/statefulset/metrics/metrics.go`, which forgets the last of them.
    pub fn register(metrics: &Metrics) -> Self {
        let (max_unavailable, unavailable_replicas) = (Family::default(), Family::default());
        let stale_sync_skips = Family::default();
        metrics.register(MAX_UNAVAILABLE, MAX_UNAVAILABLE_HELP, max_unavailable.clone());
        metrics.register(UNAVAILABLE_REPLICAS, UNAVAILABLE_REPLICAS_HELP, unavailable_replicas.clone());
        metrics.register(STALE_SYNC_SKIPS, STALE_SYNC_SKIPS_HELP, stale_sync_skips.clone());
        Self { max_unavailable, unavailable_replicas, stale_sync_skips }
    }

    /// Shows how many pods of a StatefulSet are unavailable, and how many may be.
    pub fn observe(&self, key: &Key, policy: PodManagementPolicy, unavailability: Unavailability) {
        let Unavailability { unavailable, max } = unavailability;
        let labels = of_set(key, policy);
        self.unavailable_replicas.get_or_create(&labels).set(unavailable);
        self.max_unavailable.get_or_create(&labels).set(max);
    }

    /// Forgets a StatefulSet that is gone.
    pub fn forget(&self, key: &Key) {
        for policy in [PodManagementPolicy::OrderedReady, PodManagementPolicy::Parallel] {
            let labels = of_set(key, policy);
            self.unavailable_replicas.remove(&labels);
            self.max_unavailable.remove(&labels);
        }
    }

    /// Counts a sync that was put off; `resource` as upstream prints it, such as `statefulsets.apps`.
    pub fn observe_held(&self, resource: &str) {
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        let labels = [("group", group.to_owned()), ("resource", resource.to_owned())];
        self.stale_sync_skips.get_or_create(&labels).inc();
    }
}

fn of_set(key: &Key, policy: PodManagementPolicy) -> OfSet {
    [
        ("statefulset_namespace", key.namespace().to_owned()),
        ("statefulset_name", key.name().to_owned()),
        ("pod_management_policy", policy.as_str().to_owned()),
    ]
}
