//! Reads from the caches all that one sync decides on.
//!
//! Left out: live reads. One comes before an adoption and is part of adopting; another one is of pods that have ended,
//! of which [`super::memory`] knows.

use std::sync::Arc;

use jiff::Timestamp;

use super::ReplicaOwner;
use super::memory::{Ended, Rejected};
use super::pod::Pod;
use crate::api::object::Key;
use crate::api::pod::{LIVE, PodView};
use crate::controllers::claims::Claims;
use crate::controllers::rejections::Rejections;
use crate::following::cache::{Cache, IndexId, IndexValue};
use crate::following::informer::{Informer, InformerBuilder};
use crate::working::expectations::{Expectations, Outstanding};

pub struct Caches<T> {
    pub owners: Arc<Cache<T>>,
    /// The pods of all owners, and everybody else's; not those that have ended, which no owner counts.
    pub pods: Arc<Cache<Pod>>,
    /// The owners of pods, and who may adopt them.
    pub claims: Claims<T, Pod>,
    owners_by_controller: IndexId,
}

pub(super) struct Informers<T> {
    pub(super) owners: Informer<T>,
    pub(super) pods: Informer<Pod>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Observed<T> {
    pub owner: Arc<T>,
    /// The pods whose controller it is, and those of its namespace that have none.
    pub pods: Vec<Arc<Pod>>,
    /// The pods of all owners under the same controller, to tell which nodes hold several; read only if one must go.
    pub related: Vec<Arc<Pod>>,
    /// The creations and deletions that are not seen yet; until they are, its pods are not counted.
    pub outstanding: Option<Outstanding>,
    pub rejections: Rejections,
    /// Pods that have ended without having been seen to run: a live read tells whether their nodes have rejected them.
    pub ended: Vec<Ended>,
}

impl<T: ReplicaOwner> Observed<T> {
    /// The same, with what is known of rejected pods.
    #[must_use]
    pub fn with(self, rejected: &Rejected, now: Timestamp) -> Self {
        let (rejections, ended) = rejected.of(&*self.owner, &self.pods, now);
        Self { rejections, ended, ..self }
    }
}

impl<T: ReplicaOwner> Caches<T> {
    pub(super) fn new() -> (Self, Informers<T>) {
        let (mut owners, pods) = (InformerBuilder::<T>::new(), InformerBuilder::<Pod>::new().fields(LIVE));
        let owners_by_controller = owners.index_by_controller();
        let (claims, owners, pods) = Claims::new(owners, pods);
        let caches = Self { owners: owners.cache(), pods: pods.cache(), claims, owners_by_controller };
        (caches, Informers { owners, pods })
    }

    /// Observes the owner of this key; `None` if there is none.
    ///
    /// Upstream: the first half of `syncReplicaSet`, `pkg/controller/replicaset/replica_set.go`.
    pub fn observe(&self, expectations: &Expectations, key: &Key, now: Timestamp) -> Option<Observed<T>> {
        let owner = self.owners.get(key)?;
        // Before the pods: what is fulfilled in between is then counted at the next sync, and not twice in this one.
        let outstanding = expectations.outstanding(key, now);
        let pods = self.claims.candidates(&owner);
        let active = pods.iter().filter(|pod| pod.is_active()).count();
        let has_surplus = T::RANKS_RELATED && active > owner.spec().wanted();
        let related = if has_surplus { self.related_pods(&owner) } else { Vec::new() };
        Some(Observed { owner, pods, related, outstanding, rejections: Rejections::default(), ended: Vec::new() })
    }

    /// The pods of all owners under the same controller, this one's included; none if it has no controller.
    ///
    /// Upstream takes every pod of the namespace that one of their selectors matches; here it must also be controlled
    /// by one of them.
    ///
    /// Upstream: `getIndirectlyRelatedPods`, `pkg/controller/replicaset/replica_set.go`.
    fn related_pods(&self, owner: &T) -> Vec<Arc<Pod>> {
        let Some(controller) = owner.meta().controller_uid() else { return Vec::new() };
        let siblings = self.owners.by_index(self.owners_by_controller, &IndexValue::Uid(controller));
        let pods_of = |sibling: &Arc<T>| {
            let mut pods = self.claims.owned(sibling);
            pods.retain(|pod| sibling.spec().selects(&pod.metadata.labels));
            pods
        };
        siblings.iter().flat_map(pods_of).collect()
    }
}

#[cfg(test)]
mod tests;
