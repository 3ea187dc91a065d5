//! The new states of slices. Unchanged parts are borrowed from the observation, so a settled Service needs no copies.

use std::borrow::Cow;
use std::collections::BTreeMap;

use shared::api::labels::Labels;
use shared::controllers::endpoints::label_changes;

use super::{Changes, Creation, Update};
use crate::objects::{AddressType, Endpoint, EndpointPort, EndpointSlice};

#[derive(Clone, Debug)]
pub(super) struct Draft<'a> {
    /// The observed slice; none if it is new.
    pub(super) base: Option<&'a EndpointSlice>,
    pub(super) ports: Cow<'a, [EndpointPort]>,
    pub(super) endpoints: Cow<'a, [Endpoint]>,
    pub(super) relabels: bool,
}

impl<'a> Draft<'a> {
    pub(super) fn of(base: &'a EndpointSlice) -> Self {
        let (ports, endpoints) = (Cow::Borrowed(base.ports.as_slice()), Cow::Borrowed(base.endpoints.as_slice()));
        Self { base: Some(base), ports, endpoints, relabels: false }
    }

    pub(super) fn new(ports: &[EndpointPort]) -> Self {
        Self { base: None, ports: ports.to_vec().into(), endpoints: Vec::new().into(), relabels: true }
    }

    pub(super) fn creation(self, address_type: &AddressType, labels: &Labels) -> Creation {
        let Self { base: _, ports, endpoints, relabels: _ } = self;
        let (address_type, labels, annotations) = (address_type.clone(), labels.clone(), Labels::default());
        Creation { address_type, labels, annotations, ports: ports.into_owned(), endpoints: endpoints.into_owned() }
    }

    /// The update, to these labels; none if nothing changes.
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
            sets_owner: false,
            ports,
            endpoints: endpoints.map(Cow::into_owned),
            changes,
        })
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Drafts<'a> {
    pub(super) create: Vec<Draft<'a>>,
    pub(super) update: Vec<Draft<'a>>,
    pub(super) unchanged: Vec<Draft<'a>>,
}

impl<'a> Drafts<'a> {
    pub(super) fn all(&self) -> impl Iterator<Item = &Draft<'a>> {
        self.create.iter().chain(&self.update).chain(&self.unchanged)
    }

    pub(super) fn written(&mut self) -> impl Iterator<Item = &mut Draft<'a>> {
        self.create.iter_mut().chain(&mut self.update)
    }

    /// Move the kept slices for which this is true to those to update.
    pub(super) fn update_also(&mut self, mut is_to_update: impl FnMut(&Draft<'a>) -> bool) {
        let (update, unchanged) =
            std::mem::take(&mut self.unchanged).into_iter().partition::<Vec<_>, _>(|draft| is_to_update(draft));
        self.update.extend(update);
        self.unchanged = unchanged;
    }
}
