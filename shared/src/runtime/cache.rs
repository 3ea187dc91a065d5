//! What an operator knows of one resource: every object by key, and named indices that spare scans.
//!
//! Only [`crate::runtime::informer`] writes here. Left out: deep copies (objects are shared and never changed), and lookups by
//! predicate over everything: a caller that needs one adds an index.

use std::collections::{BTreeMap, HashMap, hash_map};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::watch;

use crate::api::intern::Text;
use crate::api::object::{ControllerRef, Key, Kind, Meta, Object, ResourceVersion, Uid};

/// One value of an index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IndexValue {
    /// For example a controller's.
    Uid(Uid),
    /// For example a namespace or a node.
    Text(Text),
}

/// Names an index of one cache; [`Indices::add`] makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexId(usize);

/// Says under which values an object is found: it calls `emit` for each.
pub type IndexFn<T> = Box<dyn Fn(&T, &mut dyn FnMut(IndexValue)) + Send + Sync>;

/// The index functions of a cache, settled before it starts to fill.
pub struct Indices<T>(Vec<IndexFn<T>>);

impl<T> Default for Indices<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Object> Indices<T> {
    /// Adds an index.
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

    /// Adds an index by namespace.
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
    /// Whether the first list is in.
    pub synced: bool,
    /// The newest version seen in an event, a bookmark or a list.
    pub resource_version: ResourceVersion,
    /// The number of the newest list that is in: see [`crate::runtime::informer::Health::next_list`].
    pub list: u64,
}

/// One of the lists and watches that fill a cache together: each sees some of the objects, and several may see the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part(u8);

impl Part {
    /// How many parts a cache can have.
    pub(crate) const MAX: u8 = 32;

    /// All numbers of parts.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..Self::MAX).map(Self)
    }

    fn bit(self) -> u32 {
        1 << self.0
    }
}

/// An object, and the parts that see it: it is gone when none does.
struct Entry<T> {
    object: Arc<T>,
    parts: u32,
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

    /// Notes that a whole list is in. Its version counts even where it is lower than what was seen before: an etcd
    /// that was restored from a backup starts again from an old one.
    pub(crate) fn listed(progress: &watch::Sender<Self>, version: ResourceVersion, list: u64) {
        progress.send_replace(Self { synced: true, resource_version: version, list });
    }
}

struct State<T> {
    objects: HashMap<Key, Entry<T>>,
    index_fns: Vec<IndexFn<T>>,
    indices: Vec<HashMap<IndexValue, BTreeMap<Key, Arc<T>>>>,
}

/// What became of one object.
#[derive(Debug)]
pub enum Change<'a, T> {
    /// It is new.
    Added(&'a Arc<T>),
    /// It is the same object (the same uid) in a new state.
    Updated {
        /// As it was.
        old: &'a Arc<T>,
        /// As it is.
        new: &'a Arc<T>,
    },
    /// It is gone; this is its last known state.
    Deleted(&'a Arc<T>),
}

impl<T> Clone for Change<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Change<'_, T> {}

impl<'a, T> Change<'a, T> {
    /// The newest state: of a deleted object the last.
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
    /// An empty cache.
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

    /// The object of this key.
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
        bucket.into_iter().flat_map(BTreeMap::values).cloned().collect()
    }

    /// How many objects are under one value of an index.
    pub fn count_by_index(&self, index: IndexId, value: &IndexValue) -> usize {
        let state = self.read();
        state.indices.get(index.0).and_then(|buckets| buckets.get(value)).map_or(0, BTreeMap::len)
    }

    /// The objects whose controller is `owner`, by key; `index` is [`Indices::add_controller`]'s. An object of another
    /// namespace is not among them, whatever its reference says: otherwise a user of that namespace could make it count here.
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

    /// All objects, by key.
    pub fn all(&self) -> Vec<Arc<T>> {
        let mut objects: Vec<Arc<T>> = self.read().objects.values().map(|entry| Arc::clone(&entry.object)).collect();
        objects.sort_unstable_by(|a, b| a.meta().key.cmp(&b.meta().key));
        objects
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.read().objects.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How far the cache has come; of one that is followed on demand each part tells for itself.
    pub fn progress(&self) -> Progress {
        *self.progress.borrow()
    }

    /// To wait for progress.
    pub fn subscribe(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// To note progress.
    pub(crate) fn progress_sender(&self) -> watch::Sender<Progress> {
        self.progress.clone()
    }

    /// Stores a new state of an object and tells what changed. An object of another uid under the same key was
    /// deleted and made anew: that is two changes. A state that another part has told of, or one older than that which
    /// is known, is no news.
    pub(crate) fn apply(&self, part: Part, new: &Arc<T>, mut changed: impl FnMut(Change<'_, T>)) {
        let mut state = self.write();
        if let Some(known) = state.objects.get_mut(&new.meta().key) {
            let was_told = known.parts != part.bit() && is_same_state(new.as_ref(), known.object.as_ref());
            if was_told || is_older_state(new.as_ref(), known.object.as_ref()) {
                known.parts |= part.bit();
                return;
            }
        }
        let old = state.insert(new, part.bit());
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

    /// Removes an object and tells so, unless another part still sees it, or another object of the same name has taken
    /// its place.
    pub(crate) fn delete(&self, part: Part, last: &Arc<T>, mut changed: impl FnMut(Change<'_, T>)) {
        let mut state = self.write();
        let Some(known) = state.objects.get_mut(&last.meta().key) else { return };
        if known.object.meta().uid != last.meta().uid {
            return;
        }
        known.parts &= !part.bit();
        if known.parts == 0 {
            state.remove(&last.meta().key);
            drop(state);
            changed(Change::Deleted(last));
        }
    }

    /// Makes `live` all that this part sees, in one step, and then tells every difference: deletions first.
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
            let parts = part.bit() | old.as_ref().map_or(0, |entry| entry.parts);
            // An unchanged object keeps its place in memory.
            let (object, old) = match old.map(|entry| entry.object) {
                Some(old) if is_same_state(old.as_ref(), object.as_ref()) => (old, None),
                Some(old) => (object, Some(Some(old))),
                None => (object, Some(None)),
            };
            state.insert(&object, parts);
            updates.extend(old.map(|old| (old, object)));
        }
        let mut gone = Vec::new();
        for Entry { object, parts } in before.into_values() {
            match parts & !part.bit() {
                0 => gone.push(object),
                others => drop(state.insert(&object, others)),
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

    /// Forgets what only this part has seen, and tells nobody: it is not gone, only not followed any more.
    pub(crate) fn forget_part(&self, part: Part) {
        let mut state = self.write();
        let unseen = |(key, entry): (&Key, &mut Entry<T>)| {
            entry.parts &= !part.bit();
            (entry.parts == 0).then(|| key.clone())
        };
        let forgotten: Vec<Key> = state.objects.iter_mut().filter_map(unseen).collect();
        for key in forgotten {
            state.remove(&key);
        }
        state.objects.shrink_to_fit();
    }
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
    /// Notes an object that these parts see, besides those that saw it before. Gives its former state.
    fn insert(&mut self, object: &Arc<T>, parts: u32) -> Option<Arc<T>> {
        let (key, entry) = (object.meta().key.clone(), Entry { object: Arc::clone(object), parts });
        let old = match self.objects.entry(key) {
            hash_map::Entry::Vacant(vacant) => {
                vacant.insert(entry);
                None
            }
            hash_map::Entry::Occupied(mut known) => {
                let parts = parts | known.get().parts;
                Some(known.insert(Entry { parts, ..entry }).object)
            }
        };
        if let Some(old) = &old {
            self.unindex(old);
        }
        for (index, buckets) in self.index_fns.iter().zip(&mut self.indices) {
            index(object, &mut |value| {
                buckets.entry(value).or_default().insert(object.meta().key.clone(), Arc::clone(object));
            });
        }
        old
    }

    fn remove(&mut self, key: &Key) {
        if let Some(old) = self.objects.remove(key) {
            self.unindex(&old.object);
        }
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
        cache.delete(WHOLE, &first, log(&mut changes));
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
        cache.delete(WHOLE, &thing("b", 2, 5, None), log(&mut changes));
        cache.reset(WHOLE, vec![], log(&mut changes));
        assert_eq!(std::mem::take(&mut changes), ["-a@1"], "the other part still sees `b`");
        cache.delete(other, &thing("b", 2, 5, None), log(&mut changes));
        assert_eq!(std::mem::take(&mut changes), ["-b@5"]);
    }

    #[test]
    fn what_only_a_part_has_seen_that_is_not_followed_any_more_is_forgotten_silently() {
        let cache = Cache::new(Indices::default());
        let mut changes = Vec::new();
        cache.reset(WHOLE, vec![thing("a", 1, 1, None)], log(&mut changes));
        cache.reset(Part(1), vec![thing("a", 1, 1, None), thing("b", 2, 1, None)], log(&mut changes));
        changes.clear();
        cache.forget_part(Part(1));
        assert_eq!(cache.all().iter().map(|thing| thing.metadata.name()).collect::<Vec<_>>(), ["a"]);
        assert_eq!(changes, [""; 0]);
        cache.reset(Part(1), vec![thing("b", 2, 1, None)], log(&mut changes));
        assert_eq!(changes, ["+b@1"]);
    }

    proptest! {
        /// Whatever happened, an index gives what a scan over all objects gives.
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
                    7 => cache.forget_part(part),
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
