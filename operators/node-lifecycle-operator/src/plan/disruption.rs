//! How many nodes of each zone are not ready, and the rate at which its nodes may therefore be tainted.
//!
//! If many nodes of a zone are lost at once, it is more likely that the zone cannot be reached than that each of them has
//! failed.
//!
//! Upstream: `handleDisruption`, `pkg/controller/nodelifecycle/node_lifecycle_controller.go`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use shared::api::intern::Text;

use crate::memory::rate_limited_queue::Limiter;
use crate::memory::{Zone, ZoneState};
use crate::objects::{Node, Ready};
use crate::plan::config::Config;

/// Counts the nodes of each zone, and sets its rate. The flag says whether no zone has a ready node.
pub fn zones<'a>(
    nodes: impl IntoIterator<Item = &'a Node>,
    before: &BTreeMap<Text, Zone>,
    config: &Config,
    now: Timestamp,
) -> (BTreeMap<Text, Zone>, bool) {
    let mut counts: BTreeMap<Text, (usize, usize)> = BTreeMap::new();
    for node in nodes {
        // A zone whose nodes do not count has a queue, too.
        let (size, unhealthy) = counts.entry(node.zone()).or_default();
        *size += usize::from(node.counts());
        *unhealthy += usize::from(node.counts() && node.ready() != Ready::True);
    }
    let states: BTreeMap<Text, (usize, usize, ZoneState)> = counts
        .into_iter()
        .map(|(zone, (size, unhealthy))| (zone, (size, unhealthy, state(size, unhealthy, config))))
        .collect();
    let mut counted = states.values().filter(|(size, ..)| *size > 0).peekable();
    let is_all_disrupted = counted.peek().is_some() && counted.all(|(.., state)| *state == ZoneState::FullDisruption);
    let zone = |(name, (size, unhealthy, state)): (Text, (usize, usize, ZoneState))| {
        let rate = if is_all_disrupted { 0.0 } else { rate(state, size, config) };
        let known = before.get(&name).map_or_else(|| Limiter::new(config.rate, now), |zone| zone.limiter);
        let limiter = known.swap(rate, now);
        (name, Zone { size, unhealthy, state, limiter })
    };
    (states.into_iter().map(zone).collect(), is_all_disrupted)
}

/// Upstream: `ComputeZoneState`.
pub fn state(size: usize, unhealthy: usize, config: &Config) -> ZoneState {
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    if size > 0 && unhealthy == size {
        ZoneState::FullDisruption
    } else if unhealthy > 2 && number(unhealthy) / number(size) >= config.unhealthy_threshold {
        ZoneState::PartialDisruption
    } else {
        ZoneState::Normal
    }
}

/// Upstream: `setLimiterInZone`, `HealthyQPSFunc` and `ReducedQPSFunc`.
fn rate(state: ZoneState, size: usize, config: &Config) -> f64 {
    match state {
        ZoneState::Normal | ZoneState::FullDisruption => config.rate,
        ZoneState::PartialDisruption => {
            let is_large = i32::try_from(size).is_ok_and(|size| size > config.large_zone);
            if is_large { config.secondary_rate } else { 0.0 }
        }
    }
}
