//! The objects of one resource as last seen: by key, and by named indices that avoid scans.
//!
//! Only [`crate::following::informer`] writes here. Left out: deep copies (objects are shared and never changed), and
//! lookups by predicate over everything: a caller that needs one adds an index.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap, hash_map};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::watch;

use crate::api::intern::Text;
use crate::api::object::{ControllerRef, Key, Kind, Meta, Object, ResourceVersion, Uid};

/// A value that an index finds objects by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IndexValue {
    Uid(Uid),
    /// For example the name of a namespace or a node.
    Text(Text),
}

impl From<&Key> for IndexValue {
    fn from(key: &Key) -> Self {
        Self::Text(Text::new(key.as_str()))
    }
}

/// The handle of an index of one cache; [`Indices::add`] gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexId(usize);

/// Calls `emit` with each value under which an index finds an object.
pub type IndexFn<T> = Box<dyn Fn(&T, &mut dyn FnMut(IndexValue)) + Send + Sync>;

/// The index functions of a cache, complete before the first object is stored.
pub struct Indices<T>(Vec<IndexFn<T>>);

impl<T> Default for Indices<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Object> Indices<T> {
    pub fn add(&mut self, index: impl Fn(&T, &mut dyn FnMut(IndexValue)) + Send + Sync + 'static) -> IndexId {
        self.0.push(Box::new(index));
        IndexId(self.0.len() - 1)
    }

    /// Adds the index that claiming needs: an object is found under its controller's uid, or, where it has no
    /// controller, under its namespace. Read with [`Cache::controlled_by`] and [`Cache::orphans`].
    ///
    /// Upstream: `AddPodControllerIndexer`, `pkg/controller/controller_utils.go`.
    pub fn add_controller(&mut self) -> IndexId {
        self.add(|object, emit| {
            let meta = object.meta();
            emit(match meta.controller_uid() {
                Some(uid) => IndexValue::Uid(uid),
                None => IndexValue::Text(Text::new(meta.namespace())),
            });
        })
    }

    pub fn add_namespace(&mut self) -> IndexId {
        self.add(|object, emit| emit(IndexValue::Text(Text::new(object.meta().namespace()))))
    }
}

/// All objects of one resource as last seen. Reads never wait for the network.
pub struct Cache<T> {
    state: RwLock<State<T>>,
    progress: watch::Sender<Progress>,
}

/// How far a cache has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether the first list has been stored.
    pub synced: bool,
    /// The newest version seen in an event, a bookmark or a list.
    pub resource_version: ResourceVersion,
    /// The number of the newest list that has been stored: see [`crate::following::informer::Health::next_list`].
    pub list: u64,
}

/// One of the watches that fill a cache together. Each sees some of the objects; several may see the same object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part(u8);

impl Part {
    /// How many parts a cache can have.
    pub(crate) const MAX: u8 = 32;

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..Self::MAX).map(Self)
    }

    fn bit(self) -> u32 {
        1 << self.0
    }
}

/// An object and the parts that see it. It is gone when no part sees it.
struct Entry<T> {
    object: Arc<T>,
    parts: u32,
    /// Whether a part that saw it has told that it is gone, and the others have yet to tell.
    is_going: bool,
}

impl<T: Object> Entry<T> {
    fn is_seen_by(&self, part: Part) -> bool {
        self.parts & part.bit() != 0
    }

    /// This part sees it, too. If it did not before, the object is there again for a part that had told it gone.
    fn see(&mut self, part: Part) {
        self.is_going &= self.is_seen_by(part);
        self.parts |= part.bit();
    }

    /// This part does not see it, or not any more.
    fn leave(&mut self, part: Part) {
        self.is_going |= self.is_seen_by(part);
        self.parts &= !part.bit();
    }

    /// Whether only other parts see this object, and `state` is a late one of an object that had its name before.
    fn is_successor_of(&self, state: &T, part: Part) -> bool {
        let (known, state) = (self.object.meta(), state.meta());
        !self.is_seen_by(part) && known.uid != state.uid && state.resource_version < known.resource_version
    }
}

impl Progress {
    /// Notes that everything up to this version has been seen.
    pub(crate) fn advance(progress: &watch::Sender<Self>, seen: ResourceVersion) {
        progress.send_if_modified(|progress| {
            let newer = seen > progress.resource_version;
            if newer {
                progress.resource_version = seen;
            }
            newer
        });
    }

    /// Notes that a whole list has been stored. Its version counts even if it is lower than before: an etcd that was
    /// restored from a backup starts again from an old version.
    pub(crate) fn listed(progress: &watch::Sender<Self>, version: ResourceVersion, list: u64) {
        progress.send_replace(Self { synced: true, resource_version: version, list });
    }
}

struct State<T> {
    objects: HashMap<Key, Entry<T>>,
    index_fns: Vec<IndexFn<T>>,
    indices: Vec<HashMap<IndexValue, BTreeSet<ByKey<T>>>>,
}

/// An object in the order of the keys. Most values of most indices have one object, and a tree takes room for eleven:
/// hence the pointer alone.
struct ByKey<T>(Arc<T>);

impl<T: Object> Borrow<Key> for ByKey<T> {
    fn borrow(&self) -> &Key {
        &self.0.meta().key
    }
}

impl<T: Object> Ord for ByKey<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.meta().key.cmp(&other.0.meta().key)
    }
}

impl<T: Object> PartialOrd for ByKey<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Object> PartialEq for ByKey<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T: Object> Eq for ByKey<T> {}

#[derive(Debug)]
pub enum Change<'a, T> {
    Added(&'a Arc<T>),
    /// The object (the same uid) has a new state.
    Updated {
        old: &'a Arc<T>,
        new: &'a Arc<T>,
    },
    /// The object is gone; this is its last known state.
    Deleted(&'a Arc<T>),
}

impl<T> Clone for Change<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Change<'_, T> {}

impl<'a, T> Change<'a, T> {
    /// The newest state; for a deleted object its last one.
    pub fn latest(&self) -> &'a Arc<T> {
        match self {
            Self::Added(object) | Self::Deleted(object) => object,
            Self::Updated { new, .. } => new,
        }
    }

    /// The newest state, unless the object is gone.
    pub fn existing(&self) -> Option<&'a Arc<T>> {
        match self {
            Self::Added(object) | Self::Updated { new: object, old: _ } => Some(object),
            Self::Deleted(_) => None,
        }
    }
}

impl<T: Object> Cache<T> {
    pub fn new(indices: Indices<T>) -> Self {
        let Indices(index_fns) = indices;
        let indices = index_fns.iter().map(|_| HashMap::new()).collect();
        Self {
            state: RwLock::new(State { objects: HashMap::new(), index_fns, indices }),
            progress: watch::Sender::new(Progress::default()),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, State<T>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State<T>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, key: &Key) -> Option<Arc<T>> {
        self.read().objects.get(key).map(|entry| Arc::clone(&entry.object))
    }

    /// The object of this namespace and name, if it has this uid: how a controller reference is resolved.
    ///
    /// Upstream: `resolveControllerRef`, `pkg/controller/replicaset/replica_set.go` (each controller has its own copy).
    pub fn get_with_uid(&self, namespace: &str, name: &str, uid: Uid) -> Option<Arc<T>> {
        self.get(&Key::new(namespace, name)).filter(|object| object.meta().uid == uid)
    }

    /// The objects under one value of an index, by key.
    pub fn by_index(&self, index: IndexId, value: &IndexValue) -> Vec<Arc<T>> {
        let state = self.read();
        let bucket = state.indices.get(index.0).and_then(|buckets| buckets.get(value));
        bucket.into_iter().flatten().map(|ByKey(object)| Arc::clone(object)).collect()
    }

    /// How many objects are under one value of an index.
    pub fn count_by_index(&self, index: IndexId, value: &IndexValue) -> usize {
        let state = self.read();
        state.indices.get(index.0).and_then(|buckets| buckets.get(value)).map_or(0, BTreeSet::len)
    }

    /// Sorts all objects anew into an index whose function gives other values than before.
    #[expect(clippy::iter_over_hash_type, reason = "each has its own place, whichever comes first")]
    pub fn reindex(&self, index: IndexId) {
        let mut state = self.write();
        let State { objects, index_fns, indices } = &mut *state;
        let (Some(index), Some(buckets)) = (index_fns.get(index.0), indices.get_mut(index.0)) else { return };
        buckets.clear();
        for Entry { object, .. } in objects.values() {
            index(object, &mut |value| {
                buckets.entry(value).or_default().replace(ByKey(Arc::clone(object)));
            });
        }
    }

    /// The objects whose controller is `owner`, by key; `index` is [`Indices::add_controller`]'s. An object of another
    /// namespace is not among them, whatever its reference says: otherwise a user of that namespace could make it count
    /// here.
    ///
    /// Upstream: `FilterPodsByOwner`, `pkg/controller/controller_utils.go`.
    pub fn controlled_by<O: Kind>(&self, index: IndexId, owner: &O) -> Vec<Arc<T>> {
        let owner = owner.meta();
        let mut objects = self.by_index(index, &IndexValue::Uid(owner.uid));
        objects.retain(|object| {
            let meta = object.meta();
            let names_owner = |controller: &Arc<ControllerRef>| {
                controller.kind == *O::RESOURCE.kind && controller.name == *owner.name()
            };
            meta.namespace() == owner.namespace() && meta.controller.as_ref().is_some_and(names_owner)
        });
        objects
    }

    /// The objects of a namespace that have no controller, by key; `index` is [`Indices::add_controller`]'s.
    pub fn orphans(&self, index: IndexId, namespace: &str) -> Vec<Arc<T>> {
        self.by_index(index, &IndexValue::Text(Text::new(namespace)))
    }

    pub fn all(&self) -> Vec<Arc<T>> {
        let mut objects: Vec<Arc<T>> = self.read().objects.values().map(|entry| Arc::clone(&entry.object)).collect();
        objects.sort_unstable_by(|a, b| a.meta().key.cmp(&b.meta().key));
        objects
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.read().objects.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The cache's progress. A resource that is followed on demand has a progress for each part instead.
    pub fn progress(&self) -> Progress {
        *self.progress.borrow()
    }

    pub fn subscribe(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    pub(crate) fn progress_sender(&self) -> watch::Sender<Progress> {
        self.progress.clone()
    }

    /// Calls the index functions and stores nothing: to see whether they panic over this object.
    pub(crate) fn try_indices(&self, object: &T) {
        self.read().index_fns.iter().for_each(|index| index(object, &mut drop));
    }

    /// Stores a new state of an object and reports the change. If the uid differs from the stored object of this key,
    /// that object was deleted: this is two changes. A state that another part has reported, or an older one, is no
    /// change.
    pub(crate) fn apply(&self, part: Part, new: &Arc<T>, mut changed: impl FnMut(Change<'_, T>)) {
        let mut state = self.write();
        if let Some(known) = state.objects.get_mut(&new.meta().key) {
            let is_known = known.parts != part.bit() && is_same_state(new.as_ref(), known.object.as_ref());
            if is_known || is_older_state(new.as_ref(), known.object.as_ref()) {
                known.see(part);
                return;
            }
            if known.is_successor_of(new.as_ref(), part) {
                return;
            }
        }
        let old = state.insert(Entry { object: Arc::clone(new), parts: part.bit(), is_going: false });
        drop(state);
        match old {
            None => changed(Change::Added(new)),
            Some(old) if old.meta().uid == new.meta().uid => changed(Change::Updated { old: &old, new }),
            Some(old) => {
                changed(Change::Deleted(&old));
                changed(Change::Added(new));
            }
        }
    }

    /// Removes an object and reports the state that was cached, unless another part still sees it or another object has
    /// taken its name.
    pub(crate) fn delete(&self, part: Part, last: &Arc<T>, removed: impl FnOnce(&Arc<T>)) {
        let mut state = self.write();
        let Some(known) = state.objects.get_mut(&last.meta().key) else { return };
        if known.object.meta().uid != last.meta().uid {
            return;
        }
        known.leave(part);
        if known.parts == 0 {
            let known = Arc::clone(&known.object);
            state.remove(&last.meta().key);
            drop(state);
            removed(&known);
        }
    }

    /// Replaces all objects that this part sees by `live` in one step, and then reports every change, deletions first.
    ///
    /// Upstream: `Replace`, staging/src/k8s.io/client-go/tools/cache/the_real_fifo.go.
    pub(crate) fn reset(&self, part: Part, live: Vec<Arc<T>>, mut changed: impl FnMut(Change<'_, T>)) {
        let mut state = self.write();
        let mut before = std::mem::take(&mut state.objects);
        for buckets in &mut state.indices {
            buckets.clear();
        }
        let mut updates = Vec::new();
        for object in live {
            let old = before.remove(&object.meta().key);
            let same = old.as_ref().filter(|entry| entry.object.meta().uid == object.meta().uid);
            let (others, is_going) =
                same.map_or((0, false), |entry| (entry.parts, entry.is_going && entry.is_seen_by(part)));
            let (object, old) = match old {
                // An unchanged object keeps its place in memory.
                Some(old) if is_same_state(old.object.as_ref(), object.as_ref()) => (old.object, None),
                // Another part has seen more since this list was made.
                Some(old) if !old.is_seen_by(part) && is_older_state(object.as_ref(), old.object.as_ref()) => {
                    (old.object, None)
                }
                Some(old) => (object, Some(Some(old.object))),
                None => (object, Some(None)),
            };
            state.insert(Entry { object: Arc::clone(&object), parts: part.bit() | others, is_going });
            updates.extend(old.map(|old| (old, object)));
        }
        let mut gone = Vec::new();
        for mut entry in before.into_values() {
            entry.leave(part);
            if entry.parts == 0 {
                gone.push(entry.object);
            } else {
                state.insert(entry);
            }
        }
        drop(state);
        gone.sort_unstable_by(|a, b| a.meta().key.cmp(&b.meta().key));
        for object in &gone {
            changed(Change::Deleted(object));
        }
        for (old, new) in &updates {
            match old {
                None => changed(Change::Added(new)),
                Some(old) if old.meta().uid == new.meta().uid => changed(Change::Updated { old, new }),
                Some(old) => {
                    changed(Change::Deleted(old));
                    changed(Change::Added(new));
                }
            }
        }
    }

    /// Forgets the objects that only this part sees, and gives them. Most still exist, but are not followed any more.
    /// Those that another part has told gone are gone.
    pub(crate) fn forget_part(&self, part: Part) -> Forgotten<T> {
        let mut state = self.write();
        let unseen = |(key, entry): (&Key, &mut Entry<T>)| {
            entry.parts &= !part.bit();
            (entry.parts == 0).then(|| (key.clone(), entry.is_going))
        };
        let unseen: Vec<(Key, bool)> = state.objects.iter_mut().filter_map(unseen).collect();
        let mut forgotten = Forgotten { unfollowed: Vec::new(), gone: Vec::new() };
        for (key, is_gone) in unseen {
            let list = if is_gone { &mut forgotten.gone } else { &mut forgotten.unfollowed };
            list.extend(state.remove(&key));
        }
        state.objects.shrink_to_fit();
        forgotten
    }
}

/// What a cache has no more since a part of it is not followed.
pub(crate) struct Forgotten<T> {
    pub(crate) unfollowed: Vec<Arc<T>>,
    pub(crate) gone: Vec<Arc<T>>,
}

fn is_same_state<T: Object>(a: &T, b: &T) -> bool {
    let (a, b): (&Meta<_>, &Meta<_>) = (a.meta(), b.meta());
    a.uid == b.uid && a.resource_version == b.resource_version
}

fn is_older_state<T: Object>(a: &T, b: &T) -> bool {
    let (a, b): (&Meta<_>, &Meta<_>) = (a.meta(), b.meta());
    a.uid == b.uid && a.resource_version < b.resource_version
}

impl<T: Object> State<T> {
    /// Stores an object that these parts see, besides the parts that saw it before. Returns its former state.
    fn insert(&mut self, mut entry: Entry<T>) -> Option<Arc<T>> {
        let object = &Arc::clone(&entry.object);
        let old = match self.objects.entry(object.meta().key.clone()) {
            hash_map::Entry::Vacant(vacant) => {
                vacant.insert(entry);
                None
            }
            hash_map::Entry::Occupied(mut known) => {
                // A part that saw an object has not seen the next one of its name.
                let before = known.get();
                if before.object.meta().uid == object.meta().uid {
                    entry.is_going |= before.is_going && before.parts & entry.parts != 0;
                    entry.parts |= before.parts;
                }
                Some(known.insert(entry).object)
            }
        };
        if let Some(old) = &old {
            self.unindex(old);
        }
        for (index, buckets) in self.index_fns.iter().zip(&mut self.indices) {
            index(object, &mut |value| {
                buckets.entry(value).or_default().replace(ByKey(Arc::clone(object)));
            });
        }
        old
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<T>> {
        let Entry { object, .. } = self.objects.remove(key)?;
        self.unindex(&object);
        Some(object)
    }

    fn unindex(&mut self, old: &Arc<T>) {
        for (index, buckets) in self.index_fns.iter().zip(&mut self.indices) {
            index(old, &mut |value| {
                let Some(bucket) = buckets.get_mut(&value) else { return };
                bucket.remove(&old.meta().key);
                if bucket.is_empty() {
                    buckets.remove(&value);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::resource::Resource;
    use proptest::prelude::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    struct Thing {
        metadata: Meta,
    }

    crate::view!(Thing, Resource::namespaced("", "v1", "Owner", "owners"));

    fn thing(name: &str, uid: u8, version: u64, owner: Option<u8>) -> Arc<Thing> {
        let owners = owner.map_or(String::new(), |owner| {
            format!(
                r#","ownerReferences":[{{"kind":"Owner","name":"o","uid":"{}","controller":true}}]"#,
                uid_text(owner)
            )
        });
        let json = format!(
            r#"{{"metadata":{{"namespace":"ns","name":"{name}","uid":"{}","resourceVersion":"{version}"{owners}}}}}"#,
            uid_text(uid)
        );
        Arc::new(serde_json::from_str(&json).unwrap())
    }

    const WHOLE: Part = Part(0);

    fn uid_text(uid: u8) -> String {
        format!("00000000-0000-4000-8000-0000000000{uid:02x}")
    }

    fn log(changes: &mut Vec<String>) -> impl FnMut(Change<'_, Thing>) + '_ {
        |change| {
            changes.push(match change {
                Change::Added(new) => format!("+{}@{}", new.metadata.name(), new.metadata.resource_version),
                Change::Updated { old, new } => {
                    let (old, new) = (&old.metadata, &new.metadata);
                    format!("{}@{}->{}", new.name(), old.resource_version, new.resource_version)
                }
                Change::Deleted(last) => format!("-{}@{}", last.metadata.name(), last.metadata.resource_version),
            });
        }
    }

    fn log_removed(changes: &mut Vec<String>) -> impl FnOnce(&Arc<Thing>) + '_ {
        |known| log(changes)(Change::Deleted(known))
    }

    #[test]
    fn a_reset_tells_each_difference_once_and_deletions_first() {
        let cache = Cache::new(Indices::default());
        let mut changes = Vec::new();
        cache.reset(
            WHOLE,
            vec![thing("a", 1, 1, None), thing("b", 2, 1, None), thing("c", 3, 1, None)],
            log(&mut changes),
        );
        changes.clear();
        // `a` is unchanged, `b` changed, `c` is gone and came back as another object, `d` is new.
        let b = thing("b", 2, 5, None);
        cache.reset(
            WHOLE,
            vec![thing("a", 1, 1, None), b, thing("c", 9, 6, None), thing("d", 4, 7, None)],
            log(&mut changes),
        );
        assert_eq!(changes, ["b@1->5", "-c@1", "+c@6", "+d@7"]);
        changes.clear();
        cache.reset(WHOLE, vec![thing("d", 4, 7, None)], log(&mut changes));
        assert_eq!(changes, ["-a@1", "-b@5", "-c@6"]);
    }

    #[test]
    fn a_late_deletion_does_not_remove_the_successor() {
        let cache = Cache::new(Indices::default());
        let mut changes = Vec::new();
        let first = thing("a", 1, 1, None);
        cache.apply(WHOLE, &first, log(&mut changes));
        cache.apply(WHOLE, &thing("a", 2, 2, None), log(&mut changes));
        cache.delete(WHOLE, &first, log_removed(&mut changes));
        assert_eq!(changes, ["+a@1", "-a@1", "+a@2"]);
        assert_eq!(cache.len(), 1);
    }

    #[test]
    fn a_late_state_is_no_news_unless_a_list_says_so() {
        let cache = Cache::new(Indices::default());
        let mut changes = Vec::new();
        for version in [5, 3, 5, 6] {
            cache.apply(WHOLE, &thing("a", 1, version, None), log(&mut changes));
        }
        // An etcd that was restored from a backup.
        cache.reset(WHOLE, vec![thing("a", 1, 2, None)], log(&mut changes));
        assert_eq!(changes, ["+a@5", "a@5->5", "a@5->6", "a@6->2"]);
    }

    #[test]
    fn what_several_parts_see_is_told_once_and_is_gone_when_none_sees_it() {
        let cache = Cache::new(Indices::default());
        let mut changes = Vec::new();
        let other = Part(1);
        cache.reset(WHOLE, vec![thing("a", 1, 1, None), thing("b", 2, 1, None)], log(&mut changes));
        cache.reset(other, vec![thing("b", 2, 1, None), thing("c", 3, 1, None)], log(&mut changes));
        assert_eq!(std::mem::take(&mut changes), ["+a@1", "+b@1", "+c@1"]);
        for part in [WHOLE, other] {
            cache.apply(part, &thing("b", 2, 4, None), log(&mut changes));
        }
        assert_eq!(std::mem::take(&mut changes), ["b@1->4"]);
        cache.delete(WHOLE, &thing("b", 2, 5, None), log_removed(&mut changes));
        cache.reset(WHOLE, vec![], log(&mut changes));
        assert_eq!(std::mem::take(&mut changes), ["-a@1"], "the other part still sees `b`");
        cache.delete(other, &thing("b", 2, 5, None), log_removed(&mut changes));
        assert_eq!(std::mem::take(&mut changes), ["-b@4"], "the state that was cached");
    }

    #[test]
    fn a_part_that_lags_takes_nothing_back_of_what_another_has_seen() {
        let (cache, other) = (Cache::new(Indices::default()), Part(1));
        let mut changes = Vec::new();
        cache.apply(WHOLE, &thing("a", 1, 5, None), log(&mut changes));
        cache.reset(other, vec![thing("a", 1, 2, None)], log(&mut changes));
        assert_eq!(std::mem::take(&mut changes), ["+a@5"], "its list is older");
        cache.delete(WHOLE, &thing("a", 1, 6, None), log_removed(&mut changes));
        assert_eq!(std::mem::take(&mut changes), [""; 0], "the other part still sees it");

        cache.apply(WHOLE, &thing("a", 2, 8, None), log(&mut changes));
        assert_eq!(std::mem::take(&mut changes), ["-a@5", "+a@8"]);
        cache.apply(other, &thing("a", 1, 6, None), log(&mut changes));
        cache.delete(other, &thing("a", 1, 7, None), log_removed(&mut changes));
        assert_eq!(std::mem::take(&mut changes), [""; 0], "that was another object of this name");
        cache.delete(WHOLE, &thing("a", 2, 9, None), log_removed(&mut changes));
        assert_eq!((changes, cache.len()), (vec!["-a@8".to_owned()], 0), "the other part never saw it");
    }

    /// The names of what is not followed any more, and of what is gone.
    fn forgotten(cache: &Cache<Thing>, part: Part) -> (String, String) {
        let Forgotten { unfollowed, gone } = cache.forget_part(part);
        let names = |things: &[Arc<Thing>]| things.iter().map(|thing| thing.metadata.name()).collect::<String>();
        (names(&unfollowed), names(&gone))
    }

    #[test]
    fn what_another_part_has_told_gone_is_gone_when_the_last_part_that_sees_it_is_not_followed_any_more() {
        let row = |then: fn(&Cache<Thing>), unfollowed: &str, gone: &str| {
            let cache = Cache::new(Indices::default());
            for part in [WHOLE, Part(1)] {
                cache.reset(part, vec![thing("a", 1, 1, None)], |_| {});
            }
            then(&cache);
            assert_eq!(forgotten(&cache, Part(1)), (unfollowed.to_owned(), gone.to_owned()));
        };
        let delete = |cache: &Cache<Thing>| cache.delete(WHOLE, &thing("a", 1, 3, None), |_| {});
        row(delete, "", "a");
        row(|cache| cache.reset(WHOLE, Vec::new(), |_| {}), "", "a");
        // The other part sees an older state of it.
        row(
            |cache| {
                cache.delete(WHOLE, &thing("a", 1, 3, None), |_| {});
                cache.apply(Part(1), &thing("a", 1, 2, None), |_| {});
                cache.reset(Part(1), vec![thing("a", 1, 2, None)], |_| {});
            },
            "",
            "a",
        );
        // It is what both select again.
        row(
            |cache| {
                cache.delete(WHOLE, &thing("a", 1, 3, None), |_| {});
                cache.apply(WHOLE, &thing("a", 1, 4, None), |_| {});
            },
            "",
            "",
        );
        row(
            |cache| {
                cache.delete(WHOLE, &thing("a", 1, 3, None), |_| {});
                cache.apply(WHOLE, &thing("a", 1, 4, None), |_| {});
                cache.forget_part(WHOLE);
            },
            "a",
            "",
        );
    }

    #[test]
    fn what_only_a_part_has_seen_that_is_not_followed_any_more_is_forgotten_silently() {
        let cache = Cache::new(Indices::default());
        let mut changes = Vec::new();
        cache.reset(WHOLE, vec![thing("a", 1, 1, None)], log(&mut changes));
        cache.reset(Part(1), vec![thing("a", 1, 1, None), thing("b", 2, 1, None)], log(&mut changes));
        changes.clear();
        assert_eq!(forgotten(&cache, Part(1)), ("b".to_owned(), String::new()));
        assert_eq!(cache.all().iter().map(|thing| thing.metadata.name()).collect::<Vec<_>>(), ["a"]);
        assert_eq!(changes, [""; 0]);
        cache.reset(Part(1), vec![thing("b", 2, 1, None)], log(&mut changes));
        assert_eq!(changes, ["+b@1"]);
    }

    #[test]
    fn an_index_whose_function_has_changed_is_sorted_anew() {
        let prefix = Arc::new(RwLock::new("a"));
        let mut indices = Indices::default();
        let current = Arc::clone(&prefix);
        let index = indices.add(move |thing: &Thing, emit| {
            let prefix = *current.read().unwrap();
            emit(IndexValue::Text(Text::new(&format!("{prefix}{}", thing.metadata.name()))));
        });
        let cache = Cache::new(indices);
        cache.apply(WHOLE, &thing("x", 1, 1, None), |_| {});
        *prefix.write().unwrap() = "b";
        let count = |value: &str| cache.count_by_index(index, &IndexValue::Text(Text::new(value)));
        assert_eq!((count("ax"), count("bx")), (1, 0));
        cache.reindex(index);
        assert_eq!((count("ax"), count("bx")), (0, 1));
        cache.delete(WHOLE, &thing("x", 1, 1, None), |_| {});
        assert_eq!((count("ax"), count("bx")), (0, 0));
    }

    proptest! {
        /// After any changes, an index gives the same objects as a scan over all of them.
        #[test]
        fn indices_agree_with_a_scan(steps in proptest::collection::vec((0_u8..6, 0_u8..4, 0_u8..3, 0_u8..9, 0_u8..2), 1..60)) {
            let mut indices = Indices::default();
            let by_controller = indices.add_controller();
            let cache = Cache::<Thing>::new(indices);
            for (version, (name, uid, owner, action, part)) in (1_u64..).zip(steps) {
                let part = Part(part);
                let owner = (owner > 0).then_some(100 + owner);
                let object = thing(&format!("n{name}"), uid, version, owner);
                match action {
                    0..=4 => cache.apply(part, &object, |_| {}),
                    5..=6 => cache.delete(part, &object, |_| {}),
                    7 => drop(cache.forget_part(part)),
                    _ => {
                        let keep = cache.all().into_iter().step_by(2).collect();
                        cache.reset(part, keep, |_| {});
                    }
                }
            }
            let all = cache.all();
            for owner in [101_u8, 102] {
                let uid = Uid::parse(&uid_text(owner));
                let owner = thing("o", owner, 1, None);
                let scan: Vec<Key> = all.iter().filter(|t| t.metadata.is_controlled_by(uid)).map(|t| t.metadata.key.clone()).collect();
                let index: Vec<Key> = cache.controlled_by(by_controller, &*owner).iter().map(|t| t.metadata.key.clone()).collect();
                prop_assert_eq!(scan, index);
            }
            let scan = all.iter().filter(|t| t.metadata.controller.is_none()).count();
            prop_assert_eq!(scan, cache.orphans(by_controller, "ns").len());
        }
    }
}
