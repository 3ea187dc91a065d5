//! Upstream's metrics of this controller.
//!
//! Upstream: `staging/src/k8s.io/endpointslice/metrics`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::controllers::endpoints::metrics::{Size, SliceChanges, Totals, count};
use shared::process::metrics::{BareCounter, Metrics};

use crate::objects::Service;
use crate::plan::Slices;
use crate::plan::trafficdist::TrafficDistribution;

const ADDED: &str = "endpoint_slice_controller_endpoints_added_per_sync";
const REMOVED: &str = "endpoint_slice_controller_endpoints_removed_per_sync";
const ENDPOINTS: &str = "endpoint_slice_controller_endpoints_desired";
const SLICES: &str = "endpoint_slice_controller_num_endpoint_slices";
const DESIRED_SLICES: &str = "endpoint_slice_controller_desired_endpoint_slices";
const CHANGES: &str = "endpoint_slice_controller_changes";
const CHANGED: &str = "endpoint_slice_controller_endpointslices_changed_per_sync";
const SYNCS: &str = "endpoint_slice_controller_syncs";
const SERVICES: &str = "endpoint_slice_controller_services_count_by_traffic_distribution";

pub(crate) mod results {
    pub(crate) const SUCCESS: &str = "success";
    pub(crate) const ERROR: &str = "error";
    pub(crate) const STALE: &str = "stale";
}

type Label = [(&'static str, &'static str); 1];
type SyncLabels = [(&'static str, String); 2];

/// The metrics of this operator; cheap to clone.
#[derive(Clone)]
pub(crate) struct EndpointSliceMetrics {
    added: Histogram,
    removed: Histogram,
    pub(crate) changes: SliceChanges,
    changed: Family<SyncLabels, Histogram>,
    syncs: Family<Label, BareCounter>,
    services: Services,
}

impl EndpointSliceMetrics {
    pub(crate) fn register(metrics: &Metrics, max_endpoints_per_slice: usize) -> Self {
        let per_sync = || Histogram::new(exponential_buckets(2.0, 2.0, 15));
        // Prometheus's defaults.
        let changed = || Histogram::new([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]);
        let own = Self {
            added: per_sync(),
            removed: per_sync(),
            changes: SliceChanges::register(metrics, CHANGES),
            changed: Family::new_with_constructor(changed),
            syncs: Family::default(),
            services: Services { shown: Arc::default(), max_endpoints_per_slice },
        };
        metrics.register(ADDED, "Number of endpoints added on each Service sync", own.added.clone());
        metrics.register(REMOVED, "Number of endpoints removed on each Service sync", own.removed.clone());
        metrics.register(CHANGED, "Number of EndpointSlices changed on each Service sync", own.changed.clone());
        metrics.register(SYNCS, "Number of EndpointSlice syncs", own.syncs.clone());
        metrics.register_collector(own.services.clone());
        own
    }

    /// Count a sync, or a key that is held.
    pub(crate) fn synced(&self, result: &'static str) {
        self.syncs.get_or_create(&[("result", result)]).inc();
    }

    /// Observe the number of writes of slices of one address type.
    ///
    /// Upstream: `finalize`, `staging/src/k8s.io/endpointslice/reconciler.go`.
    pub(crate) fn finalized(&self, service: &Service, writes: usize) {
        let topology = if service.metadata.annotations.is_auto { "Auto" } else { "Disabled" };
        let distribution = traffic_distribution(service).map(|text| text.to_string()).unwrap_or_default();
        let labels = [("topology", topology.to_owned()), ("traffic_distribution", distribution)];
        self.changed.get_or_create(&labels).observe(count(writes));
    }

    pub(crate) fn decided(&self, service: &Service, slices: &Slices) {
        for family in &slices.families {
            self.added.observe(count(family.added));
            self.removed.observe(count(family.removed));
        }
        let sizes = slices.families.iter().map(|family| totals(&family.sizes, self.services.max_endpoints_per_slice));
        let known = Known { totals: sizes.collect(), distribution: traffic_distribution(service) };
        let mut shown = self.services.shown();
        shown.distributions.extend(known.distribution.clone());
        shown.services.insert(service.metadata.key.clone(), known);
    }

    pub(crate) fn forget(&self, service: &Key) {
        self.services.shown().services.remove(service);
    }
}

fn traffic_distribution(service: &Service) -> Option<Text> {
    let wanted = TrafficDistribution::parse(service.traffic_distribution.as_deref());
    wanted.filter(|_| !service.metadata.annotations.is_auto).and_then(|_| service.traffic_distribution.clone())
}

/// The state of each Service, summed up at each scrape.
///
/// Upstream: `Cache`, `metrics/cache.go`.
#[derive(Clone, Debug)]
struct Services {
    shown: Arc<Mutex<Shown>>,
    max_endpoints_per_slice: usize,
}

#[derive(Debug, Default)]
struct Shown {
    services: BTreeMap<Key, Known>,
    /// Every value that a Service has had; a value that no Service has any more is shown as 0.
    distributions: BTreeSet<Text>,
}

#[derive(Debug)]
struct Known {
    totals: Box<[Totals]>,
    distribution: Option<Text>,
}

fn totals(sizes: &[Size], max_endpoints_per_slice: usize) -> Totals {
    let totals = Totals::of(sizes, max_endpoints_per_slice);
    // A Service without endpoints has a placeholder.
    Totals { desired_slices: totals.desired_slices.max(1), ..totals }
}

impl Services {
    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for Services {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let shown = self.shown();
        let totals = shown.services.values().flat_map(|known| known.totals.iter());
        let sum = |of: fn(&Totals) -> usize| ConstGauge::new(count(totals.clone().map(of).sum()));
        for (name, help, gauge) in [
            (SLICES, "Number of EndpointSlices.", sum(|totals| totals.slices)),
            (
                DESIRED_SLICES,
                "Number of EndpointSlices that would exist with perfect endpoint allocation.",
                sum(|totals| totals.desired_slices),
            ),
            (ENDPOINTS, "Number of endpoints desired.", sum(|totals| totals.endpoints)),
        ] {
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        let mut services: BTreeMap<&Text, usize> = shown.distributions.iter().map(|seen| (seen, 0)).collect();
        for distribution in shown.services.values().filter_map(|known| known.distribution.as_ref()) {
            *services.entry(distribution).or_default() += 1;
        }
        if services.is_empty() {
            return Ok(());
        }
        let help = "Number of Services using some specific trafficDistribution.";
        let mut family = encoder.encode_descriptor(SERVICES, help, None, MetricType::Gauge)?;
        for (distribution, number) in services {
            let labels = [("traffic_distribution", distribution.as_str())];
            ConstGauge::new(count(number)).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
