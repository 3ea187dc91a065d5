//! Upstream's metrics of this controller.
//!
//! Upstream: `pkg/controller/endpointslicemirroring/metrics`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use shared::api::object::Key;
use shared::controllers::endpoints::metrics::{SliceChanges, Totals, count};
use shared::process::metrics::Metrics;

use crate::plan::Mirrored;

const ADDED: &str = "endpoint_slice_mirroring_controller_endpoints_added_per_sync";
const UPDATED: &str = "endpoint_slice_mirroring_controller_endpoints_updated_per_sync";
const REMOVED: &str = "endpoint_slice_mirroring_controller_endpoints_removed_per_sync";
const SKIPPED: &str = "endpoint_slice_mirroring_controller_addresses_skipped_per_sync";
const DURATION: &str = "endpoint_slice_mirroring_controller_endpoints_sync_duration";
const ENDPOINTS: &str = "endpoint_slice_mirroring_controller_endpoints_desired";
const SLICES: &str = "endpoint_slice_mirroring_controller_num_endpoint_slices";
const DESIRED_SLICES: &str = "endpoint_slice_mirroring_controller_desired_endpoint_slices";
const CHANGES: &str = "endpoint_slice_mirroring_controller_changes";

/// The metrics of this operator; cheap to clone.
#[derive(Clone)]
pub(crate) struct MirroringMetrics {
    added: Histogram,
    updated: Histogram,
    removed: Histogram,
    skipped: Histogram,
    duration: Histogram,
    pub(crate) changes: SliceChanges,
    mirrored: Sums,
}

impl MirroringMetrics {
    pub(crate) fn register(metrics: &Metrics, max_endpoints_per_subset: usize) -> Self {
        let per_sync = || Histogram::new(exponential_buckets(2.0, 2.0, 15));
        let own = Self {
            added: per_sync(),
            updated: per_sync(),
            removed: per_sync(),
            skipped: per_sync(),
            duration: Histogram::new(exponential_buckets(0.001, 2.0, 15)),
            changes: SliceChanges::register(metrics, CHANGES),
            mirrored: Sums { shown: Arc::default(), max_endpoints_per_subset },
        };
        let skipped = "Number of addresses skipped on each Endpoints sync due to being invalid or exceeding \
                       MaxEndpointsPerSubset";
        metrics.register(ADDED, "Number of endpoints added on each Endpoints sync", own.added.clone());
        metrics.register(UPDATED, "Number of endpoints updated on each Endpoints sync", own.updated.clone());
        metrics.register(REMOVED, "Number of endpoints removed on each Endpoints sync", own.removed.clone());
        metrics.register(SKIPPED, skipped, own.skipped.clone());
        metrics.register(DURATION, "Duration of syncEndpoints() in seconds", own.duration.clone());
        metrics.register_collector(own.mirrored.clone());
        own
    }

    pub(crate) fn synced(&self, took: Duration) {
        self.duration.observe(took.as_secs_f64());
    }

    pub(crate) fn decided(&self, mirrored: &Mirrored) {
        self.added.observe(count(mirrored.changes.added));
        self.updated.observe(count(mirrored.changes.updated));
        self.removed.observe(count(mirrored.changes.removed));
        self.skipped.observe(count(mirrored.skipped));
        let totals = Totals::of(&mirrored.sizes, self.mirrored.max_endpoints_per_subset);
        self.mirrored.shown().insert(mirrored.endpoints.metadata.key.clone(), totals);
    }

    pub(crate) fn forget(&self, key: &Key) {
        self.mirrored.shown().remove(key);
    }
}

/// The totals of all Endpoints, summed up at each scrape.
///
/// Upstream: `Cache`, `metrics/cache.go`.
#[derive(Clone, Debug)]
struct Sums {
    shown: Arc<Mutex<BTreeMap<Key, Totals>>>,
    max_endpoints_per_subset: usize,
}

impl Sums {
    fn shown(&self) -> MutexGuard<'_, BTreeMap<Key, Totals>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for Sums {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let shown = self.shown();
        let sum = |of: fn(&Totals) -> usize| ConstGauge::new(count(shown.values().map(of).sum()));
        let perfect = "Number of EndpointSlices that would exist with perfect endpoint allocation.";
        for (name, help, gauge) in [
            (SLICES, "Number of EndpointSlices.", sum(|totals| totals.slices)),
            (DESIRED_SLICES, perfect, sum(|totals| totals.desired_slices)),
            (ENDPOINTS, "Number of endpoints desired.", sum(|totals| totals.endpoints)),
        ] {
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use shared::controllers::endpoints::metrics::{Size, operations};
    use shared::testing::object;

    use super::*;
    use crate::plan::{Changes, Writes};

    /// A plan with groups of these numbers of endpoints and slices.
    fn mirrored(name: &str, sizes: &[(usize, usize)]) -> Mirrored {
        let sizes = sizes.iter().map(|(endpoints, slices)| Size { endpoints: *endpoints, slices: *slices });
        Mirrored {
            endpoints: object("v1", "Endpoints", name).build(),
            writes: Writes::default(),
            events: Vec::new(),
            changes: Changes { added: 3, updated: 2, removed: 1 },
            skipped: 4,
            invalid: 1,
            sizes: sizes.collect(),
        }
    }

    /// The lines of these metrics, without help texts and buckets.
    fn shown(metrics: &Metrics) -> Vec<String> {
        let text = metrics.to_text();
        let prefix = "endpoint_slice_mirroring_controller_";
        let own = text.lines().filter(|line| line.starts_with(prefix) && !line.contains("_bucket"));
        own.map(|line| line.trim_start_matches(prefix).to_owned()).collect()
    }

    /// Upstream: `TestNumEndpointsAndSlices`, `metrics/cache_test.go`.
    #[test]
    fn sums_follow_what_is_decided_last_for_each_endpoints() {
        let registry = Metrics::new("endpointslice-mirroring-operator");
        let metrics = MirroringMetrics::register(&registry, 100);
        let check = |desired: usize, actual: usize, endpoints: usize| {
            let expected = [
                format!("num_endpoint_slices {actual}.0"),
                format!("desired_endpoint_slices {desired}.0"),
                format!("endpoints_desired {endpoints}.0"),
            ];
            let shown = shown(&registry);
            for line in expected {
                assert!(shown.contains(&line), "{line}: {shown:#?}");
            }
        };
        let (efficient, inefficient) = ([(45, 1), (35, 1)], [(12, 5), (18, 8)]);
        metrics.decided(&mirrored("svc1", &inefficient));
        check(2, 13, 30);
        metrics.decided(&mirrored("svc2", &efficient));
        check(4, 15, 110);
        metrics.decided(&mirrored("svc3", &inefficient));
        check(6, 28, 140);
        metrics.decided(&mirrored("svc1", &efficient));
        check(6, 17, 190);
        metrics.forget(&Key::new("default", "svc3"));
        check(4, 4, 160);
    }

    #[test]
    fn names_and_labels_are_upstreams() {
        let registry = Metrics::new("endpointslice-mirroring-operator");
        let metrics = MirroringMetrics::register(&registry, 100);
        metrics.changes.wrote(operations::UPDATE);
        metrics.synced(Duration::from_millis(250));
        metrics.decided(&mirrored("web", &[]));
        let shown = shown(&registry);
        for line in [
            "changes{operation=\"update\"} 1",
            "endpoints_sync_duration_sum 0.25",
            "endpoints_added_per_sync_sum 3.0",
            "endpoints_updated_per_sync_sum 2.0",
            "endpoints_removed_per_sync_sum 1.0",
            "addresses_skipped_per_sync_sum 4.0",
        ] {
            assert!(shown.iter().any(|shown| shown == line), "{line}: {shown:#?}");
        }
    }
}
