use shared::controllers::endpoints::metrics::operations;
use shared::testing::{ObjectBuilder, object};

use super::*;
use crate::memory::topology::ServiceHints;
use crate::objects::AddressType;

fn service(name: &str, distribution: &str, mode: &str) -> Arc<Service> {
    let service: ObjectBuilder = object("v1", "Service", name).set(&["spec", "trafficDistribution"], distribution);
    service.annotation("service.kubernetes.io/topology-mode", mode).build()
}

/// A plan for groups of so many endpoints in so many slices.
fn slices(families: &[&[(usize, usize)]]) -> Slices {
    let family = |sizes: &&[(usize, usize)]| {
        let sizes = sizes.iter().map(|(endpoints, slices)| Size { endpoints: *endpoints, slices: *slices });
        crate::plan::Family {
            sizes: sizes.collect(),
            added: 1,
            ..crate::plan::Family::new(AddressType::IPv4, Vec::new())
        }
    };
    let families = families.iter().map(family).collect();
    Slices { families, unsupported: Vec::new(), pods: 0, hints: ServiceHints::default(), trigger: None }
}

/// The lines of these metrics, without help texts and buckets.
fn shown(metrics: &Metrics) -> Vec<String> {
    let text = metrics.to_text();
    let own = text.lines().filter(|line| line.starts_with("endpoint_slice_controller") && !line.contains("_bucket"));
    own.map(|line| line.trim_start_matches("endpoint_slice_controller_").to_owned()).collect()
}

/// Upstream: `TestNumEndpointsAndSlices`, `TestPlaceHolderSlice`, `TestCache_ServicesByTrafficDistribution`.
#[test]
fn sums_follow_what_is_decided_last_for_each_service() {
    let registry = Metrics::new("endpointslice-operator");
    let metrics = EndpointSliceMetrics::register(&registry, 100);
    let check = |expected: &[&str]| {
        let gauges = ["num_endpoint_slices", "desired_endpoint_slices", "endpoints_desired", "services_count"];
        let shown = shown(&registry);
        let shown: Vec<&String> =
            shown.iter().filter(|line| gauges.iter().any(|gauge| line.starts_with(gauge))).collect();
        assert_eq!(shown, expected);
    };
    let (foo, bar) = (service("foo", "PreferClose", ""), service("bar", "PreferSameNode", "Auto"));
    metrics.decided(&foo, &slices(&[&[(45, 1), (65, 1)]]));
    let close = "services_count_by_traffic_distribution{traffic_distribution=\"PreferClose\"} 1.0";
    check(&["desired_endpoint_slices 2.0", "endpoints_desired 110.0", "num_endpoint_slices 2.0", close]);
    metrics.decided(&bar, &slices(&[&[(60, 3)], &[(160, 9)]]));
    check(&["desired_endpoint_slices 5.0", "endpoints_desired 330.0", "num_endpoint_slices 14.0", close]);
    metrics.decided(&foo, &slices(&[&[(0, 1)]]));
    check(&["desired_endpoint_slices 4.0", "endpoints_desired 220.0", "num_endpoint_slices 13.0", close]);
    metrics.forget(&foo.metadata.key);
    let none_close = "services_count_by_traffic_distribution{traffic_distribution=\"PreferClose\"} 0.0";
    check(&["desired_endpoint_slices 3.0", "endpoints_desired 220.0", "num_endpoint_slices 12.0", none_close]);
    metrics.forget(&bar.metadata.key);
    check(&["desired_endpoint_slices 0.0", "endpoints_desired 0.0", "num_endpoint_slices 0.0", none_close]);
}

#[test]
fn names_and_labels_are_upstreams() {
    let registry = Metrics::new("endpointslice-operator");
    let metrics = EndpointSliceMetrics::register(&registry, 100);
    metrics.changes.wrote(operations::CREATE);
    metrics.synced(results::STALE);
    metrics.finalized(&service("foo", "PreferSameZone", ""), 3);
    metrics.finalized(&service("foo", "PreferSameZone", "Auto"), 2);
    metrics.finalized(&service("foo", "Odd", ""), 1);
    let shown = shown(&registry);
    for line in [
        "changes{operation=\"create\"} 1",
        "syncs{result=\"stale\"} 1",
        "endpointslices_changed_per_sync_sum{topology=\"Disabled\",traffic_distribution=\"PreferSameZone\"} 3.0",
        "endpointslices_changed_per_sync_sum{topology=\"Auto\",traffic_distribution=\"\"} 2.0",
        "endpointslices_changed_per_sync_sum{topology=\"Disabled\",traffic_distribution=\"\"} 1.0",
        "endpoints_added_per_sync_count 0",
        "endpoints_removed_per_sync_count 0",
    ] {
        assert!(shown.iter().any(|shown| shown == line), "{line}: {shown:#?}");
    }
}
