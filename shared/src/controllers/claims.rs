//! Owners and what they own: whose an object is, what an owner may claim, and which owners may claim an orphan.
//!
//! Left out: what is claimed in the end, which is [`crate::api::owner::claim`]'s, and the writes, which are
//! [`KeyControl::claim`](crate::working::control::KeyControl::claim)'s.

use std::sync::Arc;

use crate::api::intern::Text;
use crate::api::labels::Labels;
use crate::api::object::{Kind, Meta, Object};
use crate::following::cache::{Cache, IndexId, IndexValue};
use crate::following::informer::{Informer, InformerBuilder};

/// The owners of one kind, and the objects of another that they may own.
pub struct Claims<O, T> {
    owners: Arc<Cache<O>>,
    objects: Arc<Cache<T>>,
    owners_by_namespace: IndexId,
    objects_by_controller: IndexId,
}

impl<O: Kind, T: Object> Claims<O, T> {
    pub fn new(mut owners: InformerBuilder<O>, mut objects: InformerBuilder<T>) -> (Self, Informer<O>, Informer<T>) {
        let owners_by_namespace = owners.index_by_namespace();
        let objects_by_controller = objects.index_by_controller();
        let (owners, objects) = (owners.build(), objects.build());
        let claims =
            Self { owners: owners.cache(), objects: objects.cache(), owners_by_namespace, objects_by_controller };
        (claims, owners, objects)
    }

    /// The objects whose controller is this owner, by key.
    pub fn owned(&self, owner: &O) -> Vec<Arc<T>> {
        self.objects.controlled_by(self.objects_by_controller, owner)
    }

    /// The objects whose controller is this owner, and those of its namespace that have none.
    ///
    /// Upstream: `FilterPodsByOwner`, `pkg/controller/controller_utils.go`.
    pub fn candidates(&self, owner: &O) -> Vec<Arc<T>> {
        let mut objects = self.owned(owner);
        objects.extend(self.objects.orphans(self.objects_by_controller, owner.meta().namespace()));
        objects
    }

    /// The owner that the controller reference of an object means.
    ///
    /// Upstream: `resolveControllerRef`, `pkg/controller/replicaset/replica_set.go` (each controller has its own copy).
    pub fn resolve(&self, object: &T) -> Option<Arc<O>> {
        self.owner_of(object.meta())
    }

    /// The same for an object of whatever kind, such as a ControllerRevision beside the pods.
    pub fn owner_of<A>(&self, meta: &Meta<A>) -> Option<Arc<O>> {
        let controller = meta.controller.as_ref().filter(|controller| controller.kind == *O::RESOURCE.kind)?;
        self.owners.get_with_uid(meta.namespace(), &controller.name, controller.uid)
    }

    /// The owners that may adopt an orphan: those that select its labels. Several are a mistake of their user. An orphan
    /// without labels is nobody's.
    ///
    /// Upstream: `GetPodReplicaSets`, `staging/src/k8s.io/client-go/listers/apps/v1/replicaset_expansion.go`.
    pub fn selecting(&self, orphan: &T, selects: impl Fn(&O, &Labels) -> bool) -> Vec<Arc<O>> {
        self.adopters_of(orphan.meta(), selects)
    }

    /// The same for an orphan of whatever kind.
    pub fn adopters_of<A>(&self, meta: &Meta<A>, selects: impl Fn(&O, &Labels) -> bool) -> Vec<Arc<O>> {
        if meta.labels.is_empty() {
            return Vec::new();
        }
        let namespace = IndexValue::Text(Text::new(meta.namespace()));
        let mut owners = self.owners.by_index(self.owners_by_namespace, &namespace);
        owners.retain(|owner| selects(owner, &meta.labels));
        if owners.len() > 1 {
            tracing::warn!(orphan = %meta.key, kind = %O::RESOURCE.kind, count = owners.len(), "several select one orphan");
        }
        owners
    }
}
