//! Read your writes: a key waits until the caches have seen what its last sync wrote.
//!
//! Without this, a sync that reads a cache older than its own writes makes the same pod twice. Upstream fails such a
//! sync and retries it with back-off; here the key is held, without a worker, and the very event or bookmark that
//! carries the version wakes it.
//!
//! An object that the selectors of its cache hide sends no event. Where the cache does not have it either, nothing is
//! waited for. Where it has, an event must come: of its change, or of its leaving.
//! Left out: deletions whose answer has no version, because the object is gone at once. Deleting it again changes
//! nothing, and a controller that must not count it uses [`crate::runtime::expectations`].
//!
//! Upstream: KEP-5647, pkg/controller/util/consistency.

mod lookup;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch::Receiver;
use tokio::time::timeout;

use self::lookup::Lookups;
use crate::api::intern::Text;
use crate::api::labels::Labels;
use crate::api::object::{Key, ResourceVersion, Uid};
use crate::api::resource::Resource;
use crate::api::selector::query;
use crate::runtime::cache::Progress;
use crate::runtime::client::Client;
use crate::runtime::informer::{Demand, Health};

/// How long a cache may stay behind before its watch is taken for dead.
const STALL: Duration = Duration::from_secs(5);

/// How to follow the progress of one informer; [`crate::runtime::informer::Informer::follow`] gives it.
#[derive(Clone)]
pub struct Follow {
    pub(crate) resource: Resource,
    /// Empty for all namespaces.
    pub(crate) namespace: Text,
    pub(crate) field_selector: Cow<'static, str>,
    pub(crate) label_selector: Cow<'static, str>,
    pub(crate) progress: Receiver<Progress>,
    pub(crate) health: Arc<Health>,
    /// The version at which the cache has an object.
    pub(crate) version_of: VersionOf,
}

/// The version of an object in a cache; none if it isn't there.
pub(crate) type VersionOf = Arc<dyn Fn(&Key) -> Option<ResourceVersion> + Send + Sync>;

/// One write of an object, as the server answered it.
#[derive(Clone, Copy)]
pub struct Write<'a> {
    /// The object's key.
    pub object: &'a Key,
    /// Its version after the write.
    pub version: ResourceVersion,
    /// Of a creation: the labels it has been given.
    pub created_with: Option<&'a Labels>,
}

impl Follow {
    /// Whether the informer still runs: one that was stopped has nothing more to tell.
    pub(crate) fn is_running(&self) -> bool {
        self.progress.has_changed().is_ok()
    }

    fn is_narrowed(&self) -> bool {
        !self.field_selector.is_empty() || !self.label_selector.is_empty()
    }

    fn is_of_namespace(&self, namespace: &str) -> bool {
        self.namespace.is_empty() || *self.namespace == *namespace
    }

    /// Whether a write of this object can ever be seen: what is created outside the selectors cannot.
    fn shows(&self, write: &Write<'_>) -> bool {
        self.is_of_namespace(write.object.namespace())
            && write.created_with.is_none_or(|labels| query::matches(&self.label_selector, labels))
    }
}

/// What the syncs of one process read; all clones are one list.
#[derive(Clone, Default)]
pub struct Watched(Arc<Mutex<Lists>>);

#[derive(Default)]
struct Lists {
    followed: Vec<Arc<Follow>>,
    demands: Vec<Demand>,
}

impl Watched {
    /// Adds an informer.
    pub fn add(&self, follow: Follow) {
        let Lists { followed, .. } = &mut *self.lists();
        followed.retain(|follow| follow.is_running());
        followed.push(Arc::new(follow));
    }

    /// Adds a resource that is followed on demand; what is followed of it is added by itself.
    pub(crate) fn add_demand(&self, demand: Demand) {
        self.lists().demands.push(demand);
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The informers of a resource.
    fn of(&self, resource: &Resource) -> Vec<Arc<Follow>> {
        self.lists().followed.iter().filter(|follow| follow.resource == *resource).map(Arc::clone).collect()
    }

    /// What a sync of this key needs and may not read yet.
    fn not_listed_for(&self, key: &Key) -> Vec<Demand> {
        self.lists().demands.iter().filter(|demand| !demand.is_listed_for(key)).cloned().collect()
    }
}

/// The newest versions that the syncs of one queue wrote, by key.
pub struct Consistency {
    client: Client,
    followed: Watched,
    written: Mutex<HashMap<Key, Record>>,
    lookups: Lookups,
}

/// What the syncs of one key wrote.
struct Record {
    uid: Uid,
    goals: Vec<(Arc<Follow>, Goal)>,
    lost: Vec<Lost>,
}

/// A creation whose answer was lost.
struct Lost {
    follow: Arc<Follow>,
    /// A lookup that began when this many creations were lost knows of it.
    number: u64,
}

/// What a cache must have reached: this version, or this list, which has seen the write whatever its version says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Goal {
    version: ResourceVersion,
    list: u64,
    /// What was written, where that was there before and selectors may have hidden it since: no event tells of such a
    /// write, and a cache without the object shows nothing that is older.
    objects: Option<BTreeMap<Key, ResourceVersion>>,
}

impl Goal {
    fn is_reached(&self, follow: &Follow, progress: &Progress) -> bool {
        let is_there = progress.resource_version >= self.version || progress.list >= self.list;
        // What has ended tells nothing more; its next first list will have seen the write.
        is_there || !follow.is_running() || self.objects.as_ref().is_some_and(|objects| are_seen(follow, objects))
    }

    fn add(&mut self, more: Self) {
        if more.version > self.version {
            (self.version, self.list) = (more.version, more.list);
        }
        match (&mut self.objects, more.objects) {
            (Some(objects), Some(more)) => objects.extend(more),
            (objects, _) => *objects = None,
        }
    }
}

/// Whether the cache has none of these objects in an older state.
fn are_seen(follow: &Follow, objects: &BTreeMap<Key, ResourceVersion>) -> bool {
    objects.iter().all(|(key, written)| (follow.version_of)(key).is_none_or(|known| known >= *written))
}

impl Record {
    fn aim(&mut self, follow: &Arc<Follow>, goal: Goal) {
        match self.goals.iter_mut().find(|(of, _)| Arc::ptr_eq(of, follow)) {
            Some((_, known)) => known.add(goal),
            None => self.goals.push((Arc::clone(follow), goal)),
        }
    }

    fn waits(&self) -> impl Iterator<Item = &(Arc<Follow>, Goal)> {
        self.goals.iter().filter(|(follow, goal)| !goal.is_reached(follow, &follow.progress.borrow()))
    }
}

impl Consistency {
    /// Nothing written yet. `client` looks for what a lost answer may have created.
    pub fn new(client: Client, followed: Watched) -> Self {
        Self { client, followed, written: Mutex::default(), lookups: Lookups::default() }
    }

    fn written(&self) -> MutexGuard<'_, HashMap<Key, Record>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a write of the sync of `key`, an object of this uid. A record of another uid is replaced. What no informer
    /// follows needs no record: nobody reads it from a cache.
    pub fn record(&self, key: &Key, uid: Uid, resource: &Resource, write: Write<'_>) {
        for follow in self.followed.of(resource).into_iter().filter(|follow| follow.shows(&write)) {
            let Write { object, version, created_with } = write;
            let may_be_hidden = follow.is_narrowed() && created_with.is_none();
            let objects = may_be_hidden.then(|| BTreeMap::from([(object.clone(), version)]));
            let goal = Goal { version, list: follow.health.next_list(), objects };
            self.with_record(key, uid, |record| record.aim(&follow, goal));
        }
    }

    /// Notes that the sync of `key` may have created an object under a name that the server chose: the answer was lost.
    pub fn lost(&self, key: &Key, uid: Uid, resource: &Resource) {
        for follow in self.followed.of(resource).into_iter().filter(|follow| follow.is_of_namespace(key.namespace())) {
            let number = self.lookups.count_lost();
            self.with_record(key, uid, |record| {
                record.lost.retain(|lost| !Arc::ptr_eq(&lost.follow, &follow));
                record.lost.push(Lost { follow, number });
            });
        }
    }

    fn with_record(&self, key: &Key, uid: Uid, change: impl FnOnce(&mut Record)) {
        let none = || Record { uid, goals: Vec::new(), lost: Vec::new() };
        let mut written = self.written();
        let record = written.entry(key.clone()).or_insert_with(none);
        if record.uid != uid {
            *record = none();
        }
        change(record);
    }

    /// Forgets what was written for `key`; with a uid only if it was written for that object.
    pub fn forget(&self, key: &Key, uid: Option<Uid>) {
        let mut written = self.written();
        if written.get(key).is_some_and(|record| uid.is_none_or(|uid| uid == record.uid)) {
            written.remove(key);
        }
    }

    /// None when the caches have seen all that was written for `key`, which is then forgotten, and all that its sync reads
    /// on demand was listed. Otherwise what is still to be seen, to be awaited.
    pub fn behind(self: &Arc<Self>, key: &Key) -> Option<Behind> {
        let unlisted = self.followed.not_listed_for(key);
        let writes = self.unseen_writes(key);
        if unlisted.is_empty() && writes.is_empty() {
            return None;
        }
        Some(Behind { consistency: Arc::clone(self), key: key.clone(), writes, unlisted })
    }

    /// The resources of which writes are not seen yet, and what must be seen. Forgets the record where there are none.
    fn unseen_writes(&self, key: &Key) -> Vec<(String, String)> {
        let mut written = self.written();
        let Some(record) = written.get(key) else { return Vec::new() };
        let versions = record.waits().map(|(follow, goal)| {
            let what = format!("version {}", goal.version);
            (follow.health.resource.clone(), what)
        });
        let lost = record.lost.iter().map(|lost| (lost.follow.health.resource.clone(), "a lost creation".to_owned()));
        let waits: Vec<_> = versions.chain(lost).collect();
        if waits.is_empty() {
            written.remove(key);
        }
        waits
    }

    fn waits(&self, key: &Key) -> Vec<(Arc<Follow>, Goal)> {
        self.written().get(key).map(|record| record.waits().cloned().collect()).unwrap_or_default()
    }
}

/// What the caches have not seen yet.
pub struct Behind {
    consistency: Arc<Consistency>,
    key: Key,
    writes: Vec<(String, String)>,
    unlisted: Vec<Demand>,
}

impl Behind {
    /// The resources whose caches lack own writes, and what they must have seen.
    pub fn writes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.writes.iter().map(|(resource, what)| (resource.as_str(), what.as_str()))
    }

    /// The resources that are needed now and were not listed yet.
    pub fn unlisted(&self) -> impl Iterator<Item = &str> {
        self.unlisted.iter().map(Demand::resource)
    }

    /// Ends when the caches have caught up.
    pub async fn caught_up(self) {
        let Self { consistency, key, writes: _, unlisted } = self;
        for demand in unlisted {
            demand.listed_for(&key).await;
        }
        consistency.look_up(&key).await;
        for (follow, goal) in consistency.waits(&key) {
            reach(&follow, &goal).await;
        }
    }
}

/// Waits for a cache. A watch that stays silent is reconnected, and if that does not help the whole resource is listed
/// anew.
async fn reach(follow: &Follow, goal: &Goal) {
    let Follow { progress, health, .. } = follow;
    let mut progress = progress.clone();
    let mut reached = async |limit| {
        // An informer that has ended tells nothing more.
        timeout(limit, progress.wait_for(|now| goal.is_reached(follow, now))).await.is_ok()
    };
    if reached(STALL).await {
        return;
    }
    tracing::warn!(resource = health.resource, version = %goal.version, "own write not seen in time, watching anew");
    health.reconnect();
    let mut patience = STALL;
    while !patience.is_zero() {
        if reached(patience).await {
            return;
        }
        patience = health.pause_before_list();
    }
    tracing::warn!(resource = health.resource, version = %goal.version, "own write not seen in time, listing anew");
    health.relist();
    reached(Duration::MAX).await;
}

#[cfg(test)]
mod tests;
