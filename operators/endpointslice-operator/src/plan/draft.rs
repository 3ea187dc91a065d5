//! Slices on their way from what they are to what they will be.
//!
//! Unchanged parts are borrowed from the observation, so a settled Service costs no copies.

use std::borrow::Cow;
use std::collections::BTreeMap;

use shared::api::labels::Labels;
use shared::controllers::endpoints::label_changes;

use super::{Changes, Creation, Update};
use crate::objects::{AddressType, Endpoint, EndpointPort, EndpointSlice};

/// One slice.
#[derive(Clone, Debug)]
pub(super) struct Draft<'a> {
    /// The observed slice; none if it is new.
    pub(super) base: Option<&'a EndpointSlice>,
    /// Its ports.
    pub(super) ports: Cow<'a, [EndpointPort]>,
    /// Its endpoints.
    pub(super) endpoints: Cow<'a, [Endpoint]>,
    /// Whether its labels are set anew.
    pub(super) relabels: bool,
}

impl<'a> Draft<'a> {
    /// A slice as it is.
    pub(super) fn of(base: &'a EndpointSlice) -> Self {
        let (ports, endpoints) = (Cow::Borrowed(base.ports.as_slice()), Cow::Borrowed(base.endpoints.as_slice()));
        Self { base: Some(base), ports, endpoints, relabels: false }
    }

    /// A new slice.
    pub(super) fn new(ports: &[EndpointPort]) -> Self {
        Self { base: None, ports: ports.to_vec().into(), endpoints: Vec::new().into(), relabels: true }
    }

    /// Its creation, with these labels.
    pub(super) fn creation(self, address_type: &AddressType, labels: &Labels) -> Creation {
        let Self { base: _, ports, endpoints, relabels: _ } = self;
        let (address_type, labels, annotations) = (address_type.clone(), labels.clone(), Labels::default());
        Creation { address_type, labels, annotations, ports: ports.into_owned(), endpoints: endpoints.into_owned() }
    }

    /// Its update, to these labels; none if the slice is already as it is to be.
    pub(super) fn update(self, labels: &Labels) -> Option<Update> {
        let Self { base, ports, endpoints, relabels } = self;
        let base = base?;
        let own = &base.metadata.labels;
        let labels = if relabels { label_changes(own, labels) } else { BTreeMap::new() };
        let ports = Some(ports).filter(|ports| **ports != *base.ports).map(Cow::into_owned);
        let endpoints = Some(endpoints).filter(|endpoints| **endpoints != *base.endpoints);
        if labels.is_empty() && ports.is_none() && endpoints.is_none() {
            return None;
        }
        let changes = endpoints.as_deref().map_or_else(Changes::default, |new| Changes::between(&base.endpoints, new));
        Some(Update {
            key: base.metadata.key.clone(),
            uid: base.metadata.uid,
            resource_version: base.metadata.resource_version,
            labels,
            annotations: BTreeMap::new(),
            is_of_another: false,
            ports,
            endpoints: endpoints.map(Cow::into_owned),
            changes,
        })
    }
}

/// All slices of one address type that are to be there.
#[derive(Clone, Debug, Default)]
pub(super) struct Drafts<'a> {
    /// To be created.
    pub(super) create: Vec<Draft<'a>>,
    /// To be updated.
    pub(super) update: Vec<Draft<'a>>,
    /// To be left as they are.
    pub(super) unchanged: Vec<Draft<'a>>,
}

impl<'a> Drafts<'a> {
    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &Draft<'a>> {
        self.create.iter().chain(&self.update).chain(&self.unchanged)
    }

    /// Those that are written anyway.
    pub(super) fn written(&mut self) -> impl Iterator<Item = &mut Draft<'a>> {
        self.create.iter_mut().chain(&mut self.update)
    }

    /// Has those updated too that were to be left as they are and that this is true of.
    pub(super) fn update_also(&mut self, mut is_to_update: impl FnMut(&Draft<'a>) -> bool) {
        let (update, unchanged) =
            std::mem::take(&mut self.unchanged).into_iter().partition::<Vec<_>, _>(|draft| is_to_update(draft));
        self.update.extend(update);
        self.unchanged = unchanged;
    }
}
