//! Reads from the caches all that one sync decides on.
//!
//! Left out: live reads. There is one before an adoption, which is part of adopting, one of an earlier template, which is
//! part of making a pod of it, and one of the newest revision, which the sync makes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use shared::api::object::Key;
use shared::controllers::claims::Claims;
use shared::controllers::rejections::Rejections;
use shared::controllers::revisions::{ControllerRevision, history};
use shared::following::cache::{Cache, IndexId};
use shared::following::informer::{Informer, InformerBuilder};

use crate::objects::StatefulSet;
use crate::objects::claim::PersistentVolumeClaim;
use crate::objects::names::{claim_name, ordinals_of_interest, parent_and_ordinal};
use crate::objects::pod::Pod;

pub struct Caches {
    pub stateful_sets: Arc<Cache<StatefulSet>>,
    /// All pods of the namespaces with a StatefulSet: an orphan that one of them may adopt need not have the labels
    /// that this operator gives to pods.
    pub pods: Arc<Cache<Pod>>,
    pub controller_revisions: Arc<Cache<ControllerRevision>>,
    /// All claims of the namespaces with a StatefulSet that makes some.
    pub persistent_volume_claims: Arc<Cache<PersistentVolumeClaim>>,
    /// The owners of pods, and who may adopt them.
    pub owners: Claims<StatefulSet, Pod>,
    revisions_by_controller: IndexId,
}

pub struct Informers {
    pub(crate) stateful_sets: Informer<StatefulSet>,
    pub(crate) pods: Informer<Pod>,
    pub(crate) controller_revisions: Informer<ControllerRevision>,
    pub(crate) persistent_volume_claims: Informer<PersistentVolumeClaim>,
}

#[derive(Clone, Debug)]
pub struct Observed {
    pub set: Arc<StatefulSet>,
    /// The pods whose controller it is, and those of its namespace that have none; once they are
    /// [claimed](Self::claimed), its own.
    pub pods: Vec<Arc<Pod>>,
    /// Its history: the revisions that its selector matches and that have no other owner, in order.
    pub revisions: Vec<Arc<ControllerRevision>>,
    /// The data of the newest one, where they were read live.
    pub newest_data: Option<Arc<RawValue>>,
    /// The claims of these pods, and of those that it may make now, by name.
    pub claims: BTreeMap<String, Arc<PersistentVolumeClaim>>,
    pub rejections: Rejections,
}

impl Observed {
    /// From what was read; in any order.
    pub fn new(
        set: Arc<StatefulSet>,
        pods: Vec<Arc<Pod>>,
        mut revisions: Vec<Arc<ControllerRevision>>,
        claim: impl Fn(&str) -> Option<Arc<PersistentVolumeClaim>>,
    ) -> Self {
        match &set.spec.selector {
            Ok(selector) => revisions.retain(|revision| selector.matches(&revision.metadata.labels)),
            Err(_) => revisions.clear(),
        }
        history::sort(&mut revisions);
        let mut claims = BTreeMap::new();
        if !set.spec.volume_claim_templates.is_empty() {
            for ordinal in ordinals_of_interest(&set, &pods) {
                for template in &set.spec.volume_claim_templates {
                    let name = claim_name(&template.name, set.metadata.name(), ordinal);
                    claims.extend(claim(&name).map(|claim| (name, claim)));
                }
            }
        }
        Self { set, pods, revisions, newest_data: None, claims, rejections: Rejections::default() }
    }

    /// The same, with those pods alone that are its own now.
    #[must_use]
    pub fn claimed(self, pods: Vec<Arc<Pod>>) -> Self {
        Self { pods, ..self }
    }

    /// The same, with what is known of rejected pods.
    #[must_use]
    pub fn with(self, rejections: Rejections) -> Self {
        Self { rejections, ..self }
    }
}

impl Caches {
    pub fn new() -> (Self, Informers) {
        let (owners, stateful_sets, pods) = Claims::new(InformerBuilder::new(), InformerBuilder::new());
        let mut controller_revisions = InformerBuilder::<ControllerRevision>::new();
        let revisions_by_controller = controller_revisions.index_by_controller();
        let informers = Informers {
            stateful_sets,
            pods,
            controller_revisions: controller_revisions.build(),
            persistent_volume_claims: InformerBuilder::new().metadata_only().build(),
        };
        let caches = Self {
            stateful_sets: informers.stateful_sets.cache(),
            pods: informers.pods.cache(),
            controller_revisions: informers.controller_revisions.cache(),
            persistent_volume_claims: informers.persistent_volume_claims.cache(),
            owners,
            revisions_by_controller,
        };
        (caches, informers)
    }

    /// Observes the StatefulSet of this key; `None` if there is none.
    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let set = self.stateful_sets.get(key)?;
        let pods = self.owners.candidates(&set);
        let (index, namespace) = (self.revisions_by_controller, key.namespace());
        let mut revisions = self.controller_revisions.controlled_by(index, &*set);
        revisions.extend(self.controller_revisions.orphans(index, namespace));
        let claim = |name: &str| self.persistent_volume_claims.get(&Key::new(namespace, name));
        Some(Observed::new(set, pods, revisions, claim))
    }

    /// Whether a StatefulSet that was observed before still exists.
    pub fn exists(&self, set: &StatefulSet) -> bool {
        self.stateful_sets.get(&set.metadata.key).is_some_and(|known| known.metadata.uid == set.metadata.uid)
    }

    /// The StatefulSets that have or would make a claim of this name.
    pub(crate) fn makers_of(&self, claim: &PersistentVolumeClaim) -> Vec<Arc<StatefulSet>> {
        let (namespace, name) = (claim.metadata.namespace(), claim.metadata.name());
        // Both names in it may have dashes.
        let Some((names, _)) = parent_and_ordinal(name) else { return Vec::new() };
        let maker = |(at, _): (usize, &str)| {
            let (template, set) = (&names[..at], &names[at + 1..]);
            let set = self.stateful_sets.get(&Key::new(namespace, set))?;
            set.spec.has_claim_template(template).then_some(set)
        };
        names.match_indices('-').filter_map(maker).collect()
    }
}
