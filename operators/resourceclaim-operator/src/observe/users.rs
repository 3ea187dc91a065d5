//! Reads one pod or PodGroup, and for each of its entries the claims and the template that it names.

use std::sync::Arc;

use shared::api::object::Key;
use shared::api::resource::{PODS, Resource};
use shared::controllers::live_spec::{Abridged, complete};
use shared::working::control::Control;

use super::Caches;
use crate::flags::gates::FeatureGates;
use crate::objects::claim::ResourceClaim;
use crate::objects::pod::Pod;
use crate::objects::pod_group::PodGroup;
use crate::objects::template::ResourceClaimTemplate;
use crate::objects::{ClaimName, ClaimUser, Entry, Source};

#[derive(Debug)]
pub struct ObservedUser<U> {
    pub user: Arc<U>,
    /// Its kind, in the version that the apiserver serves.
    pub kind: Resource,
    /// Of each of its entries, in their order.
    pub entries: Vec<ObservedEntry>,
    /// The PodGroup of a pod.
    pub group: Group,
    pub gates: FeatureGates,
}

#[derive(Debug)]
pub enum Group {
    /// The pod has none, or the feature gate is off.
    None,
    /// The cache does not have it.
    Missing(Key),
    Found(Arc<PodGroup>),
}

#[derive(Clone, Debug)]
pub struct ObservedEntry {
    /// The claim of the name that the user gave or the status records.
    pub named: Option<Arc<ResourceClaim>>,
    /// The claim that was made from its template for this pod or PodGroup, or for the PodGroup whose entry it is.
    pub own: Option<Arc<ResourceClaim>>,
    /// Whether the PodGroup has this entry too: then the claim is the PodGroup's.
    pub is_groups: bool,
    pub template: Option<Arc<ResourceClaimTemplate>>,
}

impl Caches {
    pub fn observe_pod(&self, key: &Key) -> Option<ObservedUser<Pod>> {
        let pod = self.pods.get(key)?;
        let group = match pod.group_key().filter(|_| self.gates.workload_resource_claims) {
            None => Group::None,
            Some(group) => self.pod_groups.get(&group).map_or(Group::Missing(group), Group::Found),
        };
        Some(self.observe_user(pod, PODS, group))
    }

    pub fn observe_pod_group(&self, key: &Key) -> Option<ObservedUser<PodGroup>> {
        let group = self.pod_groups.get(key)?;
        Some(self.observe_user(group, self.served_pod_groups(), Group::None))
    }

    fn observe_user<U: ClaimUser>(&self, user: Arc<U>, kind: Resource, group: Group) -> ObservedUser<U> {
        let own = self.claims_of(&*user);
        let groups = if let Group::Found(group) = &group { self.claims_of(&**group) } else { Vec::new() };
        let entries = user.entries().iter().map(|entry| {
            let is_groups = matches!(&group, Group::Found(group) if group.has_entry(entry));
            let own = made_for(entry, if is_groups { &groups } else { &own });
            self.observe_entry(&*user, entry, own, is_groups)
        });
        let entries = entries.collect();
        ObservedUser { user, kind, entries, group, gates: self.gates }
    }

    fn observe_entry<U: ClaimUser>(
        &self,
        user: &U,
        entry: &Entry,
        own: Option<Arc<ResourceClaim>>,
        is_groups: bool,
    ) -> ObservedEntry {
        let key = |name: &str| Key::new(user.meta().namespace(), name);
        let named = match user.claim_name(entry) {
            ClaimName::Given(name) | ClaimName::Generated(name) => self.resource_claims.get(&key(name)),
            ClaimName::NotNeeded | ClaimName::NotCreated | ClaimName::Unsupported => None,
        };
        let template = match &entry.source {
            Source::Template(name) => self.resource_claim_templates.get(&key(name)),
            Source::Claim(_) | Source::Unsupported => None,
        };
        ObservedEntry { named, own, is_groups, template }
    }
}

/// Of several the first by name; the others go with their owner.
///
/// Upstream: `findPodResourceClaim` and `findPodGroupResourceClaim`, `pkg/controller/resourceclaim/controller.go`.
fn made_for(entry: &Entry, claims: &[Arc<ResourceClaim>]) -> Option<Arc<ResourceClaim>> {
    let is_it = |claim: &&Arc<ResourceClaim>| claim.metadata.annotations.pod_claim == entry.name;
    claims.iter().find(is_it).cloned()
}

impl<U: ClaimUser> ObservedUser<U> {
    /// Reads the templates that are too large for the cache.
    pub(crate) async fn with_templates(mut self, control: &Control) -> anyhow::Result<Self> {
        for entry in &mut self.entries {
            if let Some(template) = entry.template.as_mut().filter(|template| template.left_out() > 0) {
                *template = complete(control, template).await?;
            }
        }
        Ok(self)
    }
}
