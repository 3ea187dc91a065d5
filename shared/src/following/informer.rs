//! Follows one resource: list, watch, and again from where it stopped; the [`Cache`] is its result.
//!
//! Our own reflector over the client's streams: it decodes a watch line straight into a lean view, shows bookmarks
//! (read-your-writes is woken by them), and passes over a single object that does not decode
//! (docs/decisions/0002-own-reflector.md).
//! Left out: periodic resyncs. What upstream's resync heals (a lost timer, an expectation that expired) has its own
//! wake-up here.

mod on_demand;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::TryFutureExt;
use futures::future::try_join_all;
use tokio::sync::watch;

use crate::api::intern::Text;
use crate::api::object::{Key, Kind, Object, ResourceVersion};
use crate::api::resource::Resource;
use crate::following::cache::{Cache, Change, Forgotten, IndexId, IndexValue, Indices, Part, Progress};
use crate::following::collection::Collection;
use crate::following::demand::Demand;
pub use crate::following::demand::{Need, Needed};
pub use crate::following::feed::{Feeder, Running};
pub use crate::following::health::Health;
use crate::following::reflector;
pub use crate::following::reflector::{Store, Watches};
use crate::following::source::{Follow, Source};
use crate::following::watched::Watched;
use crate::transport::client::Accept;
use on_demand::Follower;

/// Gets each change after it is in the cache. It gets nothing before work starts, and then all objects as added. It only
/// enqueues keys: it must be quick and must not block.
pub type Handler<T> = Box<dyn Fn(Change<'_, T>) + Send + Sync>;

/// One resource to follow: declare indices, take the cache, add handlers, then hand it to
/// [`crate::process::run::Setup::watch`].
pub struct Informer<T> {
    source: Source,
    cache: Arc<Cache<T>>,
    handlers: Handlers<T>,
}

struct Handlers<T> {
    /// Count what is cached: of a deleted object they get the cached state, which the last one may differ from.
    needs: Vec<Handler<T>>,
    at_any_time: Vec<Handler<T>>,
    once_started: Vec<Handler<T>>,
}

impl<T> Default for Handlers<T> {
    fn default() -> Self {
        Self { needs: Vec::new(), at_any_time: Vec::new(), once_started: Vec::new() }
    }
}

/// A cache, and the handlers of its changes. Handlers are not called before work starts: nothing could act on the changes,
/// and the cache has their result.
pub(super) struct Cached<T> {
    pub(super) cache: Arc<Cache<T>>,
    handlers: Handlers<T>,
    has_started: AtomicBool,
}

impl<T: Object> Cached<T> {
    fn notify(&self, change: Change<'_, T>, health: &Health) {
        tell(self.handlers.needs.iter(), change, health);
        self.handle(change, health);
    }

    fn notify_deleted(&self, known: &Arc<T>, last: &Arc<T>, health: &Health) {
        tell(self.handlers.needs.iter(), Change::Deleted(known), health);
        self.handle(Change::Deleted(last), health);
    }

    fn handle(&self, change: Change<'_, T>, health: &Health) {
        let has_started = self.has_started.load(Ordering::Relaxed);
        let once_started = self.handlers.once_started.iter().filter(|_| has_started);
        let is_handled = tell(self.handlers.at_any_time.iter().chain(once_started), change, health);
        if is_handled || matches!(change, Change::Deleted(_)) {
            health.handles(&change.latest().meta().key);
        }
    }

    /// Forgets the objects that only this part sees. Of those that still exist only the handlers that count cached objects
    /// are told.
    fn forget(&self, part: Part, health: &Health) {
        let Forgotten { unfollowed, gone } = self.cache.forget_part(part);
        for object in &unfollowed {
            tell(self.handlers.needs.iter(), Change::Deleted(object), health);
        }
        for object in &gone {
            self.notify_deleted(object, object, health);
        }
    }

    /// Whether the cache can store this object: an index function that panics makes it unreadable.
    fn can_index(&self, object: &T, health: &Health) -> bool {
        let can_index = catch_unwind(AssertUnwindSafe(|| self.cache.try_indices(object))).is_ok();
        if !can_index {
            let key = object.meta().key.clone();
            tracing::error!(resource = health.resource, %key, "an index function panicked; keeping the object's last state");
            health.cannot_read(key, "an index function panicked".to_owned());
        }
        can_index
    }

    /// All of it is one step of the process's only thread: no change comes in between.
    pub(super) fn start(&self, health: &Health) {
        self.has_started.store(true, Ordering::Relaxed);
        for object in self.cache.all() {
            tell(self.handlers.once_started.iter(), Change::Added(&object), health);
        }
    }
}

/// Calls all handlers and returns whether none panicked. A panic loses only what that handler would have enqueued; otherwise
/// the same object would end the process at every start.
fn tell<'a, T: Object>(handlers: impl Iterator<Item = &'a Handler<T>>, change: Change<'_, T>, health: &Health) -> bool {
    let panics = handlers.filter(|handler| catch_unwind(AssertUnwindSafe(|| handler(change))).is_err()).count();
    if panics > 0 {
        let key = &change.latest().meta().key;
        tracing::error!(resource = health.resource, %key, "a handler of an object's change panicked");
        health.cannot_handle(key.clone());
    }
    panics == 0
}

/// One list and watch that fills a cache, alone or with others.
pub(super) struct PartStore<T> {
    pub(super) cached: Arc<Cached<T>>,
    part: Part,
    pub(super) health: Arc<Health>,
    progress: watch::Sender<Progress>,
    /// The progress of the cache itself, if this part is all of a resource on demand.
    whole: Option<watch::Sender<Progress>>,
    /// The demand for which it is followed; none if it is followed for ever.
    demand: Option<Demand>,
}

impl<T: Object> Store<T> for PartStore<T> {
    fn apply(&self, object: Arc<T>) {
        if !self.cached.can_index(&object, &self.health) {
            return;
        }
        self.cached.cache.apply(self.part, &object, |change| self.cached.notify(change, &self.health));
    }

    fn delete(&self, last: Arc<T>) {
        let removed = |known: &Arc<T>| self.cached.notify_deleted(known, &last, &self.health);
        self.cached.cache.delete(self.part, &last, removed);
    }

    fn delete_unread(&self, key: &Key) {
        if let Some(last) = self.cached.cache.get(key) {
            self.delete(last);
        }
    }

    fn reset(&self, mut live: Vec<Arc<T>>, unreadable: &BTreeMap<Key, String>) {
        let Cached { cache, .. } = &*self.cached;
        let mut kept: Vec<Arc<T>> = unreadable.keys().filter_map(|key| cache.get(key)).collect();
        live.retain(|object| {
            let can_index = self.cached.can_index(object, &self.health);
            if !can_index {
                kept.extend(cache.get(&object.meta().key));
            }
            can_index
        });
        live.append(&mut kept);
        cache.reset(self.part, live, |change| self.cached.notify(change, &self.health));
    }

    fn listed(&self, version: ResourceVersion, list: u64) {
        for progress in iter::once(&self.progress).chain(&self.whole) {
            Progress::listed(progress, version, list);
        }
        if let Some(demand) = &self.demand {
            demand.has_changed();
        }
    }

    fn advance(&self, version: ResourceVersion) {
        for progress in iter::once(&self.progress).chain(&self.whole) {
            Progress::advance(progress, version);
        }
    }
}

/// The description of an informer, before its cache exists.
pub struct InformerBuilder<T> {
    resource: Resource,
    namespace: Text,
    accept: Accept,
    field_selector: Cow<'static, str>,
    label_selector: Cow<'static, str>,
    indices: Indices<T>,
}

impl<T: Kind> InformerBuilder<T> {
    pub fn new() -> Self {
        Self::of(T::RESOURCE)
    }
}

impl<T: Kind> Default for InformerBuilder<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Object> InformerBuilder<T> {
    /// All objects of a resource that is known only at run time.
    pub fn of(resource: Resource) -> Self {
        Self {
            resource,
            namespace: Text::default(),
            accept: Accept::Object,
            field_selector: Cow::Borrowed(""),
            label_selector: Cow::Borrowed(""),
            indices: Indices::default(),
        }
    }

    /// Asks for metadata only (`PartialObjectMetadata`).
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.accept = Accept::Metadata;
        self
    }

    /// Narrows to one namespace by its path, so that a right in this namespace is enough.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Text::new(namespace);
        self
    }

    /// Narrows by a field selector, as the API writes it.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<Cow<'static, str>>) -> Self {
        self.field_selector = selector.into();
        self
    }

    /// Narrows by a label selector, as the API writes it.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<Cow<'static, str>>) -> Self {
        self.label_selector = selector.into();
        self
    }

    pub fn index(&mut self, index: impl Fn(&T, &mut dyn FnMut(IndexValue)) + Send + Sync + 'static) -> IndexId {
        self.indices.add(index)
    }

    /// Adds the index that claiming needs: see [`Indices::add_controller`].
    pub fn index_by_controller(&mut self) -> IndexId {
        self.indices.add_controller()
    }

    /// Adds an index by namespace.
    pub fn index_by_namespace(&mut self) -> IndexId {
        self.indices.add_namespace()
    }

    /// The informer, its cache still empty.
    pub fn build(self) -> Informer<T> {
        let Self { resource, namespace, accept, field_selector, label_selector, indices } = self;
        let health = Arc::new(Health::new(resource.to_string()));
        let cache = Arc::new(Cache::new(indices));
        let source = Source {
            streams_list: namespace.is_empty() && !accept.has_protobuf_lists(&resource),
            resource,
            namespace,
            accept,
            field_selector,
            label_selector,
            watch_fields: Cow::Borrowed(""),
            health,
        };
        Informer { source, cache, handlers: Handlers::default() }
    }
}

impl<T: Object> Informer<T> {
    pub fn cache(&self) -> Arc<Cache<T>> {
        Arc::clone(&self.cache)
    }

    /// Adds a handler of changes. When work starts it gets all objects that are there, as added.
    pub fn on_change(&mut self, handler: impl Fn(Change<'_, T>) + Send + Sync + 'static) {
        self.handlers.once_started.push(Box::new(handler));
    }

    /// To follow how far the cache has come.
    pub fn follow(&self) -> Follow {
        self.source.follow(self.cache.subscribe(), &self.cache)
    }

    /// The need of those objects that `needs` picks, while they are in the cache: see
    /// [`crate::process::run::Setup::watch_while`].
    pub fn need(&mut self, needs: impl Fn(&T) -> bool + Send + Sync + 'static) -> Need {
        let need = Need::default();
        self.adds_to(&need, needs);
        need
    }

    /// As [`Self::need`] where each object needs something else: see [`crate::process::run::Setup::watch_on_nodes`] and
    /// [`crate::process::run::Setup::watch_selected`].
    pub fn need_by_name(&mut self, needs: impl Fn(&T) -> bool + Send + Sync + 'static) -> Need {
        let need = Need::default();
        self.counts_in(&need, move |object| needs(object).then(|| Text::new(object.meta().name())));
        need
    }

    /// As [`Self::need`] of objects that need what is in another namespace than their own: `namespace` says in which.
    pub fn need_in(&mut self, namespace: impl Fn(&T) -> Option<Text> + Send + Sync + 'static) -> Need {
        let need = Need::default();
        self.counts_in(&need, namespace);
        need
    }

    /// Counts these objects to a need that others have too.
    pub fn adds_to(&mut self, need: &Need, needs: impl Fn(&T) -> bool + Send + Sync + 'static) {
        self.counts_in(need, move |object| needs(object).then(|| Text::new(object.meta().namespace())));
    }

    fn counts_in(&mut self, need: &Need, place: impl Fn(&T) -> Option<Text> + Send + Sync + 'static) {
        let need = need.clone();
        // A standby follows what it will need at once.
        self.handlers.needs.push(Box::new(move |change| need.note(&change, &place)));
    }

    /// Adds a handler of changes that runs on a standby too, for what a later look at the cache would not show.
    pub fn on_change_at_any_time(&mut self, handler: impl Fn(Change<'_, T>) + Send + Sync + 'static) {
        self.handlers.at_any_time.push(Box::new(handler));
    }

    pub(crate) fn collection(&self) -> Collection {
        Collection::new(&self.source, self.follow())
    }

    pub fn health(&self) -> Arc<Health> {
        Arc::clone(&self.source.health)
    }

    /// Follows the resource for as long as the future is polled; the other part is called once, when work starts.
    pub fn run(self, watches: impl Into<Watches>) -> (impl Future<Output = ()> + Send, impl FnOnce() + Send) {
        let (source, store) = self.asleep();
        let (cached, health) = (Arc::clone(&store.cached), Arc::clone(&store.health));
        (reflector::run(source, store, watches.into()), move || cached.start(&health))
    }

    /// As [`Self::run`], while something needs it; all that is followed for these fills one cache.
    pub(crate) fn run_on_demand(
        self,
        demands: Vec<Demand>,
        watches: &Watches,
        watched: &Watched,
    ) -> (impl Future<Output = anyhow::Result<()>> + Send + use<T>, impl FnOnce() + Send + use<T>) {
        let (source, PartStore { cached, health, .. }) = self.asleep();
        let follow = |demand: Demand| {
            let (source, cached, watches) = (demand.source(&source), Arc::clone(&cached), watches.clone());
            Follower { demand, source, cached, watches, watched: watched.clone() }.run()
        };
        let following = try_join_all(demands.into_iter().map(follow)).map_ok(drop);
        (following, move || cached.start(&health))
    }

    pub(super) fn asleep(self) -> (Source, PartStore<T>) {
        let Self { source, cache, handlers } = self;
        let progress = cache.progress_sender();
        let cached = Arc::new(Cached { cache, handlers, has_started: AtomicBool::new(false) });
        let health = Arc::clone(&source.health);
        (source, PartStore { cached, part: Part::default(), health, progress, whole: None, demand: None })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::api::object::{Meta, NoAnnotations};
    use crate::api::resource::PODS;

    #[derive(serde::Deserialize)]
    struct Pod {
        metadata: Meta,
    }

    impl Object for Pod {
        type Annotations = NoAnnotations;
        fn meta(&self) -> &Meta {
            &self.metadata
        }
    }

    fn at(name: &str, version: u64) -> Arc<Pod> {
        let meta = format!(r#"{{"metadata":{{"name":"{name}","uid":"{name}","resourceVersion":"{version}"}}}}"#);
        Arc::new(serde_json::from_str(&meta).unwrap())
    }

    #[test]
    fn one_namespace_is_asked_for_by_its_path() {
        let informer = InformerBuilder::<Pod>::of(PODS).namespace("a").fields("spec.nodeName=n").build();
        let path = |source: &Source| source.path(&PODS, &[]);
        assert_eq!(path(&informer.source), "/api/v1/namespaces/a/pods?fieldSelector=spec.nodeName%3Dn");
        assert!(!informer.source.streams_list);
        // Where it is followed on demand, too.
        let all = informer.source.within(&Text::default());
        assert_eq!(path(&all), path(&informer.source));
        let whole = InformerBuilder::<Pod>::of(PODS).build().source;
        assert_eq!(path(&whole.within(&Text::default())), "/api/v1/pods");
        assert_eq!(path(&whole.within(&Text::new("b"))), "/api/v1/namespaces/b/pods");
    }

    #[test]
    fn handlers_sleep_until_work_starts_and_are_then_told_of_what_is_there() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let mut informer = InformerBuilder::<Pod>::of(PODS).build();
        let tell = |told: &Arc<Mutex<Vec<String>>>, handler: &'static str| {
            let told = Arc::clone(told);
            move |change: Change<'_, Pod>| {
                let what = match change {
                    Change::Added(_) => "added",
                    Change::Updated { .. } => "updated",
                    Change::Deleted(_) => "deleted",
                };
                told.lock().unwrap().push(format!("{handler}: {} {what}", change.latest().metadata.name()));
            }
        };
        informer.on_change(tell(&told, "all"));
        let ever = Arc::new(Mutex::new(Vec::new()));
        informer.on_change_at_any_time(tell(&ever, "ever"));
        let (_, store) = informer.asleep();
        store.apply(at("gone", 1));
        store.apply(at("a", 1));
        store.apply(at("a", 2));
        store.delete(at("gone", 1));
        assert_eq!(*told.lock().unwrap(), [""; 0]);
        let before = ["ever: gone added", "ever: a added", "ever: a updated", "ever: gone deleted"];
        assert_eq!(*ever.lock().unwrap(), before);
        store.cached.start(&store.health);
        assert_eq!(*ever.lock().unwrap(), before, "it knows of them");
        assert_eq!(std::mem::take(&mut *told.lock().unwrap()), ["all: a added"]);
        store.apply(at("a", 3));
        store.apply(at("b", 1));
        store.delete(at("a", 3));
        assert_eq!(*told.lock().unwrap(), ["all: a updated", "all: b added", "all: a deleted"]);
    }

    #[test]
    fn a_need_ends_with_its_object_whatever_the_last_state_says() {
        let mut informer = InformerBuilder::<Pod>::of(PODS).build();
        let early = informer.need(|pod| pod.metadata.resource_version < ResourceVersion(3));
        let late = informer.need(|pod| pod.metadata.resource_version >= ResourceVersion(3));
        let (_, store) = informer.asleep();
        store.apply(at("a", 1));
        store.apply(at("b", 4));
        store.delete(at("a", 5));
        assert!(!early.is_there(), "its last state needs nothing, and it was counted before");
        assert!(late.is_there(), "its last state was never counted");
        store.delete(at("b", 6));
        assert!(!late.is_there());
    }

    #[test]
    fn a_handler_that_panics_costs_its_object_and_neither_other_handlers_nor_other_objects() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let mut informer = InformerBuilder::<Pod>::of(PODS).build();
        let health = informer.health();
        informer.on_change(|change| assert_ne!(change.latest().metadata.name(), "sick"));
        let names = Arc::clone(&told);
        informer.on_change(move |change| names.lock().unwrap().push(change.latest().metadata.name().to_owned()));
        let (_, store) = informer.asleep();
        store.apply(at("sick", 1));
        store.cached.start(&store.health);
        store.apply(at("well", 2));
        assert_eq!(*told.lock().unwrap(), ["sick", "well"]);
        let sick = || (health.decode_errors(), health.unhandled().iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(sick(), (1, vec!["sick".to_owned()]));
        health.begins_list();
        store.reset(vec![at("sick", 1), at("well", 2)], &health.unreadable());
        assert_eq!(sick(), (1, vec!["sick".to_owned()]), "a list tells no handler of what is as it was");
        store.delete(at("sick", 3));
        assert_eq!(sick(), (2, vec![]));
        assert_eq!(store.cached.cache.all().len(), 1);
    }

    #[test]
    fn an_object_that_an_index_cannot_take_keeps_its_last_state_and_stops_nobody() {
        let mut informer = InformerBuilder::<Pod>::of(PODS);
        informer.index(|pod, emit| {
            assert_ne!(pod.metadata.resource_version, ResourceVersion(2), "on purpose");
            emit(IndexValue::Text(pod.metadata.name().into()));
        });
        let informer = informer.build();
        let health = informer.health();
        let (_, store) = informer.asleep();
        let versions = || {
            let versions = store.cached.cache.all().into_iter().map(|pod| pod.metadata.resource_version.0);
            (versions.collect::<Vec<_>>(), health.unreadable().len())
        };
        store.apply(at("a", 1));
        store.apply(at("a", 2));
        store.apply(at("b", 2));
        store.apply(at("c", 3));
        assert_eq!(versions(), (vec![1, 3], 2));
        health.begins_list();
        store.reset(vec![at("a", 2), at("b", 2), at("c", 4)], &health.unreadable());
        assert_eq!(versions(), (vec![1, 4], 2));
    }
}
