//! The kinds that quotas count, each followed by itself: in the namespaces of its quotas, or where these are many in
//! all.
//!
//! A kind that cannot be listed or watched says so and holds no other up. It is not counted from a shelf that may be
//! old: the apiserver charges what is created meanwhile, and a count that misses it would give that back.
//! Left out: which kinds are followed, which the monitors say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shared::api::intern::Text;
use shared::api::object::{Key, ResourceVersion};
use shared::api::resource::Resource;
use shared::runtime::client::Accept;
use shared::runtime::informer::{Feeder, Running};
use tokio::time::Instant;

use super::shelf::{Shelf, ShelfStore, Waiting, Waker};
use super::{Known, Objects};
use crate::objects::{
    Claim, ClaimFacts, Countable, DeviceClass, DeviceClassFacts, Evaluator, Named, Pod, PodFacts, ResourceClaim,
    ResourceClaimFacts, Service, ServiceFacts,
};

/// After so long a first list that neither came nor failed counts as failed.
const PATIENCE: Duration = Duration::from_secs(30);
/// For so long a kind is followed that nobody needs any more: a need often comes back.
const IDLE: Duration = Duration::from_secs(300);

/// After a feed has been behind for this long, its watch counts as dead; after as long again it is listed anew.
const STALL: Duration = Duration::from_secs(5);

/// A kind, and the namespace in which it is followed; `""` for all.
pub(crate) type Place = (Evaluator, Text);

/// How a kind is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Where it is served.
    pub(crate) resource: Resource,
    /// The field selector.
    pub(crate) fields: &'static str,
}

/// The feeds that run, and the kinds that have none.
#[derive(Default)]
pub struct Feeds(Mutex<State>);

#[derive(Default)]
struct State {
    feeds: BTreeMap<Place, Feed>,
    /// The kinds that are not served, or of which it is not known, and then why.
    unfound: BTreeMap<Evaluator, Option<String>>,
}

/// One watch.
struct Feed {
    running: Running,
    shelf: AnyShelf,
    target: Target,
    started: Instant,
    idle_since: Option<Instant>,
    /// The quotas that wait for it.
    waiting: Waiting,
    /// Since when it has not come to this version.
    behind: Option<(Instant, ResourceVersion)>,
}

/// The shelf of one kind.
enum AnyShelf {
    Pods(Arc<Shelf<PodFacts>>),
    Services(Arc<Shelf<ServiceFacts>>),
    Claims(Arc<Shelf<ClaimFacts>>),
    ResourceClaims(Arc<Shelf<ResourceClaimFacts>>),
    DeviceClasses(Arc<Shelf<DeviceClassFacts>>),
    Names(Arc<Shelf<()>>),
}

impl AnyShelf {
    fn objects(&self, namespace: &str) -> Objects {
        match self {
            Self::Pods(shelf) => Objects::Pods(shelf.of(namespace)),
            Self::Services(shelf) => Objects::Services(shelf.of(namespace)),
            Self::Claims(shelf) => Objects::Claims(shelf.of(namespace)),
            Self::ResourceClaims(shelf) => Objects::ResourceClaims(shelf.of(namespace)),
            Self::DeviceClasses(shelf) => Objects::DeviceClasses(shelf.all()),
            Self::Names(shelf) => Objects::Number(u64::try_from(shelf.of(namespace).len()).unwrap_or(u64::MAX)),
        }
    }
}

impl AnyShelf {
    fn born(&self, namespace: &str, since: ResourceVersion) -> Objects {
        match self {
            Self::Pods(shelf) => Objects::Pods(shelf.born(namespace, since)),
            Self::Services(shelf) => Objects::Services(shelf.born(namespace, since)),
            Self::Claims(shelf) => Objects::Claims(shelf.born(namespace, since)),
            Self::ResourceClaims(shelf) => Objects::ResourceClaims(shelf.born(namespace, since)),
            Self::DeviceClasses(_) => Objects::DeviceClasses(Vec::new()),
            Self::Names(shelf) => {
                Objects::Number(u64::try_from(shelf.born(namespace, since).len()).unwrap_or(u64::MAX))
            }
        }
    }
}

impl Feed {
    fn start(feeder: &Feeder, (evaluator, namespace): &Place, target: Target, waker: &Waker) -> Self {
        let waiting = Waiting::default();
        let starting = Starting { feeder, evaluator, namespace, target: &target, waker, waiting: &waiting };
        let (running, shelf) = match evaluator {
            // Lists of pods come as protobuf otherwise, of which this build reads no resources.
            Evaluator::Pods => starting.follow::<Pod, _>(Accept::Json, AnyShelf::Pods),
            Evaluator::Services => starting.follow::<Service, _>(Accept::Object, AnyShelf::Services),
            Evaluator::Claims => starting.follow::<Claim, _>(Accept::Object, AnyShelf::Claims),
            Evaluator::ResourceClaims => starting.follow::<ResourceClaim, _>(Accept::Object, AnyShelf::ResourceClaims),
            Evaluator::DeviceClasses => starting.follow::<DeviceClass, _>(Accept::Object, AnyShelf::DeviceClasses),
            Evaluator::Objects(_) => starting.follow::<Named, _>(Accept::Metadata, AnyShelf::Names),
        };
        Self { running, shelf, target, started: Instant::now(), idle_since: None, waiting, behind: None }
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
        if self.running.resource_version() < charged {
            return Known::Behind(charged);
        }
        let unreadable = health.unreadable();
        match unreadable.iter().find(|(key, _)| key.namespace() == namespace) {
            Some((key, error)) => Known::Unreadable(format!("{key}: {error}")),
            None => Known::Listed(self.shelf.objects(namespace)),
        }
    }

    /// Has a quota counted once this version has come. A watch that stays silent is reconnected; if that does not help,
    /// the kind is listed again.
    fn wait_for(&mut self, quota: &Key, version: ResourceVersion) {
        self.waiting.add(quota, version);
        let (now, health) = (Instant::now(), self.running.health());
        let is_same = |(_, missing): &(Instant, ResourceVersion)| self.running.resource_version() < *missing;
        let (since, _) = *self.behind.insert(self.behind.filter(is_same).unwrap_or((now, version)));
        let behind = now.saturating_duration_since(since);
        if behind >= 2 * STALL && health.pause_before_list().is_zero() {
            tracing::warn!(resource = health.resource, %version, "what was charged is not seen in time, listing anew");
            health.relist();
        } else if behind >= STALL && health.reconnect_older(STALL) {
            tracing::warn!(resource = health.resource, %version, "what was charged is not seen in time, watching anew");
        }
    }

    /// Whether it follows all that is to be followed. One that follows more goes on.
    fn serves(&self, target: &Target) -> bool {
        let Target { resource, fields } = &self.target;
        *resource == target.resource && (*fields == target.fields || fields.is_empty())
    }
}

/// A feed that is about to start.
struct Starting<'a> {
    feeder: &'a Feeder,
    evaluator: &'a Evaluator,
    namespace: &'a Text,
    target: &'a Target,
    waker: &'a Waker,
    waiting: &'a Waiting,
}

impl Starting<'_> {
    fn follow<T: Countable, S>(&self, accept: Accept, shelf_of: S) -> (Running, AnyShelf)
    where
        S: FnOnce(Arc<Shelf<T::Facts>>) -> AnyShelf,
    {
        let shelf: Arc<Shelf<T::Facts>> = Arc::default();
        let store = ShelfStore {
            evaluator: self.evaluator.clone(),
            namespace: self.namespace.to_string(),
            shelf: Arc::clone(&shelf),
            waker: self.waker.clone(),
            waiting: self.waiting.clone(),
        };
        let (resource, fields) = (&self.target.resource, self.target.fields);
        let running = self.feeder.follow_in::<T>(resource.clone(), self.namespace, accept, fields, store);
        (running, shelf_of(shelf))
    }
}

/// Where the objects of a namespace may be followed.
fn places(evaluator: &Evaluator, namespace: &str) -> [Place; 2] {
    [namespace, ""].map(|place| (evaluator.clone(), Text::new(place)))
}

impl Feeds {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The objects of a kind in a namespace, as far as they are known and as new as this version of a quota.
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
            // The namespace's own feed ends soon, or has just begun.
            Some(second @ Known::Listed(_)) if !matches!(first, Known::Listed(_)) => second,
            Some(_) | None => first,
        }
    }

    /// The objects of a kind that have come to a namespace after this version, from where [`Self::known`] reads them.
    pub(crate) fn born(&self, evaluator: &Evaluator, namespace: &str, since: ResourceVersion) -> Option<Objects> {
        let state = self.state();
        let mut feeds = places(evaluator, namespace).into_iter().filter_map(|place| state.feeds.get(&place));
        let is_listed = |feed: &&Feed| matches!(feed.known(namespace, ResourceVersion::default()), Known::Listed(_));
        Some(feeds.find(is_listed)?.shelf.born(namespace, since))
    }

    /// The DeviceClasses, as far as they are known.
    pub(crate) fn device_classes(&self) -> Vec<DeviceClassFacts> {
        let known = self.known(&Evaluator::DeviceClasses, "", ResourceVersion::default());
        if let Known::Listed(Objects::DeviceClasses(classes)) = known { classes } else { Vec::new() }
    }

    /// Has a quota counted once this version of the kind has been seen.
    pub(crate) fn wait_for(&self, evaluator: &Evaluator, quota: &Key, version: ResourceVersion) {
        let mut state = self.state();
        for place in places(evaluator, quota.namespace()) {
            if let Some(feed) = state.feeds.get_mut(&place) {
                feed.wait_for(quota, version);
            }
        }
    }

    /// Where this kind is followed and nothing fails; none if it has to be looked for.
    pub(crate) fn resource_of(&self, evaluator: &Evaluator) -> Option<Resource> {
        let state = self.state();
        let mut feeds = state.feeds.iter().filter(|((of, _), _)| of == evaluator).map(|(_, feed)| feed);
        feeds.find(|feed| feed.running.health().failing().is_none()).map(|feed| feed.target.resource.clone())
    }

    /// Whether there is anything to look after.
    pub(crate) fn is_needed(&self) -> bool {
        let state = self.state();
        !state.feeds.is_empty() || !state.unfound.is_empty()
    }

    /// Starts and stops feeds, so that these targets are followed, and notes the kinds that have none.
    pub(crate) fn adjust(
        &self,
        feeder: &Feeder,
        waker: &Waker,
        targets: BTreeMap<Place, Target>,
        unfound: BTreeMap<Evaluator, Option<String>>,
    ) {
        let mut state = self.state();
        let (now, State { feeds, unfound: known }) = (Instant::now(), &mut *state);
        // What is followed everywhere need not be followed in a namespace besides.
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
                    tracing::debug!(kind = %place.0, namespace = %place.1, "follows objects that are counted");
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
