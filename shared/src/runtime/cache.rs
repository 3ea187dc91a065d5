//! What an operator knows of one resource: every object by key, and named indices that spare scans.
//!
//! Only [`crate::runtime::informer`] writes here. Left out: deep copies (objects are shared and never changed), and lookups by
//! predicate over everything: who needs one needs an index.

use std::collections::{BTreeMap, HashMap};
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

struct State<T> {
    objects: HashMap<Key, Arc<T>>,
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
        self.read().objects.get(key).cloned()
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
    /// namespace is not among them, whatever its reference says: who may write there could otherwise make it count here.
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
        let mut objects: Vec<Arc<T>> = self.read().objects.values().cloned().collect();
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

    /// How far the cache has come.
    pub fn progress(&self) -> Progress {
        *self.progress.borrow()
    }

    /// To wait for progress.
    pub fn subscribe(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Notes that everything up to this version has been seen.
    pub(crate) fn advance(&self, seen: ResourceVersion) {
        self.progress.send_if_modified(|progress| {
            let newer = seen > progress.resource_version;
            if newer {
                progress.resource_version = seen;
            }
            newer
        });
    }

    /// Notes that a whole list is in. Its version counts even where it is lower than what was seen before: an etcd
    /// that was restored from a backup starts again from an old one.
    pub(crate) fn listed(&self, version: ResourceVersion, list: u64) {
        self.progress.send_replace(Progress { synced: true, resource_version: version, list });
    }

    /// Stores a new state of an object and tells what changed. An object of another uid under the same key was
    /// deleted and made anew: that is two changes. A state older than the one that is known came late, and is no news.
    pub(crate) fn apply(&self, new: &Arc<T>, mut changed: impl FnMut(Change<'_, T>)) {
        let mut state = self.write();
        if state.objects.get(&new.meta().key).is_some_and(|known| is_older_state(new.as_ref(), known.as_ref())) {
            return;
        }
        let old = state.insert(new);
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

    /// Removes an object and tells so, unless another object of the same name has taken its place.
    pub(crate) fn delete(&self, last: &Arc<T>, mut changed: impl FnMut(Change<'_, T>)) {
        let mut state = self.write();
        let known = state.objects.get(&last.meta().key).is_some_and(|known| known.meta().uid == last.meta().uid);
        if known {
            state.remove(&last.meta().key);
            drop(state);
            changed(Change::Deleted(last));
        }
    }

    /// Makes `live` all there is, in one step, and then tells every difference: deletions first.
    ///
    /// Upstream: `Replace`, staging/src/k8s.io/client-go/tools/cache/the_real_fifo.go.
    pub(crate) fn reset(&self, live: Vec<Arc<T>>, mut changed: impl FnMut(Change<'_, T>)) {
        let mut state = self.write();
        let mut before = std::mem::take(&mut state.objects);
        for buckets in &mut state.indices {
            buckets.clear();
        }
        let mut updates = Vec::new();
        for object in live {
            let old = before.remove(&object.meta().key);
            // An unchanged object keeps its place in memory.
            let (object, old) = match old {
                Some(old) if is_same_state(old.as_ref(), object.as_ref()) => (old, None),
                Some(old) => (object, Some(Some(old))),
                None => (object, Some(None)),
            };
            state.insert(&object);
            updates.extend(old.map(|old| (old, object)));
        }
        drop(state);
        let mut gone: Vec<Arc<T>> = before.into_values().collect();
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
    fn insert(&mut self, object: &Arc<T>) -> Option<Arc<T>> {
        let key = object.meta().key.clone();
        let old = self.objects.insert(key, Arc::clone(object));
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
            self.unindex(&old);
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
        cache.reset(vec![thing("a", 1, 1, None), thing("b", 2, 1, None), thing("c", 3, 1, None)], log(&mut changes));
        changes.clear();
        // `a` is unchanged, `b` changed, `c` is gone and came back as another object, `d` is new.
        let b = thing("b", 2, 5, None);
        cache.reset(vec![thing("a", 1, 1, None), b, thing("c", 9, 6, None), thing("d", 4, 7, None)], log(&mut changes));
        assert_eq!(changes, ["b@1->5", "-c@1", "+c@6", "+d@7"]);
        changes.clear();
        cache.reset(vec![thing("d", 4, 7, None)], log(&mut changes));
        assert_eq!(changes, ["-a@1", "-b@5", "-c@6"]);
    }

    #[test]
    fn a_late_deletion_does_not_remove_the_successor() {
        let cache = Cache::new(Indices::default());
        let mut changes = Vec::new();
        let first = thing("a", 1, 1, None);
        cache.apply(&first, log(&mut changes));
        cache.apply(&thing("a", 2, 2, None), log(&mut changes));
        cache.delete(&first, log(&mut changes));
        assert_eq!(changes, ["+a@1", "-a@1", "+a@2"]);
        assert_eq!(cache.len(), 1);
    }

    #[test]
    fn a_late_state_is_no_news_unless_a_list_says_so() {
        let cache = Cache::new(Indices::default());
        let mut changes = Vec::new();
        for version in [5, 3, 5, 6] {
            cache.apply(&thing("a", 1, version, None), log(&mut changes));
        }
        // An etcd that was restored from a backup.
        cache.reset(vec![thing("a", 1, 2, None)], log(&mut changes));
        assert_eq!(changes, ["+a@5", "a@5->5", "a@5->6", "a@6->2"]);
    }

    proptest! {
        /// Whatever happened, an index gives what a scan over all objects gives.
        #[test]
        fn indices_agree_with_a_scan(steps in proptest::collection::vec((0_u8..6, 0_u8..4, 0_u8..3, 0_u8..8), 1..60)) {
            let mut indices = Indices::default();
            let by_controller = indices.add_controller();
            let cache = Cache::<Thing>::new(indices);
            for (version, (name, uid, owner, action)) in (1_u64..).zip(steps) {
                let owner = (owner > 0).then_some(100 + owner);
                let object = thing(&format!("n{name}"), uid, version, owner);
                match action {
                    0..=4 => cache.apply(&object, |_| {}),
                    5..=6 => cache.delete(&object, |_| {}),
                    _ => {
                        let keep = cache.all().into_iter().step_by(2).collect();
                        cache.reset(keep, |_| {});
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
