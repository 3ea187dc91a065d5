//! The states of zones, and their rates.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use node_lifecycle_operator::memory::rate_limited_queue::Limiter;
use node_lifecycle_operator::memory::{Zone, ZoneState};
use node_lifecycle_operator::objects::Node;
use node_lifecycle_operator::plan::Config;
use node_lifecycle_operator::plan::disruption::{state, zones};
use shared::api::intern::Text;
use shared::testing::NOW;

use crate::fixtures::{CONFIG, after, node, with};

/// Upstream: `ComputeZoneState`.
#[test]
fn a_zone_is_disrupted_where_many_of_its_nodes_are_not_ready() {
    let row = |size, unhealthy, expected| {
        assert_eq!(state(size, unhealthy, &CONFIG), expected, "{unhealthy} of {size}");
    };
    row(0, 0, ZoneState::Normal);
    row(1, 0, ZoneState::Normal);
    row(1, 1, ZoneState::FullDisruption);
    row(3, 2, ZoneState::Normal);
    row(5, 3, ZoneState::PartialDisruption);
    row(6, 3, ZoneState::Normal);
    row(20, 11, ZoneState::PartialDisruption);
    row(20, 10, ZoneState::Normal);
    row(20, 20, ZoneState::FullDisruption);
}

/// So many ready and other nodes of a zone.
fn zone(name: &str, ready: usize, others: usize) -> Vec<Arc<Node>> {
    let node = |number: usize| {
        let status = if number < ready { "True" } else { "Unknown" };
        let node = node(&format!("{name}-{number}")).label("topology.kubernetes.io/zone", name);
        with(node, &[("Ready", status)]).build()
    };
    (0..ready + others).map(node).collect()
}

/// The rates of the zones, by name, and whether all are disrupted. Upstream:
/// `TestMonitorNodeHealth`.
#[test]
fn the_rate_of_a_zone_follows_its_state_unless_all_are_fully_disrupted() {
    let row = |of_zones: &[(usize, usize)], expected: &[f64], all: bool| {
        let nodes: Vec<Arc<Node>> =
            of_zones.iter().zip(["a", "b"]).flat_map(|((ready, others), name)| zone(name, *ready, *others)).collect();
        let (found, is_all) = zones(nodes.iter().map(AsRef::as_ref), &BTreeMap::new(), &CONFIG, NOW);
        let rates: Vec<String> = found.values().map(|zone| zone.limiter.rate().to_string()).collect();
        let expected: Vec<String> = expected.iter().map(f64::to_string).collect();
        assert_eq!((rates, is_all), (expected, all), "{of_zones:?}");
    };
    row(&[(1, 0), (1, 0)], &[0.1, 0.1], false);
    // "One zone goes down"
    row(&[(0, 1), (1, 0)], &[0.1, 0.1], false);
    // "All zones down"
    row(&[(0, 1), (0, 2)], &[0.0, 0.0], true);
    row(&[(0, 3)], &[0.0], true);
    // A small zone, and a large one.
    row(&[(2, 4), (1, 0)], &[0.0, 0.1], false);
    row(&[(20, 31), (1, 0)], &[0.01, 0.1], false);
    row(&[], &[], false);
}

#[test]
fn a_node_that_is_excluded_does_not_count() {
    let excluded = |name: &str| node(name).label("node.kubernetes.io/exclude-disruption", "").build::<Node>();
    let nodes = [excluded("a"), excluded("b")];
    let (found, is_all) = zones(nodes.iter().map(AsRef::as_ref), &BTreeMap::new(), &CONFIG, NOW);
    let found: Vec<(usize, ZoneState)> = found.values().map(|zone| (zone.size, zone.state)).collect();
    assert_eq!((found, is_all), (vec![(0, ZoneState::Normal)], false));
}

/// Upstream: `GetZoneKey`.
#[test]
fn a_zone_is_a_region_and_a_zone_of_either_labels() {
    let (zone, region) = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region");
    let (old_zone, old_region) = ("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region");
    let row = |labels: &[(&str, &str)], expected: &str| {
        let node = labels.iter().fold(node("a"), |node, (label, value)| node.label(label, value));
        assert_eq!(node.build::<Node>().zone(), Text::new(expected));
    };
    row(&[], "");
    row(&[(zone, "z")], ":\0:z");
    row(&[(zone, "z"), (region, "r")], "r:\0:z");
    row(&[(zone, "z"), (region, "r"), (old_zone, "y"), (old_region, "q")], "q:\0:y");
}

/// Upstream: `TestSwapLimiter` and `NewTokenBucketRateLimiter` with a burst of 1.
#[test]
fn a_bucket_has_one_token_and_stays_empty_at_another_rate() {
    let mut limiter = Limiter::new(0.1, NOW);
    assert!(limiter.try_accept(NOW));
    assert!(!limiter.try_accept(after(9)));
    assert_eq!(limiter.wait(after(4)), Some(Duration::from_secs(6)));
    assert!(limiter.try_accept(after(10)));
    // A day without a node gives no second token.
    assert!(limiter.try_accept(after(86_400)) && !limiter.try_accept(after(86_401)));

    let mut full = Limiter::new(0.1, NOW).swap(0.01, NOW);
    assert!(full.try_accept(NOW));
    let mut stopped = full.swap(0.0, NOW);
    assert_eq!((stopped.rate().to_string(), stopped.wait(NOW)), ("0".to_owned(), None));
    assert!(!stopped.try_accept(after(86_400)));
    // It was empty.
    let mut again = stopped.swap(0.1, after(60));
    assert!(!again.try_accept(after(60)) && again.try_accept(after(70)));
    for odd in [f64::NAN, f64::NEG_INFINITY, -1.0] {
        assert!(!Limiter::new(odd, NOW).try_accept(NOW));
    }
    assert!(Limiter::new(f64::INFINITY, NOW).try_accept(NOW));
    assert!(Limiter::new(f64::MIN_POSITIVE, NOW).try_accept(NOW));
}

#[test]
fn a_rate_follows_the_size_of_its_zone() {
    let config = Config { large_zone: 5, ..CONFIG };
    let (small, large) = (zone("a", 2, 3), zone("a", 2, 4));
    let of = |nodes: &[Arc<Node>], before| zones(nodes.iter().map(AsRef::as_ref), &before, &config, NOW).0;
    let first = of(&small, BTreeMap::new());
    let rates = |zones: &BTreeMap<Text, Zone>| {
        zones.values().map(|zone| zone.limiter.rate().to_string()).collect::<Vec<String>>()
    };
    assert_eq!(rates(&first), ["0"]);
    assert_eq!(rates(&of(&large, first)), ["0.01"]);
}
