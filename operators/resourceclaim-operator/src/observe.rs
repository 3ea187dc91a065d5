//! Reads one claim and what is known of the pods and PodGroups that use it: first from the caches, and live where these
//! do not show that a user is there, or has ended.
//!
//! What a pod or a PodGroup needs is observed in [`users`].

pub mod users;

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use shared::api::object::{Key, Uid};
use shared::api::resource::{POD_GROUPS, PODS, Resource};
use shared::following::cache::{Cache, IndexId, IndexValue};
use shared::following::informer::{Informer, InformerBuilder};
use shared::transport::api_error::ResultExt;
use shared::working::control::{Control, together};

use crate::flags::gates::FeatureGates;
use crate::memory::DeletedUsers;
use crate::objects::ClaimUser;
use crate::objects::claim::{ConsumerKind, ResourceClaim};
use crate::objects::pod::Pod;
use crate::objects::pod_group::PodGroup;
use crate::objects::template::ResourceClaimTemplate;

#[derive(Clone, Debug)]
pub struct Observed {
    pub claim: Arc<ResourceClaim>,
    /// Of each that it is reserved for, in their order.
    pub consumers: Vec<Lookup>,
    /// The pod that it was made for.
    pub owner: Option<Owner>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub pod: Key,
    pub uid: Uid,
    pub lookup: Lookup,
}

/// What is known of an object that a claim names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Of a kind that this operator does not look up.
    Foreign,
    /// It was seen to be deleted.
    Deleted,
    /// The object of its name in the cache.
    Cached(Option<Standing>),
    /// The object of its name as a live read shows it.
    Live(Option<Standing>),
}

/// The state of a pod or PodGroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub uid: Uid,
    pub is_done: bool,
}

impl Lookup {
    /// Whether only a live read can tell: the cache may not have the object of this uid yet, or not any more.
    pub fn is_open(self, uid: Uid) -> bool {
        match self {
            Self::Cached(found) => found.is_none_or(|standing| standing.uid != uid),
            Self::Foreign | Self::Deleted | Self::Live(_) => false,
        }
    }
}

impl Owner {
    /// If the cache lacks its pod, the garbage collector deletes the claim, so no live read is needed.
    pub fn is_open(&self) -> bool {
        self.lookup != Lookup::Cached(None) && self.lookup.is_open(self.uid)
    }
}

impl From<&Pod> for Standing {
    fn from(pod: &Pod) -> Self {
        Self { uid: pod.metadata.uid, is_done: pod.is_done() }
    }
}

/// A PodGroup is done when it is gone.
impl From<&PodGroup> for Standing {
    fn from(group: &PodGroup) -> Self {
        Self { uid: group.metadata.uid, is_done: false }
    }
}

pub struct Caches {
    pub gates: FeatureGates,
    pub resource_claims: Arc<Cache<ResourceClaim>>,
    pub resource_claim_templates: Arc<Cache<ResourceClaimTemplate>>,
    /// The pods of the namespaces with a claim or a template.
    pub pods: Arc<Cache<Pod>>,
    /// Empty without the feature gate.
    pub pod_groups: Arc<Cache<PodGroup>>,
    /// PodGroups in the version that the apiserver serves.
    served_pod_groups: Mutex<Resource>,
    pub deleted: DeletedUsers,
    claims_by_controller: IndexId,
    pods_by_claim: IndexId,
    pods_by_template: IndexId,
    pods_by_group: IndexId,
    groups_by_claim: IndexId,
    groups_by_template: IndexId,
}

pub struct Informers {
    pub(crate) resource_claims: Informer<ResourceClaim>,
    pub(crate) resource_claim_templates: Informer<ResourceClaimTemplate>,
    pub(crate) pods: Informer<Pod>,
    pub(crate) pod_groups: Informer<PodGroup>,
}

impl Caches {
    pub fn new(gates: FeatureGates) -> (Self, Informers) {
        let mut claims = InformerBuilder::<ResourceClaim>::new();
        let claims_by_controller = claims.index_by_controller();
        let mut pods = InformerBuilder::<Pod>::new();
        let pods_by_claim = pods.index(|pod, emit| pod.claim_keys().for_each(|claim| emit(IndexValue::from(&claim))));
        let pods_by_template = pods.index(emit_templates);
        let pods_by_group =
            pods.index(|pod, emit| pod.group_key().iter().for_each(|group| emit(IndexValue::from(group))));
        let mut groups = InformerBuilder::<PodGroup>::new();
        let groups_by_claim =
            groups.index(|group, emit| group.claim_keys().for_each(|claim| emit(IndexValue::from(&claim))));
        let groups_by_template = groups.index(emit_templates);
        let informers = Informers {
            resource_claims: claims.build(),
            resource_claim_templates: InformerBuilder::new().build(),
            pods: pods.build(),
            pod_groups: groups.build(),
        };
        let caches = Self {
            gates,
            resource_claims: informers.resource_claims.cache(),
            resource_claim_templates: informers.resource_claim_templates.cache(),
            pods: informers.pods.cache(),
            pod_groups: informers.pod_groups.cache(),
            served_pod_groups: Mutex::new(POD_GROUPS),
            deleted: DeletedUsers::default(),
            claims_by_controller,
            pods_by_claim,
            pods_by_template,
            pods_by_group,
            groups_by_claim,
            groups_by_template,
        };
        (caches, informers)
    }

    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let claim = self.resource_claims.get(key)?;
        let consumers = claim.reserved_for.iter().map(|consumer| {
            let object = Key::new(key.namespace(), &consumer.name);
            let kind = self.kind_of(consumer.kind());
            kind.map_or(Lookup::Foreign, |kind| self.lookup(key, kind, &object, consumer.uid()))
        });
        let consumers = consumers.collect();
        let owner =
            claim.metadata.controller.as_deref().filter(|owner| owner.api_version == "v1" && owner.kind == "Pod");
        let owner = owner.map(|owner| {
            let pod = Key::new(key.namespace(), &owner.name);
            let lookup = self.lookup(key, ConsumerKind::Pod, &pod, owner.uid);
            Owner { pod, uid: owner.uid, lookup }
        });
        Some(Observed { claim, consumers, owner })
    }

    /// PodGroups are not looked up without the feature gate.
    fn kind_of(&self, kind: Option<ConsumerKind>) -> Option<ConsumerKind> {
        kind.filter(|kind| *kind == ConsumerKind::Pod || self.gates.workload_resource_claims)
    }

    fn lookup(&self, claim: &Key, kind: ConsumerKind, object: &Key, uid: Uid) -> Lookup {
        if self.deleted.contains(claim, uid) {
            return Lookup::Deleted;
        }
        Lookup::Cached(match kind {
            ConsumerKind::Pod => self.pods.get(object).map(|pod| Standing::from(&*pod)),
            ConsumerKind::PodGroup => self.pod_groups.get(object).map(|group| Standing::from(&*group)),
        })
    }

    /// Reads the objects of which the caches leave open whether they use the claim.
    pub(crate) async fn live_users(&self, control: &Control, observed: Observed) -> anyhow::Result<Observed> {
        let Observed { claim, mut consumers, mut owner } = observed;
        let namespace = claim.metadata.namespace();
        let open = claim.reserved_for.iter().zip(&mut consumers);
        let open = open.filter(|(consumer, lookup)| lookup.is_open(consumer.uid()));
        let reads = open.filter_map(|(consumer, lookup)| {
            let (kind, key) = (consumer.kind()?, Key::new(namespace, &consumer.name));
            Some(async move { read(control, kind, &key, lookup).await })
        });
        together(reads).await.into_iter().collect::<anyhow::Result<()>>()?;
        if let Some(Owner { pod, lookup, .. }) = owner.as_mut().filter(|owner| owner.is_open()) {
            read(control, ConsumerKind::Pod, pod, lookup).await?;
        }
        Ok(Observed { claim, consumers, owner })
    }

    /// The claims that were made for it, by name.
    pub(crate) fn claims_of<U: ClaimUser>(&self, user: &U) -> Vec<Arc<ResourceClaim>> {
        self.resource_claims.controlled_by(self.claims_by_controller, user)
    }

    pub(crate) fn pods_with_claim(&self, claim: &Key) -> Vec<Arc<Pod>> {
        self.pods.by_index(self.pods_by_claim, &claim.into())
    }

    pub(crate) fn pods_with_template(&self, template: &Key) -> Vec<Arc<Pod>> {
        self.pods.by_index(self.pods_by_template, &template.into())
    }

    pub(crate) fn pods_of_group(&self, group: &Key) -> Vec<Arc<Pod>> {
        self.pods.by_index(self.pods_by_group, &group.into())
    }

    pub(crate) fn groups_with_claim(&self, claim: &Key) -> Vec<Arc<PodGroup>> {
        self.pod_groups.by_index(self.groups_by_claim, &claim.into())
    }

    /// While none are served, the version stays that of the cached ones.
    pub fn note_served_pod_groups(&self, served: Option<&Resource>) {
        if let Some(served) = served {
            *self.served_pod_groups.lock().unwrap_or_else(PoisonError::into_inner) = served.clone();
        }
    }

    fn served_pod_groups(&self) -> Resource {
        self.served_pod_groups.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn groups_with_template(&self, template: &Key) -> Vec<Arc<PodGroup>> {
        self.pod_groups.by_index(self.groups_by_template, &template.into())
    }
}

async fn read(control: &Control, kind: ConsumerKind, key: &Key, lookup: &mut Lookup) -> anyhow::Result<()> {
    let found = match kind {
        ConsumerKind::Pod => {
            let pod = control.get::<Pod>(&PODS, key).await.unless_absent();
            pod.map(|pod| pod.as_ref().map(Standing::from))
        }
        ConsumerKind::PodGroup => {
            let group = control.get::<PodGroup>(&POD_GROUPS, key).await.unless_absent();
            group.map(|group| group.as_ref().map(Standing::from))
        }
    };
    *lookup = Lookup::Live(found.with_context(|| format!("cannot read {key}, for which the claim is reserved"))?);
    Ok(())
}

fn emit_templates<U: ClaimUser>(user: &U, emit: &mut dyn FnMut(IndexValue)) {
    let namespace = user.meta().namespace();
    user.template_names().for_each(|template| emit(IndexValue::from(&Key::new(namespace, template))));
}
