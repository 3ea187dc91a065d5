//! Upstream's metrics of this controller, under upstream's names, and one of its own.
//!
//! Upstream: `pkg/controller/nodelifecycle/metrics.go`.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use jiff::SignedDuration;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use shared::api::intern::Text;
use shared::process::metrics::Metrics;

use crate::memory::Zone;
use crate::plan::gap::Gap;

const HEALTH: &str = "node_collector_zone_health";
const SIZE: &str = "node_collector_zone_size";
const UNHEALTHY: &str = "node_collector_unhealthy_nodes_in_zone";
const EVICTIONS: &str = "node_collector_evictions";
const EVICTIONS_HELP: &str = "Number of Node evictions that happened since current instance of NodeController started";
const ONE: &str = "node_collector_update_node_health_duration_seconds";
const ONE_HELP: &str = "Duration in seconds for NodeController to update the health of a single node";
const ALL: &str = "node_collector_update_all_nodes_health_duration_seconds";
const ALL_HELP: &str = "Duration in seconds for NodeController to update the health of all nodes";
const GAPS: &str = "node_lifecycle_gaps";
const GAPS_HELP: &str = "Number of looks at all nodes that restarted all grace periods, because signs of life may have been \
                         missed";

type ZoneLabel = [(&'static str, String); 1];

/// The state of zones, the number of evicted nodes, and the durations of syncs and rounds.
#[derive(Clone)]
pub struct NodeMetrics {
    health: Family<ZoneLabel, Gauge<f64, AtomicU64>>,
    size: Family<ZoneLabel, Gauge>,
    unhealthy: Family<ZoneLabel, Gauge>,
    evictions: Family<ZoneLabel, Counter>,
    one: Histogram,
    all: Histogram,
    gaps: Family<[(&'static str, &'static str); 1], Counter>,
}

fn label(zone: &Text) -> ZoneLabel {
    [("zone", zone.as_str().to_owned())]
}

impl NodeMetrics {
    pub fn register(metrics: &Metrics) -> Self {
        let own = Self {
            health: Family::default(),
            size: Family::default(),
            unhealthy: Family::default(),
            evictions: Family::default(),
            one: Histogram::new(exponential_buckets(0.001, 4.0, 8)),
            all: Histogram::new(exponential_buckets(0.01, 4.0, 8)),
            gaps: Family::default(),
        };
        let Self { health, size, unhealthy, evictions, one, all, gaps } = own.clone();
        metrics.register(HEALTH, "Gauge measuring percentage of healthy nodes per zone", health);
        metrics.register(SIZE, "Gauge measuring number of registered Nodes per zones", size);
        metrics.register(UNHEALTHY, "Gauge measuring number of not Ready Nodes per zones", unhealthy);
        metrics.register(EVICTIONS, EVICTIONS_HELP, evictions);
        metrics.register(ONE, ONE_HELP, one);
        metrics.register(ALL, ALL_HELP, all);
        // The first gap is an increase only if the counter was there before.
        for why in Gap::NAMES {
            drop(gaps.get_or_create_owned(&[("why", why)]));
        }
        metrics.register(GAPS, GAPS_HELP, gaps);
        own
    }

    /// Shows the current zones; those of `before` that are gone are shown empty and healthy.
    pub fn show(&self, before: &BTreeMap<Text, Zone>, zones: &BTreeMap<Text, Zone>) {
        for name in before.keys().filter(|name| !zones.contains_key(*name)) {
            self.show_one(name, 0, 0);
        }
        for (name, zone) in zones {
            drop(self.evictions.get_or_create_owned(&label(name)));
            self.show_one(name, zone.size, zone.unhealthy);
        }
    }

    fn show_one(&self, zone: &Text, size: usize, unhealthy: usize) {
        let (label, count) = (label(zone), |count: usize| u32::try_from(count).unwrap_or(u32::MAX));
        let (size, unhealthy) = (count(size), count(unhealthy));
        let healthy = if size == 0 { 1.0 } else { f64::from(size.saturating_sub(unhealthy)) / f64::from(size) };
        self.health.get_or_create(&label).set(100.0 * healthy);
        self.size.get_or_create(&label).set(size.into());
        self.unhealthy.get_or_create(&label).set(unhealthy.into());
    }

    /// Counts a node of this zone that was tainted in its turn.
    pub fn evicted(&self, zone: &Text) {
        self.evictions.get_or_create(&label(zone)).inc();
    }

    pub fn gap(&self, gap: Gap) {
        self.gaps.get_or_create(&[("why", gap.as_str())]).inc();
    }

    pub fn synced(&self, took: SignedDuration) {
        self.one.observe(took.as_secs_f64());
    }

    pub fn looked(&self, took: SignedDuration) {
        self.all.observe(took.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use shared::testing::NOW;

    use super::*;
    use crate::memory::ZoneState;
    use crate::memory::rate_limited_queue::Limiter;

    #[test]
    fn names_and_labels_are_upstreams() {
        let registry = Metrics::new("node-lifecycle-operator");
        let metrics = NodeMetrics::register(&registry);
        let zone = Zone { size: 4, unhealthy: 1, state: ZoneState::Normal, limiter: Limiter::new(0.1, NOW) };
        let zones = BTreeMap::from([(Text::new("z"), zone)]);
        metrics.show(&BTreeMap::new(), &zones);
        metrics.evicted(&Text::new("z"));
        metrics.synced(SignedDuration::from_millis(2));
        metrics.gap(Gap::NotFollowed);
        let text = registry.to_text();
        for line in [
            "node_collector_zone_health{zone=\"z\"} 75.0\n",
            "node_collector_zone_size{zone=\"z\"} 4\n",
            "node_collector_unhealthy_nodes_in_zone{zone=\"z\"} 1\n",
            "node_collector_evictions_total{zone=\"z\"} 1\n",
            "node_lifecycle_gaps_total{why=\"notFollowed\"} 1\n",
            "node_lifecycle_gaps_total{why=\"wasNotFollowed\"} 0\n",
            "node_lifecycle_gaps_total{why=\"paused\"} 0\n",
            "node_collector_update_node_health_duration_seconds_bucket{le=\"0.004\"} 1\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        metrics.show(&zones, &BTreeMap::new());
        assert!(registry.to_text().contains("node_collector_zone_health{zone=\"z\"} 100.0\n"));
    }
}
