//! Hints for the annotation `service.kubernetes.io/topology-mode`: each zone gets endpoints in proportion to its CPU.
//!
//! Zones are processed by name; upstream's order is random.
//!
//! Upstream: `staging/src/k8s.io/endpointslice/topologycache`.

use std::collections::BTreeMap;

use shared::api::intern::Text;
use shared::api::object::Kind;
use shared::working::events::PlannedEvent;

use super::draft::{Draft, Drafts};
use crate::memory::topology::{OVERLOAD_THRESHOLD, ServiceHints, ZoneCounts, ZoneRatios, real};
use crate::objects::{AddressType, Endpoint, Hints, Service, reasons};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Allocation {
    pub(super) minimum: i64,
    /// With more, other zones would have too few.
    pub(super) maximum: i64,
    /// Its share, but at least the minimum.
    pub(super) desired: f64,
}

type Allocations = BTreeMap<Text, Allocation>;

/// The allocation of each zone; the error is the text of the event.
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

/// Give every ready endpoint a hint for one zone so that no zone has too few; if that is impossible, remove all hints. Gives
/// the event if the hints are enabled or disabled.
///
/// Upstream: `AddHints`.
pub(super) fn add_hints(
    service: &Service,
    ratios: Option<&ZoneRatios>,
    address_type: &AddressType,
    drafts: &mut Drafts<'_>,
    hints: &mut ServiceHints,
) -> Option<PlannedEvent> {
    match allocate(ratios, drafts) {
        Ok(counts) => {
            hints.allocated.insert(address_type.clone(), counts);
            let was_enabled = std::mem::replace(&mut hints.is_enabled, true);
            let message = format!("Topology Aware Hints has been enabled, addressType: {address_type}");
            (!was_enabled).then(|| PlannedEvent::normal(service.reference(), reasons::HINTS_ENABLED, message))
        }
        Err(why) => {
            hints.remove(address_type);
            remove_hints(drafts);
            Some(disabled(service, &why, address_type))
        }
    }
}

/// Disable the hints of an address type. Gives the event if they were enabled.
///
/// Upstream: `reconcileByAddressType`, `staging/src/k8s.io/endpointslice/reconciler.go`.
pub(super) fn disable(service: &Service, address_type: &AddressType, hints: &mut ServiceHints) -> Option<PlannedEvent> {
    let was_enabled = hints.is_enabled;
    hints.remove(address_type);
    was_enabled.then(|| disabled(service, "Topology Aware Hints has been disabled", address_type))
}

fn disabled(service: &Service, why: &str, address_type: &AddressType) -> PlannedEvent {
    let message = format!("{why}, addressType: {address_type}");
    PlannedEvent::warning(service.reference(), reasons::HINTS_DISABLED, message)
}

/// Set the hints; the error is the text of the event.
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

/// Keep the slices whose hints fit the allocations. Gives the number of their hints for each zone.
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

/// The number of a slice's hints for each zone; none if one is missing, or if a zone would have too many.
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

/// The number of endpoints that each zone should give to others, and that it should receive.
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

/// Move hints from zones with too many to zones with too few. Gives the differences.
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

/// Remove all hints.
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

#[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "there is no other way from f64 to i64")]
const fn whole(number: f64) -> i64 {
    number as i64
}

#[cfg(test)]
mod tests;
