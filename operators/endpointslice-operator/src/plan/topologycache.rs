//! Hints after the annotation `service.kubernetes.io/topology-mode`: each zone gets as many endpoints as it has CPU.
//!
//! Where upstream goes through a map in no order, here the first zone by name comes first.
//! Left out: remembering; what was allocated comes with the observation and leaves with the plan.
//!
//! Upstream: `staging/src/k8s.io/endpointslice/topologycache`.

use std::collections::BTreeMap;

use shared::api::intern::Text;
use shared::runtime::events::EventType;

use super::PlannedEvent;
use super::draft::{Draft, Drafts};
use crate::objects::{AddressType, Endpoint, Hints, Node, reasons};

/// How much more than its share an endpoint may get. Upstream: `overloadThreshold`.
const OVERLOAD_THRESHOLD: f64 = 0.2;

/// The share of all CPU that each zone has.
pub type ZoneRatios = BTreeMap<Text, f64>;

/// How many endpoints are meant for each zone.
pub type ZoneCounts = BTreeMap<Text, i64>;

/// The remembered hints of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceHints {
    /// The allocations, by address type.
    pub allocated: BTreeMap<AddressType, ZoneCounts>,
    /// Whether its endpoints have hints, as far as was told.
    pub is_enabled: bool,
}

impl ServiceHints {
    /// Forgets what was allocated for an address type.
    ///
    /// Upstream: `RemoveHints`, which takes the hints of all types for disabled then.
    pub fn remove(&mut self, address_type: &AddressType) {
        self.allocated.remove(address_type);
        self.is_enabled = false;
    }

    /// Whether some zone has too few endpoints for its CPU.
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

/// The shares of the zones; none if they cannot be told, or if there is but one zone.
///
/// Upstream: `SetNodes`.
pub fn zone_ratios<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> Option<ZoneRatios> {
    let mut cpus: BTreeMap<&Text, i64> = BTreeMap::new();
    for node in nodes.into_iter().filter(|node| node.is_ready && !node.is_control_plane) {
        // One node of which too little is known, and nothing is known of the whole.
        let zone = node.zone.as_ref().filter(|_| node.milli_cpu != 0)?;
        let cpu = cpus.entry(zone).or_default();
        *cpu = cpu.saturating_add(node.milli_cpu);
    }
    let total = cpus.values().copied().fold(0, i64::saturating_add);
    let ratios = cpus.iter().map(|(zone, cpu)| (Text::clone(zone), real(*cpu) / real(total)));
    (cpus.len() >= 2 && total != 0).then(|| ratios.collect())
}

/// How many endpoints a zone is to get.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Allocation {
    /// Fewer would overload them.
    pub(super) minimum: i64,
    /// More would leave too few for other zones.
    pub(super) maximum: i64,
    /// Its share, or the minimum where that is more.
    pub(super) desired: f64,
}

type Allocations = BTreeMap<Text, Allocation>;

/// The error is the message for people.
///
/// Upstream: `getAllocations`.
fn allocations(ratios: Option<&ZoneRatios>, endpoints: i64) -> Result<Allocations, String> {
    let Some(ratios) = ratios else {
        let message =
            "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes".to_owned();
        return Err(message);
    };
    let zones = i64::try_from(ratios.len()).unwrap_or(i64::MAX);
    if zones < 2 {
        return Err("Nodes only ready in one zone".to_owned());
    }
    if zones > endpoints {
        return Err(format!("Insufficient number of endpoints ({endpoints} endpoints, {zones} zones)"));
    }
    let mut allocations: Allocations =
        ratios.iter().map(|(zone, ratio)| (zone.clone(), share(*ratio, endpoints))).collect();
    let minimum: i64 = allocations.values().map(|allocation| allocation.minimum).sum();
    if minimum > endpoints {
        return Err(format!(
            "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold \
             ({endpoints} endpoints, {zones} zones)"
        ));
    }
    for allocation in allocations.values_mut() {
        allocation.maximum = allocation.minimum + endpoints - minimum;
    }
    Ok(allocations)
}

fn share(ratio: f64, endpoints: i64) -> Allocation {
    let desired = ratio * real(endpoints);
    let minimum = whole((desired * (1.0 / (1.0 + OVERLOAD_THRESHOLD))).ceil());
    Allocation { minimum, maximum: 0, desired: desired.max(real(minimum)) }
}

/// Gives every ready endpoint a hint for one zone, so that no zone has too few; or takes all hints away where that is
/// not possible. Notes what was allocated, and tells what has changed.
///
/// Upstream: `AddHints`.
pub(super) fn add_hints(
    ratios: Option<&ZoneRatios>,
    address_type: &AddressType,
    drafts: &mut Drafts<'_>,
    service: &mut ServiceHints,
) -> Option<PlannedEvent> {
    match allocate(ratios, drafts) {
        Ok(counts) => {
            service.allocated.insert(address_type.clone(), counts);
            let was_enabled = std::mem::replace(&mut service.is_enabled, true);
            let message = format!("Topology Aware Hints has been enabled, addressType: {address_type}");
            (!was_enabled).then_some(PlannedEvent { kind: EventType::Normal, reason: reasons::HINTS_ENABLED, message })
        }
        Err(why) => {
            service.remove(address_type);
            remove_hints(drafts);
            Some(disabled(&why, address_type))
        }
    }
}

/// Notes that a Service wants no hints of this kind any more, and tells so if it had some.
///
/// Upstream: `reconcileByAddressType`, `staging/src/k8s.io/endpointslice/reconciler.go`.
pub(super) fn disable(address_type: &AddressType, service: &mut ServiceHints) -> Option<PlannedEvent> {
    let was_enabled = service.is_enabled;
    service.remove(address_type);
    was_enabled.then(|| disabled("Topology Aware Hints has been disabled", address_type))
}

fn disabled(why: &str, address_type: &AddressType) -> PlannedEvent {
    let message = format!("{why}, addressType: {address_type}");
    PlannedEvent { kind: EventType::Warning, reason: reasons::HINTS_DISABLED, message }
}

/// The error is the message for people.
fn allocate(ratios: Option<&ZoneRatios>, drafts: &mut Drafts<'_>) -> Result<ZoneCounts, String> {
    let ready = drafts.all().flat_map(|draft| draft.endpoints.iter()).filter(|endpoint| endpoint.is_ready()).count();
    let allocations = allocations(ratios, i64::try_from(ready).unwrap_or(i64::MAX))?;
    let mut counts = keep_hints(drafts, &allocations);
    for draft in drafts.written() {
        for endpoint in draft.endpoints.to_mut().iter_mut().filter(|endpoint| endpoint.is_ready()) {
            let zone = endpoint.zone.as_ref().filter(|zone| !zone.is_empty());
            let zone = zone.ok_or("One or more endpoints do not have a zone specified")?;
            *counts.entry(zone.clone()).or_default() += 1;
            endpoint.hints = Some(Hints::new(Some(zone), None));
        }
    }
    let (giving, receiving) = giving_and_receiving(&allocations, &counts);
    for (zone, difference) in redistribute(drafts.written(), giving, receiving) {
        *counts.entry(zone).or_default() += difference;
    }
    if counts.is_empty() {
        return Err("No hints allocated for zones".to_owned());
    }
    Ok(counts)
}

/// Leaves slices alone whose hints fit in, and counts these.
///
/// Upstream: `getAllocatedHintsByZone`, `topologycache/sliceinfo.go`.
fn keep_hints(drafts: &mut Drafts<'_>, allocations: &Allocations) -> ZoneCounts {
    let mut counts = ZoneCounts::new();
    drafts.update_also(|draft| match hints_by_zone(draft, &counts, allocations) {
        Some(kept) => {
            for (zone, count) in kept {
                *counts.entry(zone).or_default() += count;
            }
            false
        }
        None => true,
    });
    counts
}

/// How many hints a slice has for each zone; none if one is missing, or if a zone would have too many.
///
/// Upstream: `getHintsByZone`, `topologycache/utils.go`.
fn hints_by_zone(draft: &Draft<'_>, counts: &ZoneCounts, allocations: &Allocations) -> Option<ZoneCounts> {
    let mut own = ZoneCounts::new();
    for endpoint in draft.endpoints.iter().filter(|endpoint| endpoint.is_ready()) {
        let zones = endpoint.hints.as_ref().map(|hints| &hints.for_zones).filter(|zones| !zones.is_empty())?;
        for zone in zones {
            allocations.get(zone)?;
            *own.entry(zone.clone()).or_default() += 1;
        }
    }
    let fits = own.iter().all(|(zone, count)| {
        let before = counts.get(zone).copied().unwrap_or(0);
        allocations.get(zone).is_some_and(|allocation| count + before <= allocation.maximum)
    });
    fits.then_some(own)
}

/// How many endpoints each zone should give to others, and how many it should get.
///
/// Upstream: `getGivingAndReceivingZones`, `topologycache/utils.go`.
pub(super) fn giving_and_receiving(allocations: &Allocations, counts: &ZoneCounts) -> (ZoneCounts, ZoneCounts) {
    let (mut more, mut fewer) = (BTreeMap::new(), BTreeMap::new());
    for (zone, allocation) in allocations {
        let surplus = real(counts.get(zone).copied().unwrap_or(0)) - allocation.desired;
        if surplus > 0.0 {
            more.insert(zone, surplus);
        } else if surplus < 0.0 {
            fewer.insert(zone, -surplus);
        }
    }
    let (mut giving, mut receiving) = (ZoneCounts::new(), ZoneCounts::new());
    while let (Some((giver, surplus)), Some((receiver, lack))) = (most(&more), most(&fewer)) {
        if (surplus < 1.0 && lack < 1.0) || surplus < 0.5 || lack < 0.5 {
            break;
        }
        *giving.entry(giver.clone()).or_default() += 1;
        more.insert(giver, surplus - 1.0);
        *receiving.entry(receiver.clone()).or_default() += 1;
        fewer.insert(receiver, lack - 1.0);
    }
    (giving, receiving)
}

/// Upstream: `getMost`, `topologycache/utils.go`.
fn most<'a>(zones: &BTreeMap<&'a Text, f64>) -> Option<(&'a Text, f64)> {
    let positive = zones.iter().filter(|(_, number)| **number > 0.0);
    let most = positive.reduce(|most, next| if next.1 > most.1 { next } else { most });
    most.map(|(zone, number)| (*zone, *number))
}

/// Moves hints from zones with too many to zones with too few; gives the differences.
///
/// Upstream: `redistributeHints`, `topologycache/utils.go`.
fn redistribute<'d, 'a: 'd>(
    drafts: impl Iterator<Item = &'d mut Draft<'a>>,
    mut giving: ZoneCounts,
    mut receiving: ZoneCounts,
) -> ZoneCounts {
    let mut differences = ZoneCounts::new();
    for draft in drafts {
        if giving.is_empty() || receiving.is_empty() {
            break;
        }
        for endpoint in draft.endpoints.to_mut().iter_mut().filter(|endpoint| endpoint.is_ready()) {
            let Some((giver, receiver)) = take_one(endpoint, &mut giving, &mut receiving) else { continue };
            endpoint.hints = Some(Hints::new(Some(&receiver), None));
            *differences.entry(receiver).or_default() += 1;
            *differences.entry(giver).or_default() -= 1;
        }
    }
    differences
}

fn take_one(endpoint: &Endpoint, giving: &mut ZoneCounts, receiving: &mut ZoneCounts) -> Option<(Text, Text)> {
    let giver = endpoint.zone.as_ref().filter(|zone| giving.contains_key(*zone))?.clone();
    let receiver = receiving.keys().next()?.clone();
    for (zones, zone) in [(giving, &giver), (receiving, &receiver)] {
        let left = zones.remove(zone).unwrap_or(0) - 1;
        if left > 0 {
            zones.insert(zone.clone(), left);
        }
    }
    Some((giver, receiver))
}

/// Takes all hints away.
///
/// Upstream: `RemoveHintsFromSlices`, `topologycache/utils.go`.
pub(super) fn remove_hints(drafts: &mut Drafts<'_>) {
    let has_hints = |draft: &Draft<'_>| draft.endpoints.iter().any(|endpoint| endpoint.hints.is_some());
    drafts.update_also(has_hints);
    for draft in drafts.written() {
        if has_hints(draft) {
            for endpoint in draft.endpoints.to_mut() {
                endpoint.hints = None;
            }
        }
    }
}

/// Counts of endpoints and thousandths of CPUs: far fewer than a float can tell apart.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "there is no other way from i64 to f64")]
const fn real(count: i64) -> f64 {
    count as f64
}

/// A whole number that a float holds.
#[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "there is no other way from f64 to i64")]
const fn whole(number: f64) -> i64 {
    number as i64
}

#[cfg(test)]
mod tests;
