//! Upstream's own metrics of this controller, under upstream's names.
//!
//! Left out: what every operator shows (queues, requests, leadership), which is [`shared::process::metrics`]'.

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use shared::api::object::Key;
use shared::process::metrics::Metrics;

use crate::objects::PodManagementPolicy;
use crate::plan::rolling::Unavailability;

const MAX_UNAVAILABLE: &str = "statefulset_controller_statefulset_max_unavailable";
const MAX_UNAVAILABLE_HELP: &str = "Maximum number of unavailable pods allowed during StatefulSet rolling updates";
const UNAVAILABLE_REPLICAS: &str = "statefulset_controller_statefulset_unavailable_replicas";
const UNAVAILABLE_REPLICAS_HELP: &str = "Current number of unavailable pods in StatefulSet";

type OfSet = [(&'static str, String); 3];

#[derive(Clone)]
pub struct StatefulSetMetrics {
    max_unavailable: Family<OfSet, Gauge>,
    unavailable_replicas: Family<OfSet, Gauge>,
}

impl StatefulSetMetrics {
    /// Registers them with the process's metrics.
    ///
    /// Upstream: `Register`, `pkg/controller/statefulset/metrics/metrics.go`.
    pub fn register(metrics: &Metrics) -> Self {
        let (max_unavailable, unavailable_replicas) = (Family::default(), Family::default());
        metrics.register(MAX_UNAVAILABLE, MAX_UNAVAILABLE_HELP, max_unavailable.clone());
        metrics.register(UNAVAILABLE_REPLICAS, UNAVAILABLE_REPLICAS_HELP, unavailable_replicas.clone());
        Self { max_unavailable, unavailable_replicas }
    }

    pub fn observe(&self, key: &Key, policy: PodManagementPolicy, unavailability: Unavailability) {
        let Unavailability { unavailable, max } = unavailability;
        let labels = of_set(key, policy);
        self.unavailable_replicas.get_or_create(&labels).set(unavailable);
        self.max_unavailable.get_or_create(&labels).set(max);
    }

    pub fn forget(&self, key: &Key) {
        for policy in [PodManagementPolicy::OrderedReady, PodManagementPolicy::Parallel] {
            let labels = of_set(key, policy);
            self.unavailable_replicas.remove(&labels);
            self.max_unavailable.remove(&labels);
        }
    }
}

fn of_set(key: &Key, policy: PodManagementPolicy) -> OfSet {
    [
        ("statefulset_namespace", key.namespace().to_owned()),
        ("statefulset_name", key.name().to_owned()),
        ("pod_management_policy", policy.as_str().to_owned()),
    ]
}
