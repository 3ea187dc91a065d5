//! One feed for each kind that quotas count: in the namespaces of its quotas, or in all if these are many.
//!
//! A kind that cannot be listed or watched blocks no other. It is not counted from a stale cache: that count would release
//! the charges of objects created meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shared::api::intern::Text;
use shared::api::object::{Key, ResourceVersion};
use shared::api::resource::Resource;
use shared::following::informer::{Feeder, Running};
use shared::transport::client::Accept;
use tokio::time::Instant;

use super::facts::{FactCache, FactStore, Waiting, Waker};
use super::{Known, Objects};
use crate::objects::{
    Claim, ClaimFacts, Countable, DeviceClass, DeviceClassFacts, Evaluator, Named, Pod, PodFacts, ResourceClaim,
    ResourceClaimFacts, Service, ServiceFacts,
};

/// After this time a first list that has neither arrived nor failed counts as failed.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long an unneeded kind is still watched, because the need often comes back.
const IDLE: Duration = Duration::from_secs(300);

/// After this time a lagging watch is reconnected; after twice this time the kind is listed again.
const STALL: Duration = Duration::from_secs(5);

/// A kind, and the namespace in which it is watched; `""` for all.
pub(crate) type Place = (Evaluator, Text);

/// How a kind is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) resource: Resource,
    pub(crate) fields: &'static str,
}

/// The feeds that run, and the kinds that have none.
#[derive(Default)]
pub struct Feeds(Mutex<State>);

#[derive(Default)]
struct State {
    feeds: BTreeMap<Place, Feed>,
    /// The kinds without a feed: not served, or not known to be served because of this error.
    unfound: BTreeMap<Evaluator, Option<String>>,
}

struct Feed {
    running: Running,
    cache: AnyCache,
    target: Target,
    started: Instant,
    idle_since: Option<Instant>,
    /// The quotas that wait for a version of it.
    waiting: Waiting,
    /// Since when it has been behind this version of a charge.
    behind: Option<(Instant, ResourceVersion)>,
}

enum AnyCache {
    Pods(Arc<FactCache<PodFacts>>),
    Services(Arc<FactCache<ServiceFacts>>),
    Claims(Arc<FactCache<ClaimFacts>>),
    ResourceClaims(Arc<FactCache<ResourceClaimFacts>>),
    DeviceClasses(Arc<FactCache<DeviceClassFacts>>),
    Names(Arc<FactCache<()>>),
}

impl AnyCache {
    fn objects(&self, namespace: &str) -> Objects {
        match self {
            Self::Pods(cache) => Objects::Pods(cache.of(namespace)),
            Self::Services(cache) => Objects::Services(cache.of(namespace)),
            Self::Claims(cache) => Objects::Claims(cache.of(namespace)),
            Self::ResourceClaims(cache) => Objects::ResourceClaims(cache.of(namespace)),
            Self::DeviceClasses(cache) => Objects::DeviceClasses(cache.all()),
            Self::Names(cache) => Objects::Number(u64::try_from(cache.of(namespace).len()).unwrap_or(u64::MAX)),
        }
    }

    fn arrived_since(&self, namespace: &str, since: ResourceVersion) -> Objects {
        match self {
            Self::Pods(cache) => Objects::Pods(cache.arrived_since(namespace, since)),
            Self::Services(cache) => Objects::Services(cache.arrived_since(namespace, since)),
            Self::Claims(cache) => Objects::Claims(cache.arrived_since(namespace, since)),
            Self::ResourceClaims(cache) => Objects::ResourceClaims(cache.arrived_since(namespace, since)),
            Self::DeviceClasses(_) => Objects::DeviceClasses(Vec::new()),
            Self::Names(cache) => {
                Objects::Number(u64::try_from(cache.arrived_since(namespace, since).len()).unwrap_or(u64::MAX))
            }
        }
    }
}

impl Feed {
    fn start(feeder: &Feeder, (evaluator, namespace): &Place, target: Target, waker: &Waker) -> Self {
        let waiting = Waiting::default();
        let starting = Starting { feeder, evaluator, namespace, target: &target, waker, waiting: &waiting };
        let (running, cache) = match evaluator {
            // The protobuf tables have no resources of containers.
            Evaluator::Pods => starting.follow::<Pod, _>(Accept::Json, AnyCache::Pods),
            Evaluator::Services => starting.follow::<Service, _>(Accept::Object, AnyCache::Services),
            Evaluator::Claims => starting.follow::<Claim, _>(Accept::Object, AnyCache::Claims),
            Evaluator::ResourceClaims => starting.follow::<ResourceClaim, _>(Accept::Object, AnyCache::ResourceClaims),
            Evaluator::DeviceClasses => starting.follow::<DeviceClass, _>(Accept::Object, AnyCache::DeviceClasses),
            Evaluator::Objects(_) => starting.follow::<Named, _>(Accept::Metadata, AnyCache::Names),
        };
        Self { running, cache, target, started: Instant::now(), idle_since: None, waiting, behind: None }
    }

    fn known(&self, namespace: &str, charged: ResourceVersion) -> Known {
        let health = self.running.health();
        if let Some(error) = health.failing() {
            return Known::Unreadable(error);
        }
        if !self.running.is_synced() {
            let is_late = self.started.elapsed() > PATIENCE;
            return if is_late { Known::Unreadable("not listed yet".to_owned()) } else { Known::Unlisted };
        }
        if self.running.resource_version() < charged && !self.has_other_versions() {
            return Known::Behind(charged);
        }
        let unreadable = health.unreadable();
        match unreadable.iter().find(|(key, _)| key.namespace() == namespace) {
            Some((key, error)) => Known::Unreadable(format!("{key}: {error}")),
            None => Known::Listed(self.cache.objects(namespace)),
        }
    }

    /// Whether its versions come from another etcd than the quotas' (`--etcd-servers-overrides`, an aggregated
    /// apiserver), so that no version shows whether it has seen a charge: a list that was requested after a charge has
    /// seen it, and is still older by its version.
    fn has_other_versions(&self) -> bool {
        let listed_from = self.running.health().listed_from();
        self.behind.is_some_and(|(since, missing)| {
            self.running.resource_version() < missing && listed_from.is_some_and(|from| from > since)
        })
    }

    /// Enqueues a quota once this version arrives. A silent watch is reconnected; if that does not help, the kind is
    /// listed again.
    fn wait_for(&mut self, quota: &Key, version: ResourceVersion) {
        self.waiting.add(quota, version);
        let (now, health) = (Instant::now(), self.running.health());
        let is_same = |(_, missing): &(Instant, ResourceVersion)| self.running.resource_version() < *missing;
        let (since, _) = *self.behind.insert(self.behind.filter(is_same).unwrap_or((now, version)));
        let behind = now.saturating_duration_since(since);
        if behind >= 2 * STALL && health.pause_before_list().is_zero() {
            tracing::warn!(resource = health.resource, %version, "watch lags behind a charge; relisting");
            health.relist();
        } else if behind >= STALL && health.reconnect_older(STALL) {
            tracing::warn!(resource = health.resource, %version, "watch lags behind a charge; reconnecting");
        }
    }

    /// Whether it watches all objects of the target, or more.
    fn serves(&self, target: &Target) -> bool {
        let Target { resource, fields } = &self.target;
        *resource == target.resource && (*fields == target.fields || fields.is_empty())
    }
}

struct Starting<'a> {
    feeder: &'a Feeder,
    evaluator: &'a Evaluator,
    namespace: &'a Text,
    target: &'a Target,
    waker: &'a Waker,
    waiting: &'a Waiting,
}

impl Starting<'_> {
    fn follow<T: Countable, S>(&self, accept: Accept, cache_of: S) -> (Running, AnyCache)
    where
        S: FnOnce(Arc<FactCache<T::Facts>>) -> AnyCache,
    {
        let cache: Arc<FactCache<T::Facts>> = Arc::default();
        let store = FactStore {
            evaluator: self.evaluator.clone(),
            namespace: self.namespace.to_string(),
            cache: Arc::clone(&cache),
            waker: self.waker.clone(),
            waiting: self.waiting.clone(),
        };
        let (resource, fields) = (&self.target.resource, self.target.fields);
        let running = self.feeder.follow_in::<T>(resource.clone(), self.namespace, accept, fields, store);
        (running, cache_of(cache))
    }
}

/// Where the objects of a namespace may be watched.
fn places(evaluator: &Evaluator, namespace: &str) -> [Place; 2] {
    [namespace, ""].map(|place| (evaluator.clone(), Text::new(place)))
}

impl Feeds {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the versions of a history that a restore of etcd has undone.
    pub(crate) fn start_over(&self) {
        self.state().feeds.values_mut().for_each(|feed| feed.behind = None);
    }

    /// The objects of a kind in a namespace, if they are at least as new as this version.
    pub(crate) fn known(&self, evaluator: &Evaluator, namespace: &str, charged: ResourceVersion) -> Known {
        let state = self.state();
        match state.unfound.get(evaluator) {
            Some(None) => return Known::Unserved,
            Some(Some(error)) => return Known::Unreadable(error.clone()),
            None => {}
        }
        let places = places(evaluator, namespace);
        let mut known = places.iter().filter_map(|place| Some(state.feeds.get(place)?.known(namespace, charged)));
        let Some(first) = known.next() else { return Known::Unlisted };
        match known.next() {
            // The namespace's own feed is about to end, or has just started.
            Some(second @ Known::Listed(_)) if !matches!(first, Known::Listed(_)) => second,
            Some(_) | None => first,
        }
    }

    /// The objects of a kind that arrived in a namespace after this version, from the feed that [`Self::known`] reads.
    pub(crate) fn arrived_since(
        &self,
        evaluator: &Evaluator,
        namespace: &str,
        since: ResourceVersion,
    ) -> Option<Objects> {
        let state = self.state();
        let mut feeds = places(evaluator, namespace).into_iter().filter_map(|place| state.feeds.get(&place));
        let is_listed = |feed: &&Feed| matches!(feed.known(namespace, ResourceVersion::default()), Known::Listed(_));
        Some(feeds.find(is_listed)?.cache.arrived_since(namespace, since))
    }

    pub(crate) fn device_classes(&self) -> Vec<DeviceClassFacts> {
        let known = self.known(&Evaluator::DeviceClasses, "", ResourceVersion::default());
        if let Known::Listed(Objects::DeviceClasses(classes)) = known { classes } else { Vec::new() }
    }

    /// Enqueues a quota once this version of the kind arrives.
    pub(crate) fn wait_for(&self, evaluator: &Evaluator, quota: &Key, version: ResourceVersion) {
        let mut state = self.state();
        for place in places(evaluator, quota.namespace()) {
            if let Some(feed) = state.feeds.get_mut(&place) {
                feed.wait_for(quota, version);
            }
        }
    }

    /// Where this kind is watched without failures; none if discovery must find it.
    pub(crate) fn resource_of(&self, evaluator: &Evaluator) -> Option<Resource> {
        let state = self.state();
        let mut feeds = state.feeds.iter().filter(|((of, _), _)| of == evaluator).map(|(_, feed)| feed);
        feeds.find(|feed| feed.running.health().failing().is_none()).map(|feed| feed.target.resource.clone())
    }

    /// Whether there is any feed, or any kind without one.
    pub(crate) fn is_needed(&self) -> bool {
        let state = self.state();
        !state.feeds.is_empty() || !state.unfound.is_empty()
    }

    /// Starts and stops feeds so that these targets are watched, and stores the kinds without one.
    pub(crate) fn adjust(
        &self,
        feeder: &Feeder,
        waker: &Waker,
        targets: BTreeMap<Place, Target>,
        unfound: BTreeMap<Evaluator, Option<String>>,
    ) {
        let mut state = self.state();
        let (now, State { feeds, unfound: known }) = (Instant::now(), &mut *state);
        // A feed of all namespaces replaces those of single ones.
        let is_whole = |(place, feed): &(&Place, &Feed)| {
            place.1.is_empty() && targets.contains_key(*place) && feed.running.is_synced()
        };
        let everywhere: BTreeSet<Evaluator> = feeds.iter().filter(is_whole).map(|((of, _), _)| of.clone()).collect();
        feeds.retain(|place, feed| {
            let since = *feed.idle_since.get_or_insert(now);
            let is_gone = unfound.get(&place.0).is_some_and(Option::is_none) || everywhere.contains(&place.0);
            targets.contains_key(place) || (!is_gone && now.saturating_duration_since(since) < IDLE)
        });
        for (place, target) in targets {
            match feeds.get_mut(&place) {
                Some(feed) if feed.serves(&target) => feed.idle_since = None,
                Some(_) | None => {
                    tracing::debug!(kind = %place.0, namespace = %place.1, "watching counted kind");
                    let feed = Feed::start(feeder, &place, target, waker);
                    feeds.insert(place, feed);
                }
            }
        }
        let changed: Vec<Evaluator> =
            unfound.iter().filter(|(of, why)| known.get(*of) != Some(*why)).map(|(of, _)| of.clone()).collect();
        *known = unfound;
        drop(state);
        for evaluator in changed {
            waker.wake(&evaluator, "");
        }
    }
}
