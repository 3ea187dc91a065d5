//! Reads a quota, and the objects of each kind that it counts.

pub mod facts;
pub mod feeds;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use shared::api::intern::Text;
use shared::api::object::{Key, ResourceVersion};
use shared::following::cache::{Cache, IndexId, IndexValue};
use shared::following::informer::{Informer, InformerBuilder};

use crate::memory::charges::{Charges, Open};
use crate::memory::reported::Reported;
use crate::objects::evaluator::extended_resource;
use crate::objects::{
    ClaimFacts, DeviceClassFacts, Evaluator, PodFacts, ResourceClaimFacts, ResourceQuota, ServiceFacts,
};
use feeds::Feeds;

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub quota: Arc<ResourceQuota>,
    pub kinds: BTreeMap<Evaluator, Known>,
    /// The kinds that were already reported as not countable.
    pub reported: BTreeSet<Evaluator>,
    /// The charges whose objects may not be stored yet.
    pub open: Open,
    /// The objects that arrived since.
    pub arrived: BTreeMap<Evaluator, Objects>,
}

/// The objects of one kind in the quota's namespace, as far as they are known.
#[derive(Clone, Debug, PartialEq)]
pub enum Known {
    Listed(Objects),
    /// They are not listed yet.
    Unlisted,
    /// They are older than the charge at this version of the quota.
    Behind(ResourceVersion),
    /// They cannot be read because of this error.
    Unreadable(String),
    /// The apiserver has no such kind that can be counted.
    Unserved,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Objects {
    Pods(Vec<PodFacts>),
    Services(Vec<ServiceFacts>),
    Claims(Vec<ClaimFacts>),
    ResourceClaims(Vec<ResourceClaimFacts>),
    DeviceClasses(Vec<DeviceClassFacts>),
    Number(u64),
}

pub struct Caches {
    /// All quotas, and an index by namespace.
    pub quotas: Quotas,
    pub feeds: Feeds,
    pub charges: Charges,
    /// The kinds that were reported as not countable.
    pub reported: Reported,
}

/// All quotas; cheap to clone.
#[derive(Clone)]
pub struct Quotas {
    pub cache: Arc<Cache<ResourceQuota>>,
    by_namespace: IndexId,
}

impl Quotas {
    /// Those of one namespace, or with `""` of all.
    fn of(&self, namespace: &str) -> Vec<Arc<ResourceQuota>> {
        if namespace.is_empty() {
            return self.cache.all();
        }
        self.cache.by_index(self.by_namespace, &IndexValue::Text(Text::new(namespace)))
    }

    /// The keys of those in a namespace, or with `""` everywhere, that count this kind.
    pub fn counting(&self, evaluator: &Evaluator, namespace: &str) -> Vec<Key> {
        let mut quotas = self.of(namespace);
        quotas.retain(|quota| quota.counts(evaluator));
        quotas.iter().map(|quota| quota.metadata.key.clone()).collect()
    }

    pub fn wanted(&self, classes: &[DeviceClassFacts]) -> BTreeMap<Evaluator, Wanted> {
        let mut wanted: BTreeMap<Evaluator, Wanted> = BTreeMap::new();
        for quota in self.cache.all() {
            let ended = quota.hard.keys().any(|name| Evaluator::counts_ended_pods(name));
            for evaluator in evaluators_of(quota.hard.keys().chain(quota.status.hard.keys()), classes) {
                let is_everywhere = evaluator == Evaluator::DeviceClasses;
                let Wanted { namespaces, ended_pods } = wanted.entry(evaluator).or_default();
                namespaces.insert(Text::new(if is_everywhere { "" } else { quota.metadata.namespace() }));
                if ended {
                    ended_pods.insert(Text::new(quota.metadata.namespace()));
                }
            }
        }
        wanted
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub namespaces: BTreeSet<Text>,
    pub ended_pods: BTreeSet<Text>,
}

impl Caches {
    pub(crate) fn new() -> (Self, Informer<ResourceQuota>) {
        let mut resource_quotas = InformerBuilder::<ResourceQuota>::new();
        let by_namespace = resource_quotas.index_by_namespace();
        let resource_quotas = resource_quotas.build();
        let quotas = Quotas { cache: resource_quotas.cache(), by_namespace };
        (
            Self { quotas, feeds: Feeds::default(), charges: Charges::default(), reported: Reported::default() },
            resource_quotas,
        )
    }

    /// Reads the quota of this key, and what it counts; none if it is gone.
    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let quota = self.quotas.cache.get(key)?;
        let evaluators = evaluators_of(quota.hard.keys(), &self.feeds.device_classes());
        let known = |evaluator: Evaluator| {
            let known = self.feeds.known(&evaluator, key.namespace(), self.charges.version(key, &evaluator));
            (evaluator, known)
        };
        let kinds: BTreeMap<Evaluator, Known> = evaluators.into_iter().map(known).collect();
        let open = self.charges.open(key);
        let mut arrived = BTreeMap::new();
        if !open.amounts.is_empty() {
            let of = |evaluator: &Evaluator| {
                Some((evaluator.clone(), self.feeds.arrived_since(evaluator, key.namespace(), open.since)?))
            };
            arrived.extend(kinds.keys().filter_map(of));
        }
        Some(Observed { kinds, reported: self.reported.of(key), quota, open, arrived })
    }
}

/// The kinds that limits of these names count. An extended resource of a DeviceClass counts ResourceClaims too.
fn evaluators_of<'a>(names: impl Iterator<Item = &'a Text>, classes: &[DeviceClassFacts]) -> BTreeSet<Evaluator> {
    let of = |name: &'a Text| {
        let is_claimed =
            extended_resource(name).is_some_and(|resource| classes.iter().any(|class| class.has(resource)));
        Evaluator::of(name).into_iter().chain(is_claimed.then_some(Evaluator::ResourceClaims))
    };
    names.flat_map(of).collect()
}

/// Whether a change of a quota may change which kinds are counted.
pub(crate) fn is_about_kinds(old: &ResourceQuota, new: &ResourceQuota) -> bool {
    !old.hard.keys().eq(new.hard.keys()) || !formerly_limited(old).eq(formerly_limited(new))
}

/// The names that a quota's status has, and its limits do not.
fn formerly_limited(quota: &ResourceQuota) -> impl Iterator<Item = &Text> {
    quota.status.hard.keys().filter(|name| !quota.hard.contains_key(*name))
}
