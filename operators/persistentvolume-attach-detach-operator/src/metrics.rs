//! Upstream's metrics of this controller, under upstream's names.
//!
//! Upstream: `pkg/controller/volume/attachdetach/metrics/metrics.go`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use shared::process::metrics::Metrics;

use crate::observe::Caches;
use crate::plan::{Forced, Totals};

const FORCED_DETACHES: &str = "attach_detach_controller_attachdetach_controller_forced_detaches";
const IN_USE: &str = "storage_count_attachable_volumes_in_use";
const TOTAL_VOLUMES: &str = "attachdetach_controller_total_volumes";

/// Upstream: `ForceDetachMetricCounter`.
#[derive(Clone)]
pub(crate) struct DetachMetrics(Family<[(&'static str, &'static str); 1], Counter>);

impl DetachMetrics {
    pub(crate) fn register(metrics: &Metrics) -> Self {
        let forced = Family::default();
        metrics.register(
            FORCED_DETACHES,
            "Number of times the A/D Controller performed a forced detach",
            forced.clone(),
        );
        let own = Self(forced);
        // The first detach by force is an increase only if the counter was there before.
        for reason in [Forced::Timeout, Forced::OutOfService] {
            drop(own.of(reason));
        }
        own
    }

    pub(crate) fn forced(&self, forced: Forced) {
        self.of(forced).inc();
    }

    fn of(&self, forced: Forced) -> Counter {
        let reason = match forced {
            Forced::Timeout => "timeout",
            Forced::OutOfService => "out-of-service",
        };
        self.0.get_or_create_owned(&[("reason", reason)])
    }
}

/// The volumes of the caches, counted at each scrape.
///
/// Upstream: `attachDetachStateCollector`.
pub(crate) struct VolumeCounts(Weak<Caches>);

impl VolumeCounts {
    /// The registry may outlive the controller whose caches these are.
    pub(crate) fn new(caches: &Arc<Caches>) -> Self {
        Self(Arc::downgrade(caches))
    }
}

impl fmt::Debug for VolumeCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VolumeCounts")
    }
}

impl Collector for VolumeCounts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(caches) = self.0.upgrade() else { return Ok(()) };
        let in_use = caches.in_use();
        if !in_use.is_empty() {
            let mut family =
                encoder.encode_descriptor(IN_USE, "Measure number of volumes in use", None, MetricType::Gauge)?;
            for ((node, plugin), number) in in_use {
                let labels = [("node", node.as_str()), ("volume_plugin", plugin.as_str())];
                ConstGauge::new(count(number)).encode(family.encode_family(&labels)?)?;
            }
        }
        let totals = totals(&caches);
        if totals.is_empty() {
            return Ok(());
        }
        let help = "Number of volumes in A/D Controller";
        let mut family = encoder.encode_descriptor(TOTAL_VOLUMES, help, None, MetricType::Gauge)?;
        for (plugin, Totals { desired, actual }) in totals {
            for (state, number) in [("desired_state_of_world", desired), ("actual_state_of_world", actual)] {
                let labels = [("plugin_name", plugin.as_str()), ("state", state)];
                ConstGauge::new(count(number)).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

/// By plugin.
fn totals(caches: &Caches) -> BTreeMap<String, Totals> {
    let mut totals: BTreeMap<String, Totals> = BTreeMap::new();
    for volume in caches.volumes_of_all() {
        let Some(plugin) = volume.plugin_name() else { continue };
        let Totals { desired, actual } = Totals::of(&caches.observe(&volume));
        if desired + actual > 0 {
            let total = totals.entry(plugin).or_default();
            (total.desired, total.actual) = (total.desired + desired, total.actual + actual);
        }
    }
    totals
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::testing::{object, pod, store, uid};

    use super::*;

    #[test]
    fn names_and_labels_are_upstreams() {
        let registry = Metrics::new("persistentvolume-attach-detach-operator");
        let metrics = DetachMetrics::register(&registry);
        let check = |timeouts: u32, out_of_service: u32| {
            let text = registry.to_text();
            for (reason, number) in [("timeout", timeouts), ("out-of-service", out_of_service)] {
                let line = format!("{FORCED_DETACHES}_total{{reason=\"{reason}\"}} {number}\n");
                assert!(text.contains(&line), "{line}{text}");
            }
        };
        check(0, 0);
        metrics.forced(Forced::Timeout);
        metrics.forced(Forced::OutOfService);
        metrics.forced(Forced::OutOfService);
        check(1, 2);
    }

    /// Upstream: `TestVolumesInUseMetricCollection`.
    #[test]
    fn volumes_are_counted_under_the_driver_that_replaced_their_plugin() {
        let caches = Arc::new(Caches::new().0);
        let registry = Metrics::new("persistentvolume-attach-detach-operator");
        registry.register_collector(VolumeCounts::new(&caches));
        let claim_uid = uid("claim").to_string();
        let claim_ref = json!({ "namespace": "default", "name": "data", "uid": claim_uid });
        let volume = object("v1", "PersistentVolume", "pv").namespace("");
        let volume = volume.set(&["spec"], json!({ "gcePersistentDisk": { "pdName": "a" }, "claimRef": claim_ref }));
        store(&caches.persistent_volumes, &volume.build());
        assert!(!registry.to_text().contains(TOTAL_VOLUMES), "nothing wants it");
        let claim = object("v1", "PersistentVolumeClaim", "data").uid_of("claim").set(&["spec", "volumeName"], "pv");
        store(&caches.persistent_volume_claims, &claim.phase("Bound").build());
        let managed = "volumes.kubernetes.io/controller-managed-attach-detach";
        let node = object("v1", "Node", "worker-0").namespace("").annotation(managed, "true");
        store(&caches.nodes, &node.build());
        let volumes = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
        store(&caches.pods, &pod("web").node("worker-0").set(&["spec", "volumes"], volumes).build());
        let (text, plugin) = (registry.to_text(), "kubernetes.io/csi:pd.csi.storage.gke.io");
        for line in [
            format!("{IN_USE}{{node=\"worker-0\",volume_plugin=\"{plugin}\"}} 1\n"),
            format!("{TOTAL_VOLUMES}{{plugin_name=\"{plugin}\",state=\"desired_state_of_world\"}} 1\n"),
            format!("{TOTAL_VOLUMES}{{plugin_name=\"{plugin}\",state=\"actual_state_of_world\"}} 0\n"),
        ] {
            assert!(text.contains(&line), "{line}{text}");
        }
    }
}
