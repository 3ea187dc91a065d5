//! Follows one resource: list, watch, and again from where it stopped; the [`Cache`] is its result.
//!
//! Our own reflector over the client's streams: it decodes a watch line straight into a lean view, shows bookmarks
//! (read-your-writes is woken by them), and passes over a single object that does not decode
//! (docs/decisions/0002-own-reflector.md).
//! Left out: periodic resyncs. What upstream's resync heals (a lost timer, an expectation that expired) has its own
//! wake-up here.

mod catch_up;
mod demand;
mod feed;
mod reflector;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::TryFutureExt;
use futures::future::try_join_all;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::api::intern::Text;
use crate::api::object::{Key, Kind, Object, ResourceVersion};
use crate::api::resource::Resource;
use crate::api::url::with_query;
use crate::runtime::cache::{Cache, Change, IndexId, IndexValue, Indices, Part, Progress};
use crate::runtime::client::{Accept, Client};
use crate::runtime::consistency::{Follow, VersionOf, Watched};
use crate::runtime::metrics::Metrics;
pub(crate) use catch_up::{Collection, Followed};
use demand::Follower;
pub(crate) use demand::{Demand, Extent};
pub use demand::{Need, Needed};
pub use feed::{Feeder, Running};

/// Told of each change after the cache has it, from the start of work on, and then of all that is there as added; it only
/// enqueues keys, so it must be quick and must not block.
pub type Handler<T> = Box<dyn Fn(Change<'_, T>) + Send + Sync>;

/// Where what is listed and watched goes: a [`Cache`] with its handlers, or an operator's own structure.
///
/// All calls come from one task, in the server's order; they must be quick and must not block.
pub trait Store<T>: Send + Sync + 'static {
    /// A new state of an object, known or not.
    fn apply(&self, object: Arc<T>);
    /// An object is gone; this is its last state.
    fn delete(&self, last: Arc<T>);
    /// An object is gone whose last state this build cannot read.
    fn delete_unread(&self, key: &Key);
    /// `live` is all there is, and `unreadable` too, whose last readable state stays.
    fn reset(&self, live: Vec<Arc<T>>, unreadable: &BTreeMap<Key, String>);
    /// After a reset: the version of the list, and its number.
    fn listed(&self, _version: ResourceVersion, _list: u64) {}
    /// All changes up to this version have been passed on.
    fn advance(&self, _version: ResourceVersion) {}
}

/// The collection that an informer follows, and the form in which it asks for it.
pub(crate) struct Source {
    pub(crate) resource: Resource,
    /// Empty for all namespaces.
    pub(crate) namespace: Text,
    /// Whether to ask for a streamed list. The apiserver sorts all objects of the resource for one, whatever the selectors.
    pub(crate) streams_list: bool,
    pub(crate) accept: Accept,
    pub(crate) field_selector: Cow<'static, str>,
    pub(crate) label_selector: Cow<'static, str>,
    /// Narrows the watch, and not the list.
    pub(crate) watch_fields: Cow<'static, str>,
    pub(crate) health: Arc<Health>,
}

impl Source {
    /// The path of what is listed, with these parameters and the selectors.
    fn path(&self, query: &[(&str, &str)]) -> String {
        self.path_of(&self.field_selector, query)
    }

    /// The path of what is watched after the list.
    fn watch_path(&self, query: &[(&str, &str)]) -> String {
        if self.watch_fields.is_empty() { self.path(query) } else { self.path_of(&self.watch_fields, query) }
    }

    fn path_of(&self, field_selector: &str, query: &[(&str, &str)]) -> String {
        let selectors = [("fieldSelector", field_selector), ("labelSelector", &*self.label_selector)];
        let pairs: Vec<_> = query.iter().copied().chain(selectors).collect();
        with_query(&self.resource.collection_path(&self.namespace), &pairs)
    }

    /// The same of one namespace, of which no list is streamed; the empty one stands for all that this is of.
    fn within(&self, namespace: &Text) -> Self {
        let namespace = if namespace.is_empty() { &self.namespace } else { namespace };
        Self {
            resource: self.resource.clone(),
            namespace: namespace.clone(),
            streams_list: false,
            accept: self.accept,
            field_selector: self.field_selector.clone(),
            label_selector: self.label_selector.clone(),
            watch_fields: self.watch_fields.clone(),
            health: Arc::new(Health::new(self.resource.to_string())),
        }
    }

    /// All objects, where those of the selectors are not enough.
    fn without_selectors(self) -> Self {
        Self { field_selector: Cow::Borrowed(""), label_selector: Cow::Borrowed(""), ..self }
    }

    /// To follow how far a cache has come that this fills.
    fn follow<T: Object>(&self, progress: watch::Receiver<Progress>, cache: &Arc<Cache<T>>) -> Follow {
        let cache = Arc::clone(cache);
        self.follow_as(progress, Arc::new(move |key| cache.get(key).map(|object| object.meta().resource_version)))
    }

    fn follow_as(&self, progress: watch::Receiver<Progress>, version_of: VersionOf) -> Follow {
        Follow {
            resource: self.resource.clone(),
            namespace: self.namespace.clone(),
            field_selector: self.field_selector.clone(),
            label_selector: self.label_selector.clone(),
            progress,
            health: Arc::clone(&self.health),
            version_of,
        }
    }
}

/// One resource to follow: declare indices, take the cache, add handlers, then hand it to
/// [`crate::runtime::run::Setup::watch`].
pub struct Informer<T> {
    source: Source,
    cache: Arc<Cache<T>>,
    handlers: Handlers<T>,
}

struct Handlers<T> {
    at_any_time: Vec<Handler<T>>,
    once_started: Vec<Handler<T>>,
}

impl<T> Default for Handlers<T> {
    fn default() -> Self {
        Self { at_any_time: Vec::new(), once_started: Vec::new() }
    }
}

/// A cache, and the handlers of its changes once work has started. Until then nobody would do anything about them, and
/// what they are worth is in the cache.
struct Cached<T> {
    cache: Arc<Cache<T>>,
    handlers: Handlers<T>,
    has_started: AtomicBool,
}

impl<T: Object> Cached<T> {
    fn notify(&self, change: Change<'_, T>) {
        self.handlers.at_any_time.iter().for_each(|handler| handler(change));
        if self.has_started.load(Ordering::Relaxed) {
            self.handlers.once_started.iter().for_each(|handler| handler(change));
        }
    }

    /// All of it is one step of the process's only thread: no change comes in between.
    fn start(&self) {
        self.has_started.store(true, Ordering::Relaxed);
        for object in self.cache.all() {
            self.handlers.once_started.iter().for_each(|handler| handler(Change::Added(&object)));
        }
    }
}

/// One list and watch that fills a cache, alone or with others.
struct PartStore<T> {
    cached: Arc<Cached<T>>,
    part: Part,
    progress: watch::Sender<Progress>,
    /// The demand for which it is followed; none if it is followed for ever.
    demand: Option<Demand>,
}

impl<T: Object> Store<T> for PartStore<T> {
    fn apply(&self, object: Arc<T>) {
        self.cached.cache.apply(self.part, &object, |change| self.cached.notify(change));
    }

    fn delete(&self, last: Arc<T>) {
        self.cached.cache.delete(self.part, &last, |change| self.cached.notify(change));
    }

    fn delete_unread(&self, key: &Key) {
        if let Some(last) = self.cached.cache.get(key) {
            self.delete(last);
        }
    }

    fn reset(&self, live: Vec<Arc<T>>, unreadable: &BTreeMap<Key, String>) {
        let Cached { cache, .. } = &*self.cached;
        let kept = unreadable.keys().filter_map(|key| cache.get(key));
        let live = live.into_iter().chain(kept).collect();
        cache.reset(self.part, live, |change| self.cached.notify(change));
    }

    fn listed(&self, version: ResourceVersion, list: u64) {
        Progress::listed(&self.progress, version, list);
        if let Some(demand) = &self.demand {
            demand.has_changed();
        }
    }

    fn advance(&self, version: ResourceVersion) {
        Progress::advance(&self.progress, version);
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
    /// All objects of the view's kind.
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

    /// Adds an index.
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
    /// The cache that this informer fills.
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

    /// The need of those objects that `needs` picks: see [`crate::runtime::run::Setup::watch_while`]. They are always
    /// followed themselves: objects that are let go tell no handler, and would count for ever.
    pub fn need(&mut self, needs: impl Fn(&T) -> bool + Send + Sync + 'static) -> Need {
        let need = Need::default();
        self.adds_to(&need, needs);
        need
    }

    /// As [`Self::need`] where each object needs something else: see [`crate::runtime::run::Setup::watch_on_nodes`].
    pub fn need_by_name(&mut self, needs: impl Fn(&T) -> bool + Send + Sync + 'static) -> Need {
        let need = Need::default();
        let noting = need.clone();
        self.on_change_at_any_time(move |change| noting.note_by_name(&change, &needs));
        need
    }

    /// Counts these objects to a need that others have too.
    pub fn adds_to(&mut self, need: &Need, needs: impl Fn(&T) -> bool + Send + Sync + 'static) {
        let need = need.clone();
        // A standby follows what it will need at once.
        self.on_change_at_any_time(move |change| need.note(&change, &needs));
    }

    /// Adds a handler of changes that runs on a standby too, for what a later look at the cache would not show.
    pub fn on_change_at_any_time(&mut self, handler: impl Fn(Change<'_, T>) + Send + Sync + 'static) {
        self.handlers.at_any_time.push(Box::new(handler));
    }

    /// To bring the cache up to a moment.
    pub(crate) fn collection(&self) -> Collection {
        Collection::new(&self.source, self.follow())
    }

    /// This informer's health, which outlives it.
    pub fn health(&self) -> Arc<Health> {
        Arc::clone(&self.source.health)
    }

    /// Follows the resource for as long as the future is polled; the other part is called once, when work starts.
    pub fn run(self, client: Client) -> (impl Future<Output = ()> + Send, impl FnOnce() + Send) {
        let (source, store) = self.asleep();
        let cached = Arc::clone(&store.cached);
        (reflector::run(source, store, client), move || cached.start())
    }

    /// As [`Self::run`], while something needs it; all that is followed for these fills one cache.
    pub(crate) fn run_on_demand(
        self,
        demands: Vec<Demand>,
        client: &Client,
        watched: &Watched,
        metrics: &Metrics,
    ) -> (impl Future<Output = anyhow::Result<()>> + Send + use<T>, impl FnOnce() + Send + use<T>) {
        let (source, PartStore { cached, .. }) = self.asleep();
        let follow = |demand: Demand| {
            let (source, cached, client) = (demand.source(&source), Arc::clone(&cached), client.clone());
            Follower { demand, source, cached, client, watched: watched.clone(), metrics: metrics.clone() }.run()
        };
        let following = try_join_all(demands.into_iter().map(follow)).map_ok(drop);
        (following, move || cached.start())
    }

    fn asleep(self) -> (Source, PartStore<T>) {
        let Self { source, cache, handlers } = self;
        let progress = cache.progress_sender();
        let cached = Arc::new(Cached { cache, handlers, has_started: AtomicBool::new(false) });
        (source, PartStore { cached, part: Part::default(), progress, demand: None })
    }
}

/// How one informer fares, for `/readyz`, metrics and read-your-writes.
pub struct Health {
    /// The resource as upstream prints it, such as `replicasets.apps`.
    pub resource: String,
    decode_errors: AtomicU64,
    lists: AtomicU64,
    last_list: Mutex<Option<ListTimes>>,
    unreadable: Mutex<BTreeMap<Key, String>>,
    failing: Mutex<Option<String>>,
    /// Ends a running watch.
    reconnect: Notify,
    /// Ends a back-off.
    retry: Notify,
    wanted_list: AtomicU64,
    listed_from: Mutex<Option<Instant>>,
    watched_from: Mutex<Option<Instant>>,
    created: Instant,
    /// When the apiserver last sent something, in milliseconds after `created` and 1 more; 0 for never.
    heard: AtomicU64,
    events: AtomicU64,
}

/// When a list began, and when it was in.
struct ListTimes {
    began: Instant,
    ended: Option<Instant>,
}

impl Health {
    pub(crate) fn new(resource: String) -> Self {
        Self {
            resource,
            decode_errors: AtomicU64::new(0),
            lists: AtomicU64::new(0),
            last_list: Mutex::default(),
            unreadable: Mutex::default(),
            failing: Mutex::default(),
            reconnect: Notify::new(),
            retry: Notify::new(),
            wanted_list: AtomicU64::new(0),
            listed_from: Mutex::default(),
            watched_from: Mutex::default(),
            created: Instant::now(),
            heard: AtomicU64::new(0),
            events: AtomicU64::new(0),
        }
    }

    /// How many events and listed objects did not decode.
    pub fn decode_errors(&self) -> u64 {
        self.decode_errors.load(Ordering::Relaxed)
    }

    /// How long ago the apiserver last sent something: an event, a bookmark or a list; none if it never has.
    pub(crate) fn silent_for(&self) -> Option<Duration> {
        let heard = self.heard.load(Ordering::Relaxed).checked_sub(1)?;
        Some(self.created.elapsed().saturating_sub(Duration::from_millis(heard)))
    }

    fn hears(&self) {
        let now = u64::try_from(self.created.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
        self.heard.store(now + 1, Ordering::Relaxed);
        self.events.fetch_add(1, Ordering::Relaxed);
    }

    /// How many events its watches have sent, bookmarks among them.
    fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// How many times the whole resource was listed.
    pub fn lists(&self) -> u64 {
        self.lists.load(Ordering::Relaxed)
    }

    /// The objects whose newest state does not decode, and why; the cache holds their last readable state, if any.
    pub fn unreadable(&self) -> BTreeMap<Key, String> {
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why the resource cannot be listed or watched at the moment.
    pub fn failing(&self) -> Option<String> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Drops the running watch and starts it again where it stopped: what breaks a silent stall. A back-off goes on.
    pub fn reconnect(&self) {
        self.reconnect.notify_one();
    }

    /// The same, unless the running watch was asked for less than `age` ago: many who wait for one watch would otherwise
    /// restart it one after the other, and a slow server would never get to send anything. Gives whether it does.
    pub fn reconnect_older(&self, age: Duration) -> bool {
        let begun = *self.watched_from.lock().unwrap_or_else(PoisonError::into_inner);
        let is_older = begun.is_none_or(|begun| begun.elapsed() >= age);
        if is_older {
            self.begins_watch();
            self.reconnect();
        }
        is_older
    }

    /// Notes that a watch is asked for.
    fn begins_watch(&self) {
        *self.watched_from.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Lists everything anew, after a back-off; gives the number that [`crate::runtime::cache::Progress::list`] has reached
    /// once that is done. Several wishes are fulfilled by one list that begins after them.
    pub fn relist(&self) -> u64 {
        let wanted = self.next_list();
        self.wanted_list.fetch_max(wanted, Ordering::Relaxed);
        self.reconnect.notify_one();
        wanted
    }

    /// As [`Self::relist`], at once even in a back-off: for what all work waits for.
    pub(crate) fn relist_now(&self) -> u64 {
        let wanted = self.relist();
        self.retry();
        wanted
    }

    /// Ends a back-off.
    fn retry(&self) {
        self.retry.notify_one();
    }

    /// When the last list that is in was asked for.
    fn listed_from(&self) -> Option<Instant> {
        *self.listed_from.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_listed_from(&self, begun: Instant) {
        *self.listed_from.lock().unwrap_or_else(PoisonError::into_inner) = Some(begun);
        self.ends_list();
    }

    /// The number of the next list that begins: it has seen all that was written before now.
    pub fn next_list(&self) -> u64 {
        self.lists() + 1
    }

    /// How long to wait before wishing for a list, so that lists take at most a tenth of the time.
    pub fn pause_before_list(&self) -> Duration {
        let now = Instant::now();
        self.last_list().as_ref().map_or(Duration::ZERO, |ListTimes { began, ended }| {
            let ended = ended.unwrap_or(now);
            (ended + (ended - *began) * 9).saturating_duration_since(now)
        })
    }

    fn last_list(&self) -> MutexGuard<'_, Option<ListTimes>> {
        self.last_list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an error; gives whether it is another one than before, and so worth a log line.
    fn fails(&self, error: &str) -> bool {
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        if failing.as_deref() == Some(error) {
            return false;
        }
        *failing = Some(error.to_owned());
        true
    }

    /// Notes that the watch runs; gives whether it did not before.
    fn works(&self) -> bool {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }

    fn cannot_read(&self, key: Key, error: String) {
        self.decode_errors.fetch_add(1, Ordering::Relaxed);
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).insert(key, error);
    }

    fn can_read(&self, key: &Key) {
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// Notes that a list begins; gives its number.
    pub(crate) fn begins_list(&self) -> u64 {
        *self.last_list() = Some(ListTimes { began: Instant::now(), ended: None });
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.lists.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn ends_list(&self) {
        if let Some(times) = &mut *self.last_list() {
            times.ended = Some(Instant::now());
        }
    }

    pub(crate) fn wanted_list(&self) -> u64 {
        self.wanted_list.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
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

    #[tokio::test(start_paused = true)]
    async fn many_who_wait_for_a_watch_restart_it_once() {
        let (health, age) = (Health::new("pods".to_owned()), Duration::from_secs(5));
        let mut restarts = 0;
        for _ in 0..100 {
            restarts += u32::from(health.reconnect_older(age));
            tokio::time::advance(age / 50).await;
        }
        assert_eq!(restarts, 2);
        health.begins_watch();
        assert!(!health.reconnect_older(age), "it was just asked for by the watch itself");
    }

    fn at(name: &str, version: u64) -> Arc<Pod> {
        let meta = format!(r#"{{"metadata":{{"name":"{name}","uid":"{name}","resourceVersion":"{version}"}}}}"#);
        Arc::new(serde_json::from_str(&meta).unwrap())
    }

    #[test]
    fn one_namespace_is_asked_for_by_its_path() {
        let informer = InformerBuilder::<Pod>::of(PODS).namespace("a").fields("spec.nodeName=n").build();
        let path = |source: &Source| source.path(&[]);
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
        store.cached.start();
        assert_eq!(*ever.lock().unwrap(), before, "it knows of them");
        assert_eq!(std::mem::take(&mut *told.lock().unwrap()), ["all: a added"]);
        store.apply(at("a", 3));
        store.apply(at("b", 1));
        store.delete(at("a", 3));
        assert_eq!(*told.lock().unwrap(), ["all: a updated", "all: b added", "all: a deleted"]);
    }
}
