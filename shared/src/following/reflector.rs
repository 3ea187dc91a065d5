//! The loop behind an informer: list, watch, resume, and list again once the version has expired.
//!
//! Upstream: `ListAndWatch`, staging/src/k8s.io/client-go/tools/cache/reflector.go.
//! Left out: lists from the server's watch cache (`resourceVersion=0`): a first list that is older than what an earlier
//! process acted on is how duplicate pods are made.

mod body;
pub(crate) mod hub;
mod list;
mod request;
mod watches;
mod wire;

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt, Stream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use self::hub::Follower;
use self::watches::Watch;
pub use self::watches::Watches;
use self::wire::{Bookmark, Event, Identity};
use crate::api::object::{Key, ResourceVersion, Versioned};
use crate::following::health::Health;
use crate::following::source::Source;
use crate::transport::api_error::ApiError;
use crate::transport::client::list::{LIST_MAX, LIST_PATIENCE};
use crate::transport::client::page::Item;
use crate::transport::client::soon_after;
use crate::transport::clock::jitter;

/// client-go's reflector back-off: 0.8 s, doubled up to 30 s, forgotten after a success.
const BACKOFF_FIRST: Duration = Duration::from_millis(800);
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// How much later than asked for a watch may end before it counts as dead.
const WATCH_GRACE: Duration = Duration::from_secs(30);
/// client-go's: a watch that ends sooner and without an event has failed.
const SHORT_WATCH: Duration = Duration::from_secs(1);

/// Receives what is listed and watched: a [`Cache`](crate::following::cache::Cache) with its handlers, or an operator's
/// own structure.
///
/// All calls come from one task, in the server's order; they must be quick and must not block.
pub trait Store<T>: Send + Sync + 'static {
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

/// Why a list or a watch ended.
enum Stop {
    /// The server ended the watch, as it does after the requested time, or a reconnect was requested.
    Ended,
    /// The known version has expired: list again.
    Expired,
    /// A shared watch no longer has the events that come next.
    Behind,
    /// The server does not stream lists.
    NoStreamingList,
    /// The server does not send this list as one complete protobuf answer.
    NoListInOne,
    Failed(String),
}

impl From<ApiError> for Stop {
    fn from(error: ApiError) -> Self {
        if error.is_gone() { Self::Expired } else { Self::Failed(error.without_query()) }
    }
}

/// Follows a resource for as long as the future is polled. The other controllers of the process can share its watch from
/// this call on.
pub(crate) fn run<T: Versioned, S: Store<T>>(
    source: Source,
    store: S,
    watches: Watches,
) -> impl Future<Output = ()> + Send {
    Reflector::new(source, store, watches).follow()
}

/// Wait for the next try after a failure. Return the following back-off.
async fn wait_out(backoff: Duration, health: &Health, came_back: &mut watch::Receiver<u64>) -> Duration {
    tokio::select! {
        () = sleep(jitter(backoff, 1.0)) => (backoff * 2).min(BACKOFF_MAX),
        () = health.retry.notified() => backoff,
        () = soon_after(came_back) => BACKOFF_FIRST,
    }
}

type Listed<T> = BTreeMap<Key, Arc<T>>;

struct Reflector<T, S> {
    source: Source,
    store: S,
    objects: PhantomData<fn() -> T>,
    watches: Watches,
    follower: Option<Follower>,
    /// Whether the server streams lists, as far as known.
    streaming: bool,
    /// The version to resume from; none before the first list.
    version: Option<ResourceVersion>,
    /// Number of the last list that was begun.
    list: u64,
    list_begun: Instant,
    /// The version expired, and no event has come since.
    expired: bool,
    /// When the last watch failed or was to be replaced; one that is shared must be newer.
    since: Option<Instant>,
    /// Whether the next watch is not shared.
    is_behind: bool,
    /// The version at which a shared watch was joined, which sends earlier events too. 0 for a watch of its own.
    joined: ResourceVersion,
}

impl<T: Versioned, S: Store<T>> Reflector<T, S> {
    fn new(source: Source, store: S, watches: Watches) -> Self {
        Self {
            streaming: source.streams_list,
            follower: watches.follow(&source),
            source,
            store,
            objects: PhantomData,
            watches,
            version: None,
            list: 0,
            list_begun: Instant::now(),
            expired: false,
            since: None,
            is_behind: false,
            joined: ResourceVersion::default(),
        }
    }

    async fn follow(mut self) {
        let mut came_back = self.watches.client.came_back();
        let mut backoff = BACKOFF_FIRST;
        loop {
            // A watch that begins now satisfies every earlier request to reconnect.
            if self.source.health.reconnect.notified().now_or_never().is_some() {
                self.reconnects();
            }
            if self.list < self.source.health.wanted_list() {
                self.version = None;
            }
            let stop = self.step(&mut backoff).await;
            let Some(error) = self.failure(stop) else { continue };
            if self.source.health.fails(&error) {
                tracing::warn!(resource = %self.source.resource, error, "cannot list or watch");
            }
            backoff = wait_out(backoff, &self.source.health, &mut came_back).await;
        }
    }

    /// Note that the next watch must be a new one.
    fn reconnects(&mut self) -> Stop {
        self.since = Some(Instant::now());
        Stop::Ended
    }

    /// Note why a list or a watch ended. Return the error if the next try has to back off.
    fn failure(&mut self, stop: Stop) -> Option<String> {
        match stop {
            Stop::Ended | Stop::NoListInOne => None,
            Stop::Behind => {
                self.is_behind = true;
                None
            }
            Stop::Expired => {
                self.version = None;
                self.reconnects();
                // Back off the second time: a server whose versions expire at once would get one list after another.
                let again = std::mem::replace(&mut self.expired, true);
                again.then(|| "the new list's version has already expired".to_owned())
            }
            Stop::NoStreamingList => {
                self.streaming = false;
                None
            }
            Stop::Failed(error) => {
                self.reconnects();
                Some(error)
            }
        }
    }

    async fn step(&mut self, backoff: &mut Duration) -> Stop {
        if self.version.is_none() && !self.streaming {
            return match self.list().await {
                Ok(()) => Stop::Ended,
                Err(stop) => stop,
            };
        }
        let Err(stop) = self.watch(backoff).await;
        stop
    }

    fn begin_list(&mut self) {
        (self.list, self.list_begun) = (self.source.health.begins_list(), Instant::now());
    }

    /// One watch from the known version. Before the first list it starts with a streamed list.
    async fn watch(&mut self, backoff: &mut Duration) -> Result<std::convert::Infallible, Stop> {
        let initial = self.version.is_none();
        if initial {
            self.begin_list();
        }
        self.source.health.begins_watch();
        let is_behind = std::mem::take(&mut self.is_behind);
        let watch = tokio::select! {
            watch = self.watches.open((&self.source, self.follower.as_ref()), self.version, self.since, is_behind) => watch?,
            // A server that has not reached our version may stay silent for long.
            () = self.source.health.reconnect.notified(), if !initial => return Err(self.reconnects()),
        };
        self.joined = self.version.filter(|_| watch.events.are_shared()).unwrap_or_default();
        self.events(watch, initial, backoff).await
    }

    /// Handle the events of a watch until it ends, at the latest after its limit.
    async fn events<L: Stream<Item = Result<Bytes, ApiError>> + Unpin>(
        &mut self,
        Watch { mut events, begun: started, limit }: Watch<L>,
        initial: bool,
        backoff: &mut Duration,
    ) -> Result<std::convert::Infallible, Stop> {
        let mut listing = initial.then(Listed::new);
        let health = Arc::clone(&self.source.health);
        let (mut got_event, mut grown, mut listed) = (false, started, 0);
        loop {
            let deadline = match &listing {
                Some(_) => (grown + LIST_PATIENCE).min(started + LIST_MAX),
                None => Instant::now() + limit + WATCH_GRACE,
            };
            let event = tokio::select! {
                event = timeout_at(deadline, events.next()) => event,
                // A resumed watch tells nothing until an object changes.
                () = sleep_until(started + SHORT_WATCH), if listing.is_none() && health.failing().is_some() => {
                    self.recovers();
                    continue;
                }
                // Not during a list: repeated requests would never let one end.
                () = health.reconnect.notified(), if listing.is_none() => return Err(self.reconnects()),
            };
            let event = event.map_err(|_| match &listing {
                // The pings keep the connection checked, so this server does not mark the end of a list.
                Some(_) => Stop::NoStreamingList,
                None => Stop::Failed("the watch sent nothing in time".to_owned()),
            })??;
            let Some(event) = event else {
                if started.elapsed() + SHORT_WATCH < limit {
                    self.watches.client.note_early_end();
                }
                return Err(match &listing {
                    Some(_) => Stop::Failed("the streamed list ended early".to_owned()),
                    None if !got_event && started.elapsed() < SHORT_WATCH => {
                        Stop::Failed("the watch ended at once without an event".to_owned())
                    }
                    None => Stop::Ended,
                });
            };
            let is_listed = listing.is_none();
            self.event(&event, &mut listing)?;
            // Bookmarks and events of listed objects bring the list no closer to its end.
            if let Some(live) = listing.as_ref().filter(|live| live.len() > listed) {
                (grown, listed) = (Instant::now(), live.len());
            }
            *backoff = BACKOFF_FIRST;
            got_event = true;
            self.expired &= !is_listed;
            if listing.is_none() {
                self.recovers();
                if initial && self.follower.as_ref().is_some_and(Follower::is_shared) {
                    // What follows the list comes from the shared watch.
                    return Err(Stop::Ended);
                }
            }
        }
    }

    fn recovers(&self) {
        if self.source.health.works() {
            tracing::info!(resource = %self.source.resource, "list and watch recovered");
        }
    }

    /// Handle one event of a watch. Initial events are collected in `listing`.
    fn event(&mut self, bytes: &[u8], listing: &mut Option<Listed<T>>) -> Result<(), Stop> {
        self.source.health.hears();
        let event = match Event::<T>::read(bytes) {
            Ok(event) => event,
            Err(error) => return Err(Stop::Failed(format!("cannot decode a watch event: {error}"))),
        };
        match event {
            Event::Error(status) => return Err(ApiError::Status(Box::new(status)).into()),
            Event::Object { object, .. } if self.has_listed(|| object.resource_version()) => {}
            Event::Object { kind, object } => {
                let object = self.read(object);
                self.changed(kind, object, listing);
            }
            Event::Other { kind: "BOOKMARK", item } => self.bookmark(item, listing),
            Event::Other { item, .. } if self.has_listed(|| Identity::of(item).metadata.resource_version) => {}
            Event::Other { kind, item } => match self.decode(item) {
                Ok(object) => self.changed(kind, object, listing),
                Err(key) => self.changed_unread(kind, &key, listing),
            },
        }
        Ok(())
    }

    /// Whether an event of a shared watch came before the list or the watch after which it was joined.
    fn has_listed(&self, version: impl FnOnce() -> ResourceVersion) -> bool {
        let none = ResourceVersion::default();
        if self.joined == none {
            return false;
        }
        let version = version();
        version != none && version <= self.joined
    }

    fn bookmark(&mut self, item: Item<'_>, listing: &mut Option<Listed<T>>) {
        let Ok(Bookmark { metadata }) = item.read() else { return };
        match listing.take() {
            Some(live) if metadata.annotations.initial_events_end.is_some() => {
                self.reset(live.into_values().collect(), metadata.resource_version);
            }
            unfinished => *listing = unfinished,
        }
        if listing.is_none() {
            self.seen(metadata.resource_version);
        }
    }

    fn changed(&mut self, kind: &str, object: Arc<T>, listing: &mut Option<Listed<T>>) {
        let version = object.resource_version();
        match (listing, kind) {
            // Changes during the list come before its end, too.
            (Some(live), "DELETED") => drop(live.remove(object.key())),
            (Some(live), _) => drop(live.insert(object.key().clone(), object)),
            (None, "DELETED") => {
                self.store.delete(object);
                self.seen(version);
            }
            (None, _) => {
                self.store.apply(object);
                self.seen(version);
            }
        }
    }

    fn changed_unread(&mut self, kind: &str, key: &Key, listing: &mut Option<Listed<T>>) {
        let is_deleted = kind == "DELETED";
        if is_deleted {
            self.source.health.can_read(key);
        }
        match listing {
            Some(live) => drop(live.remove(key)),
            None if is_deleted => self.store.delete_unread(key),
            None => {}
        }
    }

    fn reset(&mut self, live: Vec<Arc<T>>, version: ResourceVersion) {
        self.store.reset(live, &self.source.health.unreadable());
        self.version = Some(version);
        self.source.health.is_listed_from(self.list_begun);
        self.store.listed(version, self.list);
        if self.source.health.works() {
            tracing::info!(resource = %self.source.resource, "list recovered");
        }
    }

    fn seen(&mut self, version: ResourceVersion) {
        self.version = Some(version.max(self.version.unwrap_or_default()));
        self.store.advance(version);
    }

    fn read(&self, object: T) -> Arc<T> {
        if self.source.health.decode_errors() > 0 {
            self.source.health.can_read(object.key());
        }
        Arc::new(object)
    }

    /// The decoded object, or the key of an unreadable one.
    fn decode(&mut self, item: Item<'_>) -> Result<Arc<T>, Key> {
        let health: &Health = &self.source.health;
        match item.read::<T>() {
            Ok(object) => Ok(self.read(object)),
            Err(error) => {
                // The version lets the watch resume behind this object.
                let Identity { metadata } = Identity::of(item);
                let key = Key::new(&metadata.namespace, &metadata.name);
                tracing::warn!(resource = health.resource, %key, %error, "cannot read an object; keeping its last state");
                health.cannot_read(key.clone(), error.to_string());
                if self.version.is_some() {
                    self.seen(metadata.resource_version);
                }
                Err(key)
            }
        }
    }
}

#[cfg(test)]
mod tests;
