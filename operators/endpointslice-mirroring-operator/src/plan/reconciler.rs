//! The slices of Endpoints: one for each address type and each list of ports.
//!
//! If a group has several slices, the first gets all endpoints, and the others are deleted. A slice to delete is reused for
//! a slice to create with the same address type.
//!
//! Upstream: `pkg/controller/endpointslicemirroring/reconciler.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use shared::api::labels::Labels;
use shared::api::object::Kind;
use shared::controllers::endpoints::label_changes;
use shared::controllers::endpoints::slice::port_map_key;
use shared::working::events::PlannedEvent;

use super::reconciler_helpers::{Desired, GroupKey, Wanted};
use super::utils::{EndpointKey, annotation_changes, endpoint_key, is_of_former, slice_labels};
use super::{Changes, Config, Creation, Deletion, Gone, Mirrored, Size, Update, Writes};
use crate::objects::{ENDPOINTS, Endpoint, EndpointPort, EndpointSlice, Endpoints, reasons};
use crate::observe::Observed;

struct Draft<'a> {
    /// The observed slice; none if it is new.
    base: Option<&'a EndpointSlice>,
    key: GroupKey,
    ports: Vec<EndpointPort>,
    endpoints: Vec<Endpoint>,
}

type Deletions<'a> = Vec<(&'a EndpointSlice, Gone)>;

pub(super) fn in_order(observed: &Observed) -> impl Iterator<Item = &EndpointSlice> {
    let mut slices: Vec<&EndpointSlice> = observed.slices.iter().map(|slice| &**slice).collect();
    slices.sort_unstable_by(|a, b| a.metadata.key.cmp(&b.metadata.key));
    slices.into_iter()
}

/// Decide on the slices of mirrored Endpoints.
///
/// Upstream: `reconcile`.
pub(super) fn reconcile(observed: &Observed, endpoints: &Arc<Endpoints>, config: Config) -> Mirrored {
    let max = config.max_endpoints_per_subset;
    let Desired { groups, skipped, invalid } = Desired::of(endpoints, max);
    let mut existing: BTreeMap<GroupKey, Vec<&EndpointSlice>> = BTreeMap::new();
    for slice in in_order(observed) {
        existing.entry((slice.address_type.clone(), port_map_key(&slice.ports))).or_default().push(slice);
    }
    let (mut drafts, mut delete) = (Vec::new(), Deletions::new());
    let (mut changes, mut sizes) = (Changes::default(), Vec::new());
    for (key, wanted) in groups {
        let slices = existing.remove(&key).unwrap_or_default();
        let group = Group::of(endpoints, key, wanted, &slices, max);
        changes.add(group.changes);
        sizes.push(group.size);
        drafts.extend(group.draft);
        delete.extend(group.delete);
    }
    delete.extend(existing.into_values().flatten().map(|slice| (slice, Gone::PortsUnwanted)));
    let mirrored = Mirrored {
        endpoints: Arc::clone(endpoints),
        writes: Writes::default(),
        events: events(endpoints, skipped, invalid, max),
        changes,
        skipped,
        invalid,
        sizes,
    };
    finalize(mirrored, drafts, delete)
}

fn events(endpoints: &Endpoints, skipped: usize, invalid: usize, max: usize) -> Vec<PlannedEvent> {
    let warning = |reason, message| PlannedEvent::warning(endpoints.reference(), reason, message);
    let invalid_ones = (invalid > 0).then(|| {
        let message = format!("Skipped {invalid} invalid IP addresses when mirroring to EndpointSlices");
        warning(reasons::INVALID_IP, message)
    });
    let too_many = (skipped > invalid).then(|| {
        let message = format!(
            "A max of {max} addresses can be mirrored to EndpointSlices per Endpoints subset. {skipped} addresses were \
             skipped"
        );
        warning(reasons::TOO_MANY, message)
    });
    invalid_ones.into_iter().chain(too_many).collect()
}

struct Group<'a> {
    draft: Option<Draft<'a>>,
    delete: Deletions<'a>,
    changes: Changes,
    size: Size,
}

impl<'a> Group<'a> {
    /// Upstream: `reconcileByPortMapping`.
    fn of(endpoints: &Endpoints, key: GroupKey, wanted: Wanted, slices: &[&'a EndpointSlice], max: usize) -> Self {
        let count = wanted.endpoints.len();
        if count == 0 {
            let removed = slices.iter().map(|slice| slice.endpoints.len()).sum();
            return Self {
                draft: None,
                delete: slices.iter().map(|slice| (*slice, Gone::Emptied)).collect(),
                changes: Changes { removed, ..Changes::default() },
                size: Size { endpoints: 0, slices: 0 },
            };
        }
        let (first, others) = match slices {
            [first, others @ ..] => (Some(*first), others),
            [] => (None, &[][..]),
        };
        let kept = first.map_or(&[][..], |slice| slice.endpoints.as_slice());
        let changes = Changes::between(kept, &wanted.endpoints);
        let is_right = first.is_some_and(|slice| !changes.are_any() && is_labelled_right(slice, endpoints));
        let draft = Draft {
            base: first,
            key,
            ports: wanted.ports,
            endpoints: wanted.endpoints.into_values().take(max).collect(),
        };
        Self {
            draft: Some(draft).filter(|_| !is_right),
            delete: others.iter().map(|slice| (*slice, Gone::Duplicate)).collect(),
            changes,
            size: Size { endpoints: count, slices: 1 },
        }
    }
}

/// Whether a slice has the labels and annotations of its Endpoints, and belongs to them.
fn is_labelled_right(slice: &EndpointSlice, endpoints: &Endpoints) -> bool {
    let (own, wanted) = (&slice.metadata, &endpoints.metadata);
    own.labels == slice_labels(endpoints)
        && own.annotations.mirrored == wanted.annotations.mirrored
        && own.annotations.others.is_empty()
        && !is_of_former(slice, endpoints)
}

impl Changes {
    /// Upstream: `totalChanges`.
    fn between(old: &[Endpoint], new: &BTreeMap<EndpointKey, Endpoint>) -> Self {
        let mut changes = Self { added: new.len(), ..Self::default() };
        for endpoint in old {
            match endpoint_key(endpoint).and_then(|key| new.get(&key)) {
                None => changes.removed += 1,
                Some(same) => {
                    changes.added = changes.added.saturating_sub(1);
                    changes.updated += usize::from(!same.is_in_the_state_of(endpoint));
                }
            }
        }
        changes
    }

    const fn add(&mut self, Self { added, updated, removed }: Self) {
        self.added += added;
        self.updated += updated;
        self.removed += removed;
    }
}

/// Turn pairs of a creation and a deletion into updates, and all drafts into writes.
///
/// Upstream: `finalize` and `recycleSlices`, which finds a slice to create by a name that it does not have yet, and may
/// drop the wrong one.
fn finalize(mut mirrored: Mirrored, drafts: Vec<Draft<'_>>, delete: Deletions<'_>) -> Mirrored {
    let (mut update, mut create): (Vec<_>, Vec<_>) = drafts.into_iter().partition(|draft| draft.base.is_some());
    for (slice, why) in delete {
        match create.iter().position(|draft| draft.key.0 == slice.address_type) {
            Some(at) => update.push(Draft { base: Some(slice), ..create.remove(at) }),
            None => mirrored.writes.delete.push(Deletion::of(slice, why)),
        }
    }
    let endpoints = &mirrored.endpoints;
    let labels = slice_labels(endpoints);
    mirrored.writes.update = update.into_iter().filter_map(|draft| draft.update(endpoints, &labels)).collect();
    // The garbage collector would delete new slices.
    if endpoints.metadata.is_being_deleted() {
        mirrored.writes.withheld = create.len();
    } else {
        mirrored.writes.create = create.into_iter().map(|draft| draft.creation(endpoints, &labels)).collect();
    }
    mirrored
}

impl Draft<'_> {
    fn creation(self, mirrored: &Endpoints, labels: &Labels) -> Creation {
        let Self { base: _, key, ports, endpoints } = self;
        let annotations = mirrored.metadata.annotations.mirrored.clone();
        Creation { address_type: key.0, labels: labels.clone(), annotations, ports, endpoints }
    }

    /// None for a new slice.
    fn update(self, mirrored: &Endpoints, labels: &Labels) -> Option<Update> {
        let Self { base, key: _, ports, endpoints } = self;
        let base = base?;
        let meta = &base.metadata;
        let new: BTreeMap<EndpointKey, Endpoint> =
            endpoints.into_iter().filter_map(|endpoint| Some((endpoint_key(&endpoint)?, endpoint))).collect();
        let changes = Changes::between(&base.endpoints, &new);
        let endpoints = changes.are_any().then(|| new.into_values().collect());
        let ports = (port_map_key(&ports) != port_map_key(&base.ports)).then_some(ports);
        let update = Update {
            key: meta.key.clone(),
            uid: meta.uid,
            resource_version: meta.resource_version,
            labels: label_changes(&meta.labels, labels),
            annotations: annotation_changes(&meta.annotations, &mirrored.metadata.annotations.mirrored),
            sets_owner: !base.is_owned_by(&ENDPOINTS, mirrored.metadata.uid),
            ports,
            endpoints,
            changes,
        };
        Some(update)
    }
}
