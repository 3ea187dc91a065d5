//! Follows one resource: list, watch, and again from where it stopped; the [`Cache`] is its result.
//!
//! Our own reflector over the client's streams: it decodes a watch line straight into a lean view, shows bookmarks
//! (read-your-writes is woken by them), and passes over a single object that does not decode
//! (docs/decisions/0002-own-reflector.md).
//! Left out: periodic resyncs. What upstream's resync heals (a lost timer, an expectation that expired) has its own
//! wake-up here.

mod feed;
pub(crate) mod reflector;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::api::object::{Key, Kind, Object, ResourceVersion};
use crate::api::resource::Resource;
use crate::runtime::cache::{Cache, Change, IndexId, IndexValue, Indices};
use crate::runtime::client::{Accept, Client};
use crate::runtime::consistency::Follow;
pub use feed::{Feeder, Running};

/// Told of each change after the cache has it; it only enqueues keys, so it must be quick and must not block.
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
    /// After a reset: the version of the list, and its number.
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
    cached: Cached<T>,
}

struct Cached<T> {
    cache: Arc<Cache<T>>,
    handlers: Vec<Handler<T>>,
}

impl<T: Object> Cached<T> {
    fn notify(&self, change: Change<'_, T>) {
        for handler in &self.handlers {
            handler(change);
        }
    }
}

impl<T: Object> Sink<T> for Cached<T> {
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
        Informer { source, cached: Cached { cache, handlers: Vec::new() } }
    }
}

impl<T: Object> Informer<T> {
    /// The cache that this informer fills.
    pub fn cache(&self) -> Arc<Cache<T>> {
        Arc::clone(&self.cached.cache)
    }

    /// Adds a handler of changes.
    pub fn on_change(&mut self, handler: impl Fn(Change<'_, T>) + Send + Sync + 'static) {
        self.cached.handlers.push(Box::new(handler));
    }

    /// To follow how far the cache has come.
    pub fn follow(&self) -> Follow {
        let Source { resource, field_selector, label_selector, .. } = &self.source;
        Follow {
            resource: resource.clone(),
            field_selector: field_selector.clone(),
            label_selector: label_selector.clone(),
            progress: self.cached.cache.subscribe(),
            health: self.health(),
        }
    }

    /// What is known of this informer's health.
    pub fn health(&self) -> Arc<Health> {
        Arc::clone(&self.source.health)
    }

    /// Follows the resource for as long as the future is polled.
    pub async fn run(self, client: Client) {
        reflector::run(self.source, self.cached, client).await;
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
    reconnect: Notify,
    retry: Notify,
    wanted_list: AtomicU64,
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

    /// Drops the running watch and starts it again where it stopped: what breaks a silent stall. A back-off goes on.
    pub fn reconnect(&self) {
        self.reconnect.notify_one();
    }

    /// Lists everything anew, after the back-off if one is running; gives the number that
    /// [`crate::runtime::cache::Progress::list`] has reached once that is done. Several wishes are fulfilled by one list
    /// that begins after them.
    pub fn relist(&self) -> u64 {
        let wanted = self.next_list();
        self.wanted_list.fetch_max(wanted, Ordering::Relaxed);
        self.reconnect.notify_one();
        wanted
    }

    /// Ends the back-off that is running.
    pub fn retry(&self) {
        self.retry.notify_one();
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

    /// Notes that the list is in.
    pub(crate) fn ends_list(&self) {
        if let Some(times) = &mut *self.last_list() {
            times.ended = Some(Instant::now());
        }
    }

    pub(crate) fn wanted_list(&self) -> u64 {
        self.wanted_list.load(Ordering::Relaxed)
    }
}
