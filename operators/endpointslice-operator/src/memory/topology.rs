//! The shares of zones, and the hints of a Service.
//!
//! Upstream: `staging/src/k8s.io/endpointslice/topologycache`.

use std::collections::BTreeMap;

use shared::api::intern::Text;

use crate::objects::{AddressType, Node};

/// The overload of an endpoint that is tolerated. Upstream: `overloadThreshold`.
pub(crate) const OVERLOAD_THRESHOLD: f64 = 0.2;

pub type ZoneRatios = BTreeMap<Text, f64>;

/// The number of endpoints with a hint for each zone.
pub type ZoneCounts = BTreeMap<Text, i64>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceHints {
    /// The allocations, by address type.
    pub allocated: BTreeMap<AddressType, ZoneCounts>,
    /// Whether the last event said that hints are enabled.
    pub is_enabled: bool,
}

impl ServiceHints {
    /// Remove the allocation of an address type.
    ///
    /// Upstream: `RemoveHints`, which disables the hints of all types.
    pub fn remove(&mut self, address_type: &AddressType) {
        self.allocated.remove(address_type);
        self.is_enabled = false;
    }

    /// Whether a zone has too few endpoints for its CPU.
    ///
    /// Upstream: `GetOverloadedServices`.
    pub fn is_overloaded(&self, ratios: Option<&ZoneRatios>) -> bool {
        self.allocated.values().any(|counts| is_overloaded(counts, ratios))
    }
}

/// Upstream: `serviceOverloaded`, `topologycache/utils.go`.
fn is_overloaded(counts: &ZoneCounts, ratios: Option<&ZoneRatios>) -> bool {
    if counts.is_empty() {
        return false;
    }
    let Some(ratios) = ratios else { return true };
    let total = real(counts.values().sum());
    ratios.iter().any(|(zone, ratio)| {
        counts.get(zone).is_none_or(|count| real(*count) < (total * ratio * (1.0 / (1.0 + OVERLOAD_THRESHOLD))).ceil())
    })
}

/// The shares of the zones; none if a ready node lacks a zone or CPU, or if there are fewer than two zones.
///
/// Upstream: `SetNodes`.
pub fn zone_ratios<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> Option<ZoneRatios> {
    let mut cpus: BTreeMap<&Text, i64> = BTreeMap::new();
    for node in nodes.into_iter().filter(|node| node.is_ready && !node.is_control_plane) {
        let zone = node.zone.as_ref().filter(|_| node.milli_cpu != 0)?;
        let cpu = cpus.entry(zone).or_default();
        *cpu = cpu.saturating_add(node.milli_cpu);
    }
    let total = cpus.values().copied().fold(0, i64::saturating_add);
    let ratios = cpus.iter().map(|(zone, cpu)| (Text::clone(zone), real(*cpu) / real(total)));
    (cpus.len() >= 2 && total != 0).then(|| ratios.collect())
}

/// A count of endpoints or of thousandths of CPUs, which a float holds exactly.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "there is no other way from i64 to f64")]
pub(crate) const fn real(count: i64) -> f64 {
    count as f64
}
