//! Read your writes: a key waits until the caches have seen what its last sync wrote.
//!
//! Without this, a sync that reads a cache older than its own writes makes the same pod twice. Upstream fails such a
//! sync and retries it with back-off. Here the key is held without a worker, and the event or bookmark that carries the
//! version wakes it.
//!
//! The watch sends no event for an object that the selectors of its cache exclude. If the cache does not have the
//! object, the key does not wait for it. If the cache has it, an event must come: the object changes or leaves.
//! Left out: deletions whose answer has no version, because the object is gone at once. A second deletion changes
//! nothing, and a controller that must not count the object uses [`crate::working::expectations`].
//!
//! Upstream: KEP-5647, pkg/controller/util/consistency.

mod lookup;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use tokio::time::timeout;

use self::lookup::Lookups;
use crate::api::labels::Labels;
use crate::api::object::{Key, Meta, NoAnnotations, Object, ResourceVersion, Uid};
use crate::api::resource::Resource;
use crate::api::selector::query;
use crate::following::cache::Progress;
use crate::following::demand::Demand;
pub use crate::following::source::Follow;
pub use crate::following::watched::Watched;
use crate::transport::client::Client;

/// After a cache has been behind for this long, its watch counts as dead.
const STALL: Duration = Duration::from_secs(5);
/// With fewer records than this nothing is swept.
const SWEEP_MIN: usize = 64;

/// An object as the server stored it: its metadata, which is all that a write asks the server to answer.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Written {
    pub metadata: Meta,
}

impl Object for Written {
    type Annotations = NoAnnotations;
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// One write of an object, as the server answered it.
#[derive(Clone, Copy)]
pub struct Write<'a> {
    pub object: &'a Key,
    /// Its version after the write.
    pub version: ResourceVersion,
    pub created_with: Option<&'a Labels>,
}

impl Write<'_> {
    /// Whether this cache can ever see the write. It never sees an object created outside its selectors.
    fn shows_in(&self, follow: &Follow) -> bool {
        follow.is_of_namespace(self.object.namespace())
            && self.created_with.is_none_or(|labels| query::matches(&follow.label_selector, labels))
    }
}

/// The newest versions that the syncs of one queue wrote, by key.
pub struct Consistency {
    client: Client,
    followed: Watched,
    written: Mutex<Records>,
    lookups: Lookups,
}

#[derive(Default)]
struct Records {
    by_key: HashMap<Key, Record>,
    /// With so many records, those that nothing waits for are dropped.
    sweep_at: usize,
}

impl Records {
    /// The last write of a key may be a deletion, after which nobody syncs the key again and asks for its record.
    fn sweep(&mut self) {
        if self.by_key.len() >= self.sweep_at {
            self.by_key.retain(|_, record| !record.is_seen());
            self.sweep_at = (self.by_key.len() * 2).max(SWEEP_MIN);
        }
    }
}

struct Record {
    uid: Uid,
    goals: Vec<(Arc<Follow>, Goal)>,
    lost: Vec<Lost>,
}

/// A creation whose answer was lost.
struct Lost {
    follow: Arc<Follow>,
    /// A lookup that began after this many lost creations covers this one.
    number: u64,
}

/// The version or the list that a cache must have reached. A list that began after the write has seen it, whatever its
/// version says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Goal {
    version: ResourceVersion,
    list: u64,
    /// The written objects that existed before and that selectors may exclude now. Such a write sends no event, but a
    /// cache without the object shows no older state of it either.
    objects: Option<BTreeMap<Key, ResourceVersion>>,
}

impl Goal {
    fn is_reached(&self, follow: &Follow, progress: &Progress) -> bool {
        let is_there = progress.resource_version >= self.version || progress.list >= self.list;
        // Before its first list an informer has seen nothing, whatever another one has put into the same cache.
        let are_seen = |objects| progress.synced && are_seen(follow, objects);
        // An ended informer sees no more versions; its next first list includes the write.
        is_there || !follow.is_running() || self.objects.as_ref().is_some_and(are_seen)
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
    fn add_goal(&mut self, follow: &Arc<Follow>, goal: Goal) {
        match self.goals.iter_mut().find(|(of, _)| Arc::ptr_eq(of, follow)) {
            Some((_, known)) => known.add(goal),
            None => self.goals.push((Arc::clone(follow), goal)),
        }
    }

    fn waits(&self) -> impl Iterator<Item = &(Arc<Follow>, Goal)> {
        self.goals.iter().filter(|(follow, goal)| !goal.is_reached(follow, &follow.progress.borrow()))
    }

    fn is_seen(&self) -> bool {
        self.lost.is_empty() && self.waits().next().is_none()
    }
}

impl Consistency {
    pub fn new(client: Client, followed: Watched) -> Self {
        Self { client, followed, written: Mutex::default(), lookups: Lookups::default() }
    }

    fn written(&self) -> MutexGuard<'_, Records> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a write of the sync of `key`, whose object has this uid. It replaces the record of another uid. A resource
    /// that no informer follows needs no record, because no cache has it.
    pub fn record(&self, key: &Key, uid: Uid, resource: &Resource, write: Write<'_>) {
        for follow in self.followed.of(resource).into_iter().filter(|follow| write.shows_in(follow)) {
            let Write { object, version, created_with } = write;
            let may_be_hidden = follow.is_narrowed() && created_with.is_none();
            let objects = may_be_hidden.then(|| BTreeMap::from([(object.clone(), version)]));
            let goal = Goal { version, list: follow.health.next_list(), objects };
            self.with_record(key, uid, |record| record.add_goal(&follow, goal));
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
        written.sweep();
        let record = written.by_key.entry(key.clone()).or_insert_with(none);
        if record.uid != uid {
            *record = none();
        }
        change(record);
    }

    /// Forgets the writes for `key`; with a uid, only those for that object.
    pub fn forget(&self, key: &Key, uid: Option<Uid>) {
        let written = &mut self.written().by_key;
        if written.get(key).is_some_and(|record| uid.is_none_or(|uid| uid == record.uid)) {
            written.remove(key);
        }
    }

    /// `None` if the caches have seen all writes for `key`, which are then forgotten, and every resource that its sync
    /// reads on demand has been listed. Otherwise the missing versions and lists, to wait for.
    pub fn behind(self: &Arc<Self>, key: &Key) -> Option<Behind> {
        let unlisted = self.followed.not_listed_for(key);
        let writes = self.unseen_writes(key);
        if unlisted.is_empty() && writes.is_empty() {
            return None;
        }
        Some(Behind { consistency: Arc::clone(self), key: key.clone(), writes, unlisted })
    }

    /// The resources whose caches lack writes, and the versions they must reach. Forgets the record if none is missing.
    fn unseen_writes(&self, key: &Key) -> Vec<(String, String)> {
        let written = &mut self.written().by_key;
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
        self.written().by_key.get(key).map(|record| record.waits().cloned().collect()).unwrap_or_default()
    }
}

/// The versions and lists that the caches have not seen yet.
pub struct Behind {
    consistency: Arc<Consistency>,
    key: Key,
    writes: Vec<(String, String)>,
    unlisted: Vec<Demand>,
}

impl Behind {
    /// The resources whose caches lack own writes, and the versions they must reach.
    pub fn writes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.writes.iter().map(|(resource, what)| (resource.as_str(), what.as_str()))
    }

    /// The resources that are needed now and were not listed yet.
    pub fn unlisted(&self) -> impl Iterator<Item = &str> {
        self.unlisted.iter().map(Demand::resource)
    }

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

/// Waits for a cache. If its watch stays silent, the watch is reconnected, once for all keys that wait; if that does not
/// help, the resource is listed again.
async fn reach(follow: &Follow, goal: &Goal) {
    let Follow { progress, health, .. } = follow;
    let mut progress = progress.clone();
    let mut reached = async |limit| {
        // An ended informer sees no more versions.
        timeout(limit, progress.wait_for(|now| goal.is_reached(follow, now))).await.is_ok()
    };
    if reached(STALL).await {
        return;
    }
    if health.reconnect_older(STALL) {
        tracing::warn!(resource = health.resource, version = %goal.version, "own write not seen in time, watching anew");
    }
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
