//! Distributes endpoints to slices with as few writes as possible.
//!
//! Slices are grouped by ports. In each group, endpoints that are gone or changed are updated in their slices. New endpoints
//! go first into slices that are written anyway, the fullest first, then into the one slice that they fill best, or into
//! new slices. Slices are never merged.
//!
//! Upstream: `staging/src/k8s.io/endpointslice/reconciler.go`.

use std::collections::BTreeMap;

use shared::api::labels::Labels;
use shared::api::object::Key;
use shared::controllers::endpoints::slice::{PortMapKey, port_map_key};
use shared::working::events::PlannedEvent;

use super::draft::{Draft, Drafts};
use super::topologycache;
use super::trafficdist::{self, TrafficDistribution};
use super::utils::{endpoint_ports, labels_differ, pod_to_endpoint, slice_labels};
use super::{Config, Deletion, Family, Gone, Size, Skipped};
use crate::memory::topology::ServiceHints;
use crate::objects::pod::PodPorts;
use crate::objects::{AddressType, Endpoint, EndpointPort, EndpointSlice, SERVICES, Service};
use crate::observe::Observed;

/// The slices and the endpoints with the same ports.
#[derive(Default)]
struct Group<'a> {
    existing: Vec<&'a EndpointSlice>,
    /// None if no pod has these ports any more.
    desired: Option<Desired>,
}

struct Desired {
    ports: Vec<EndpointPort>,
    /// The endpoints, by pod.
    endpoints: BTreeMap<Key, Endpoint>,
}

type Groups<'a> = BTreeMap<PortMapKey, Group<'a>>;

type Deletions<'a> = Vec<(&'a EndpointSlice, Gone)>;

/// Decide on the slices of one address type.
///
/// Upstream: `reconcileByAddressType`.
pub(super) fn plan_address_type(
    observed: &Observed,
    config: Config,
    address_type: &AddressType,
    hints: &mut ServiceHints,
) -> Family {
    let service = &*observed.service;
    let existing: Vec<&EndpointSlice> = in_order(observed, |slice| slice.address_type == *address_type);
    let mut groups = Groups::new();
    let mut drafts = Drafts::default();
    let mut delete = Deletions::new();
    for slice in &existing {
        if slice.is_owned_by(&SERVICES, service.metadata.uid) {
            groups.entry(port_map_key(&slice.ports)).or_default().existing.push(slice);
        } else {
            delete.push((slice, Gone::NotOwned));
        }
    }
    let skipped = desire(observed, address_type, &mut groups);

    let mut family = Family::new(address_type.clone(), skipped);
    let mut unwanted = Deletions::new();
    for Group { existing, desired } in groups.into_values() {
        let Some(desired) = desired else {
            unwanted.extend(existing.into_iter().map(|slice| (slice, Gone::PortsUnwanted)));
            continue;
        };
        let packed = pack(service, config.max_endpoints_per_slice, &existing, desired);
        family.added += packed.added;
        family.removed += packed.removed;
        family.sizes.push(packed.size(existing.len()));
        drafts.create.extend(packed.drafts.create);
        drafts.update.extend(packed.drafts.update);
        drafts.unchanged.extend(packed.drafts.unchanged);
        delete.extend(packed.delete);
    }
    delete.extend(unwanted);

    let labels = slice_labels(service);
    if existing.len() == delete.len() && drafts.create.is_empty() {
        keep_placeholder(&labels, &mut drafts, &mut delete);
        family.sizes.push(Size { endpoints: 0, slices: 1 });
    }
    family.events.extend(set_hints(observed, address_type, &mut drafts, hints));
    finalize(service, &labels, drafts, delete, family)
}

/// The observed slices for which this is true, sorted by key.
pub(super) fn in_order(observed: &Observed, is_meant: impl Fn(&EndpointSlice) -> bool) -> Vec<&EndpointSlice> {
    let mut slices: Vec<&EndpointSlice> = observed.slices.iter().map(|slice| &**slice).collect();
    slices.retain(|slice| is_meant(slice));
    slices.sort_unstable_by(|a, b| a.metadata.key.cmp(&b.metadata.key));
    slices
}

/// Add every desired endpoint to the group of its ports. Gives the pods that are left out.
fn desire(observed: &Observed, address_type: &AddressType, groups: &mut Groups<'_>) -> Vec<Skipped> {
    let service = &*observed.service;
    // Pods of one template have equal ports.
    let mut known: BTreeMap<&PodPorts, PortMapKey> = BTreeMap::new();
    let mut skipped = Vec::new();
    for pod in observed.pods.iter().filter(|pod| pod.is_listed()) {
        let key = known.entry(&pod.ports).or_insert_with(|| {
            let ports = endpoint_ports(service, &pod.ports);
            let key = port_map_key(&ports);
            let group = groups.entry(key.clone()).or_default();
            group.desired.get_or_insert_with(|| Desired { ports, endpoints: BTreeMap::new() });
            key
        });
        let node = observed.nodes.get(&pod.node);
        if node.is_none() && !service.publishes_not_ready {
            skipped.push(Skipped { pod: pod.metadata.key.clone(), node: pod.node.clone() });
            continue;
        }
        let zone = node.and_then(Option::as_ref);
        let Some(endpoint) = pod_to_endpoint(service, address_type, pod, zone) else { continue };
        if let Some(desired) = groups.get_mut(key).and_then(|group| group.desired.as_mut()) {
            desired.endpoints.insert(pod.metadata.key.clone(), endpoint);
        }
    }
    skipped.sort_unstable_by(|a, b| a.pod.cmp(&b.pod));
    skipped
}

struct Packed<'a> {
    drafts: Drafts<'a>,
    delete: Deletions<'a>,
    endpoints: usize,
    added: usize,
    removed: usize,
}

impl Packed<'_> {
    fn size(&self, existing: usize) -> Size {
        let slices = existing + self.drafts.create.len() - self.delete.len();
        Size { endpoints: self.endpoints, slices }
    }
}

/// Distribute the endpoints of one group to slices.
///
/// Upstream: `reconcileByPortMapping`.
fn pack<'a>(service: &Service, max: usize, existing: &[&'a EndpointSlice], desired: Desired) -> Packed<'a> {
    let Desired { ports, endpoints: mut rest } = desired;
    let endpoints = rest.len();
    let (mut drafts, mut delete, mut removed) = (Drafts::default(), Deletions::new(), 0);
    for slice in existing {
        let (kept, is_changed) = keep(slice, &mut rest);
        let gone = slice.endpoints.len() - kept.len();
        removed += gone;
        if gone > 0 && kept.is_empty() {
            delete.push((slice, Gone::Emptied));
        } else if gone > 0 || is_changed {
            drafts.update.push(Draft { endpoints: kept.into(), relabels: true, ..Draft::of(slice) });
        } else if labels_differ(slice, service) {
            drafts.update.push(Draft { relabels: true, ..Draft::of(slice) });
        } else {
            drafts.unchanged.push(Draft::of(slice));
        }
    }
    let added = rest.len();
    let mut fullest_first: Vec<&mut Draft<'a>> = drafts.update.iter_mut().collect();
    fullest_first.sort_by_key(|draft| std::cmp::Reverse(draft.endpoints.len()));
    for draft in fullest_first {
        fill(draft, max, &mut rest);
    }
    while !rest.is_empty() {
        let at = slice_to_fill(&drafts.unchanged, rest.len(), max);
        let mut draft = at.map_or_else(|| Draft::new(&ports), |at| drafts.unchanged.remove(at));
        fill(&mut draft, max, &mut rest);
        let drafts = if draft.base.is_some() { &mut drafts.update } else { &mut drafts.create };
        drafts.push(draft);
    }
    Packed { drafts, delete, endpoints, added, removed }
}

/// Take the endpoints that stay in a slice out of `rest`. Gives their new states, and whether any of them changed.
fn keep(slice: &EndpointSlice, rest: &mut BTreeMap<Key, Endpoint>) -> (Vec<Endpoint>, bool) {
    let mut is_changed = false;
    let mut kept = Vec::with_capacity(slice.endpoints.len());
    for endpoint in &slice.endpoints {
        let Some(key) = endpoint.target.as_ref().map(|target| &target.key) else { continue };
        if rest.get(key).is_some_and(|desired| desired.is_same(endpoint)) {
            kept.extend(rest.remove(key).inspect(|desired| is_changed |= !desired.is_in_the_state_of(endpoint)));
        }
    }
    (kept, is_changed)
}

fn fill(draft: &mut Draft<'_>, max: usize, rest: &mut BTreeMap<Key, Endpoint>) {
    let room = max.saturating_sub(draft.endpoints.len()).min(rest.len());
    if room > 0 {
        let endpoints = draft.endpoints.to_mut();
        endpoints.extend(std::iter::from_fn(|| rest.pop_first()).take(room).map(|(_, endpoint)| endpoint));
    }
}

/// The slice that is fullest after adding this many endpoints; none if they fill a new slice alone, or fit into no slice.
///
/// Upstream: `getSliceToFill`, `utils.go`.
fn slice_to_fill(slices: &[Draft<'_>], endpoints: usize, max: usize) -> Option<usize> {
    if endpoints >= max {
        return None;
    }
    let room = |draft: &Draft<'_>| max.checked_sub(endpoints + draft.endpoints.len());
    let fitting = slices.iter().enumerate().filter_map(|(at, draft)| Some((room(draft)?, at)));
    fitting.filter(|(room, _)| *room < max).min().map(|(_, at)| at)
}

/// Keep or create a slice without endpoints if no slice is left, so that the Service visibly has none.
fn keep_placeholder<'a>(labels: &Labels, drafts: &mut Drafts<'a>, delete: &mut Deletions<'a>) {
    match delete.as_slice() {
        // The garbage collector will delete the slice of a deleted Service.
        [(slice, why)] if *why != Gone::NotOwned && is_placeholder(slice, labels) => {
            drafts.unchanged.push(Draft::of(slice));
            delete.clear();
        }
        _ => drafts.create.push(Draft::new(&[])),
    }
}

/// Upstream: `placeholderSliceCompare`. A missing label equals an empty one.
fn is_placeholder(slice: &EndpointSlice, labels: &Labels) -> bool {
    let covers = |a: &Labels, b: &Labels| a.iter().all(|(key, value)| b.get(key).unwrap_or_default() == value);
    let own = &slice.metadata.labels;
    slice.ports.is_empty() && slice.endpoints.is_empty() && covers(own, labels) && covers(labels, own)
}

fn set_hints(
    observed: &Observed,
    address_type: &AddressType,
    drafts: &mut Drafts<'_>,
    hints: &mut ServiceHints,
) -> Option<PlannedEvent> {
    let service = &*observed.service;
    if service.metadata.annotations.is_auto {
        return topologycache::add_hints(service, observed.zones.as_deref(), address_type, drafts, hints);
    }
    let event = topologycache::disable(service, address_type, hints);
    match TrafficDistribution::parse(service.traffic_distribution.as_deref()) {
        Some(wanted) => trafficdist::set_hints(wanted, drafts),
        None => topologycache::remove_hints(drafts),
    }
    event
}

/// Turn pairs of a creation and a deletion into updates, and all drafts into writes.
///
/// Upstream: `finalize`.
fn finalize(
    service: &Service,
    labels: &Labels,
    drafts: Drafts<'_>,
    delete: Deletions<'_>,
    mut family: Family,
) -> Family {
    let Drafts { create, mut update, unchanged: _ } = drafts;
    let mut create = create.into_iter();
    for (slice, why) in delete {
        // The garbage collector will delete the slice of a deleted Service.
        let recycled = if why == Gone::NotOwned { None } else { create.next() };
        match recycled {
            Some(draft) => update.push(Draft { base: Some(slice), ..draft }),
            None => family.writes.delete.push(Deletion::of(slice, why)),
        }
    }
    // The garbage collector would delete new slices.
    if service.metadata.is_being_deleted() {
        family.writes.withheld = create.len();
    } else {
        let address_type = &family.address_type;
        family.writes.create = create.map(|draft| draft.creation(address_type, labels)).collect();
    }
    family.writes.update = update.into_iter().filter_map(|draft| draft.update(labels)).collect();
    family
}
