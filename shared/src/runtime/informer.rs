//! Follows one resource: list, watch, and again from where it stopped; the [`Cache`] is its result.
//!
//! Our own reflector over the client's streams: it decodes a watch line straight into a lean view, shows bookmarks
//! (read-your-writes is woken by them), and passes over a single object that does not decode
//! (docs/decisions/0002-own-reflector.md).
//! Left out: periodic resyncs. What upstream's resync heals (a lost timer, an expectation that expired) has its own
//! wake-up here.

mod feed;
mod reflector;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::api::object::{Key, Kind, Object, ResourceVersion};
use crate::api::resource::Resource;
use crate::runtime::cache::{Cache, Change, IndexId, IndexValue, Indices};
use crate::runtime::client::{Accept, Client};
use crate::runtime::consistency::Follow;
pub use feed::{Feeder, Running};

/// Told of each change after the cache has it, from the start of work on, and then of all that is there as added; it only
/// enqueues keys, so it must be quick and must not block.
pub type Handler<T> = Box<dyn Fn(Change<'_, T>) + Send + Sync>;

/// Where what is listed and watched goes: a [`Cache`] with its handlers, or an operator's own structure.
///
/// All calls come from one task, in the server's order; they must be quick and must not block.
pub trait Sink<T>: Send + Sync + 'static {
    /// A new state of an object, known or not.
    fn apply(&self, object: Arc<T>);
    /// An object is gone; this is its last state.
    fn delete(&self, last: Arc<T>);
    /// An object is gone whose last state this build cannot read.
    fn delete_unread(&self, key: &Key);
    /// `live` is all there is, and `unreadable` too, whose last readable state stays.
    fn reset(&self, live: Vec<Arc<T>>, unreadable: &BTreeMap<Key, String>);
    /// After a reset: the version of the list, and its number among those somebody asked for.
    fn listed(&self, _version: ResourceVersion, _list: u64) {}
    /// Everything up to this version has been told.
    fn advance(&self, _version: ResourceVersion) {}
}

/// What is followed.
pub(crate) struct Source {
    pub(crate) resource: Resource,
    pub(crate) accept: Accept,
    pub(crate) field_selector: Cow<'static, str>,
    pub(crate) label_selector: Cow<'static, str>,
    pub(crate) health: Arc<Health>,
}

/// One resource to follow: declare indices, take the cache, add handlers, then hand it to
/// [`crate::runtime::run::Setup::watch`].
pub struct Informer<T> {
    source: Source,
    cache: Arc<Cache<T>>,
    handlers: Handlers<T>,
}

struct Handlers<T> {
    of_all: Vec<Handler<T>>,
    of_later: Vec<Handler<T>>,
}

/// A cache, and what is told of its changes once work has started. Until then nobody would do anything about them, and
/// what they are worth is in the cache.
struct Cached<T> {
    cache: Arc<Cache<T>>,
    handlers: Handlers<T>,
    has_started: AtomicBool,
}

impl<T: Object> Cached<T> {
    fn notify(&self, change: Change<'_, T>) {
        if self.has_started.load(Ordering::Relaxed) {
            let Handlers { of_all, of_later } = &self.handlers;
            of_all.iter().chain(of_later).for_each(|handler| handler(change));
        }
    }

    /// All of it is one step of the process's only thread: no change comes in between.
    fn start(&self) {
        self.has_started.store(true, Ordering::Relaxed);
        for object in self.cache.all() {
            self.handlers.of_all.iter().for_each(|handler| handler(Change::Added(&object)));
        }
    }
}

impl<T: Object> Sink<T> for Arc<Cached<T>> {
    fn apply(&self, object: Arc<T>) {
        self.cache.apply(&object, |change| self.notify(change));
    }

    fn delete(&self, last: Arc<T>) {
        self.cache.delete(&last, |change| self.notify(change));
    }

    fn delete_unread(&self, key: &Key) {
        if let Some(last) = self.cache.get(key) {
            self.cache.delete(&last, |change| self.notify(change));
        }
    }

    fn reset(&self, live: Vec<Arc<T>>, unreadable: &BTreeMap<Key, String>) {
        let kept = unreadable.keys().filter_map(|key| self.cache.get(key));
        let live = live.into_iter().chain(kept).collect();
        self.cache.reset(live, |change| self.notify(change));
    }

    fn listed(&self, version: ResourceVersion, list: u64) {
        self.cache.listed(version, list);
    }

    fn advance(&self, version: ResourceVersion) {
        self.cache.advance(version);
    }
}

/// What an informer watches, before its cache exists.
pub struct InformerBuilder<T> {
    resource: Resource,
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
        let Self { resource, accept, field_selector, label_selector, indices } = self;
        let health = Arc::new(Health::new(resource.to_string()));
        let cache = Arc::new(Cache::new(indices));
        let source = Source { resource, accept, field_selector, label_selector, health };
        Informer { source, cache, handlers: Handlers { of_all: Vec::new(), of_later: Vec::new() } }
    }
}

impl<T: Object> Informer<T> {
    /// The cache that this informer fills.
    pub fn cache(&self) -> Arc<Cache<T>> {
        Arc::clone(&self.cache)
    }

    /// Adds a handler of changes. When work starts it is told of all that is there.
    pub fn on_change(&mut self, handler: impl Fn(Change<'_, T>) + Send + Sync + 'static) {
        self.handlers.of_all.push(Box::new(handler));
    }

    /// Adds a handler of changes that come after the start of work.
    pub fn on_later_change(&mut self, handler: impl Fn(Change<'_, T>) + Send + Sync + 'static) {
        self.handlers.of_later.push(Box::new(handler));
    }

    /// To follow how far the cache has come.
    pub fn follow(&self) -> Follow {
        Follow { progress: self.cache.subscribe(), health: self.health() }
    }

    /// What is known of this informer's health.
    pub fn health(&self) -> Arc<Health> {
        Arc::clone(&self.source.health)
    }

    /// Follows the resource for as long as the future is polled; the other part is called once, when work starts.
    pub fn run(self, client: Client) -> (impl Future<Output = ()> + Send, impl FnOnce() + Send) {
        let (source, cached) = self.asleep();
        (reflector::run(source, Arc::clone(&cached), client), move || cached.start())
    }

    fn asleep(self) -> (Source, Arc<Cached<T>>) {
        let Self { source, cache, handlers } = self;
        (source, Arc::new(Cached { cache, handlers, has_started: AtomicBool::new(false) }))
    }
}

/// How one informer fares, for `/readyz`, metrics and read-your-writes.
pub struct Health {
    /// The resource as upstream prints it, such as `replicasets.apps`.
    pub resource: String,
    decode_errors: AtomicU64,
    lists: AtomicU64,
    unreadable: Mutex<BTreeMap<Key, String>>,
    failing: Mutex<Option<String>>,
    reconnect: Notify,
    wanted_list: AtomicU64,
}

impl Health {
    pub(crate) fn new(resource: String) -> Self {
        Self {
            resource,
            decode_errors: AtomicU64::new(0),
            lists: AtomicU64::new(0),
            unreadable: Mutex::default(),
            failing: Mutex::default(),
            reconnect: Notify::new(),
            wanted_list: AtomicU64::new(0),
        }
    }

    /// How many events and listed objects did not decode.
    pub fn decode_errors(&self) -> u64 {
        self.decode_errors.load(Ordering::Relaxed)
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

    /// Drops the running watch and starts it again where it stopped: what breaks a silent stall.
    pub fn reconnect(&self) {
        self.reconnect.notify_one();
    }

    /// Lists everything anew; gives the number that [`crate::runtime::cache::Progress::list`] has reached once that is done.
    pub fn relist(&self) -> u64 {
        let wanted = self.wanted_list.fetch_add(1, Ordering::Relaxed) + 1;
        self.reconnect.notify_one();
        wanted
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

    /// Notes that a list starts; gives the newest wish it fulfils.
    fn begins_list(&self) -> u64 {
        self.lists.fetch_add(1, Ordering::Relaxed);
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.wanted_list()
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

    fn at(name: &str, version: u64) -> Arc<Pod> {
        let meta = format!(r#"{{"metadata":{{"name":"{name}","uid":"{name}","resourceVersion":"{version}"}}}}"#);
        Arc::new(serde_json::from_str(&meta).unwrap())
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
        informer.on_later_change(tell(&told, "later"));
        let (_, cached) = informer.asleep();
        cached.apply(at("gone", 1));
        cached.apply(at("a", 1));
        cached.apply(at("a", 2));
        cached.delete(at("gone", 1));
        assert_eq!(*told.lock().unwrap(), [""; 0]);
        cached.start();
        assert_eq!(std::mem::take(&mut *told.lock().unwrap()), ["all: a added"]);
        cached.apply(at("a", 3));
        cached.apply(at("b", 1));
        cached.delete(at("a", 3));
        assert_eq!(
            *told.lock().unwrap(),
            [
                "all: a updated",
                "later: a updated",
                "all: b added",
                "later: b added",
                "all: a deleted",
                "later: a deleted"
            ]
        );
    }
}
