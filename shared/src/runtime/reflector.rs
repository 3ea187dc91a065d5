//! The loop behind an informer: list, watch, resume, and list again when the server has forgotten where we were.
//!
//! Upstream: `ListAndWatch`, staging/src/k8s.io/client-go/tools/cache/reflector.go.
//! Left out: lists from the server's watch cache (`resourceVersion=0`): a first list that is older than what an earlier
//! process acted on is how duplicate pods are made.

mod burst;
mod list;
mod wire;

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{FutureExt, Stream, StreamExt};
use memchr::memchr;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use self::burst::Burst;
use self::wire::{Bookmark, Event, Identity};
use crate::api::object::{Key, ResourceVersion, Versioned};
use crate::api::protobuf::{self, Frame};
use crate::runtime::api_error::ApiError;
use crate::runtime::client::list::{LIST_MAX, LIST_PATIENCE};
use crate::runtime::client::page::Item;
use crate::runtime::client::{Client, Purpose, soon_after};
use crate::runtime::clock::jitter;
use crate::runtime::health::Health;
use crate::runtime::source::Source;

/// client-go's reflector back-off: 0.8 s, doubled up to 30 s, forgotten after a success.
const BACKOFF_FIRST: Duration = Duration::from_millis(800);
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// client-go asks for watches of 5 to 10 minutes, so that they do not all end at once.
const WATCH_SECONDS: u64 = 300;
/// How much later than asked for a watch may end before it counts as dead.
const WATCH_GRACE: Duration = Duration::from_secs(30);
/// An apiserver takes no object of more than 3 MB; an aggregated one may have larger ones.
const EVENT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// client-go's: a watch that ends sooner, and without a word, has failed.
const SHORT_WATCH: Duration = Duration::from_secs(1);
/// So long after its last event a watch gives up the connection that it has for its many events. Nothing else would find
/// out that such a connection is dead, while those that are shared are pinged.
const QUIET: Duration = Duration::from_secs(30);
/// How long it may take until such a connection is there and a watch has begun on it.
const BUSY_WAIT: Duration = Duration::from_secs(10);
/// So long no other is tried after one that did not work, such as where a proxy lets only HTTP/2 through.
const SHARED_TIME: Duration = Duration::from_mins(10);

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

/// Why a list or a watch ended.
enum Stop {
    /// The server ended the watch, as it does after the time asked for; or somebody asked to reconnect.
    Ended,
    /// The version we know is too old: list again.
    Expired,
    /// The server does not stream lists.
    NoStreamingList,
    /// The server does not send this list as one answer of protobuf, or not to its end.
    NoListInOne,
    /// Anything else.
    Failed(String),
}

impl From<ApiError> for Stop {
    fn from(error: ApiError) -> Self {
        if error.is_gone() { Self::Expired } else { Self::Failed(error.without_query()) }
    }
}

pub(crate) async fn run<T: Versioned>(source: Source, store: impl Store<T>, client: Client) {
    let mut reflector = Reflector::new(source, store, client);
    let mut came_back = reflector.client.came_back();
    let mut backoff = BACKOFF_FIRST;
    loop {
        // A watch that begins now fulfils every wish so far.
        let _ = reflector.source.health.reconnect.notified().now_or_never();
        if reflector.list < reflector.source.health.wanted_list() {
            reflector.version = None;
        }
        let stop = reflector.step(&mut backoff).await;
        let Some(error) = reflector.failure(stop) else { continue };
        if reflector.source.health.fails(&error) {
            tracing::warn!(resource = %reflector.source.resource, error, "cannot list or watch");
        }
        backoff = wait_out(backoff, &reflector.source.health, &mut came_back).await;
    }
}

/// Waits for the next try after a failure; gives the back-off after the next one.
async fn wait_out(backoff: Duration, health: &Health, came_back: &mut watch::Receiver<u64>) -> Duration {
    tokio::select! {
        () = sleep(jitter(backoff, 1.0)) => (backoff * 2).min(BACKOFF_MAX),
        () = health.retry.notified() => backoff,
        () = soon_after(came_back) => BACKOFF_FIRST,
    }
}

/// The objects of a streamed list so far.
type Listed<T> = BTreeMap<Key, Arc<T>>;

struct Reflector<T, S> {
    source: Source,
    store: S,
    objects: PhantomData<fn() -> T>,
    client: Client,
    /// Whether the server streams lists, as far as we know.
    streaming: bool,
    /// Where to resume; none before the first list.
    version: Option<ResourceVersion>,
    /// The number of the last list that was begun.
    list: u64,
    /// When that list was asked for.
    list_begun: Instant,
    /// The version was too old, and no event has come since.
    expired: bool,
    /// The last watch had so many events that the next one is to have a connection of its own.
    is_busy: bool,
    /// Until when none has, because one did not work.
    shared_until: Instant,
}

impl<T: Versioned, S: Store<T>> Reflector<T, S> {
    fn new(source: Source, store: S, client: Client) -> Self {
        let objects = PhantomData;
        let list_begun = Instant::now();
        let streaming = source.streams_list;
        Self {
            source,
            store,
            objects,
            client,
            streaming,
            version: None,
            list: 0,
            list_begun,
            expired: false,
            is_busy: false,
            shared_until: list_begun,
        }
    }

    /// Takes note of why a list or a watch ended; gives what failed, where the next try has to wait.
    fn failure(&mut self, stop: Stop) -> Option<String> {
        match stop {
            // That a list does not come as one answer, the client knows by now.
            Stop::Ended | Stop::NoListInOne => None,
            Stop::Expired => {
                self.version = None;
                // Once, a new list helps. A server that forgets at once would be asked for one list after the other.
                let again = std::mem::replace(&mut self.expired, true);
                again.then(|| "the version of the last list is too old already".to_owned())
            }
            Stop::NoStreamingList => {
                self.streaming = false;
                None
            }
            Stop::Failed(error) => Some(error),
        }
    }

    async fn step(&mut self, backoff: &mut Duration) -> Stop {
        if self.version.is_none() && !self.streaming {
            // Boxed for as long as it takes: the task would otherwise hold the room of a list all the time.
            return match Box::pin(self.list()).await {
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

    /// One watch, from where we are; before the first list it starts with a streamed one.
    async fn watch(&mut self, backoff: &mut Duration) -> Result<std::convert::Infallible, Stop> {
        let seconds = jitter(Duration::from_secs(WATCH_SECONDS), 1.0).as_secs();
        let initial = self.version.is_none();
        let (version, timeout_seconds) = (self.version.unwrap_or_default().to_string(), seconds.to_string());
        let mut query = vec![("watch", "1"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", &timeout_seconds)];
        if initial {
            self.begin_list();
            query.extend([("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]);
        } else {
            query.push(("resourceVersion", &version));
        }
        let path = if initial { self.source.path(&query) } else { self.source.watch_path(&query) };
        let is_busy = std::mem::take(&mut self.is_busy) && !initial;
        let purpose = if is_busy { Purpose::BusyWatch } else { Purpose::Watch };
        self.source.health.begins_watch();
        let stream = tokio::select! {
            stream = self.client.watch(&path, self.source.accept, &self.source.resource, purpose) => stream,
            // Nothing may come for long where the server has not reached our version.
            () = self.source.health.reconnect.notified(), if !initial => return Err(Stop::Ended),
            () = sleep(BUSY_WAIT), if is_busy => return Err(self.share("no answer")),
        };
        let stream = stream.map_err(|error| match error {
            error if is_busy && !error.is_gone() => self.share(&error.without_query()),
            error if initial && (error.is_invalid() || error.code() == Some(400)) => Stop::NoStreamingList,
            error => error.into(),
        })?;
        let (events, limit) = (Events { stream, buffer: BytesMut::new() }, Duration::from_secs(seconds));
        self.events(events, initial, limit, purpose, backoff).await
    }

    /// Goes back to the shared connection, after one that did not work: if the server has gone, the next try finds out.
    fn share(&mut self, error: &str) -> Stop {
        tracing::debug!(resource = %self.source.resource, error, "cannot watch over a connection of its own");
        self.shared_until = Instant::now() + SHARED_TIME;
        Stop::Ended
    }

    /// Takes what a watch tells until it ends, at the latest after `limit`, or until it is to go on over another
    /// connection.
    async fn events<L: Stream<Item = Result<Bytes, ApiError>> + Unpin>(
        &mut self,
        mut events: Events<L>,
        initial: bool,
        limit: Duration,
        purpose: Purpose,
        backoff: &mut Duration,
    ) -> Result<std::convert::Infallible, Stop> {
        let mut listing = initial.then(Listed::new);
        let health = Arc::clone(&self.source.health);
        let (started, mut was_told) = (Instant::now(), false);
        let (mut grown, mut listed) = (started, 0);
        let (is_busy, mut burst) = (purpose == Purpose::BusyWatch, Burst::new(started));
        loop {
            let deadline = match &listing {
                Some(_) => (grown + LIST_PATIENCE).min(started + LIST_MAX),
                None if is_busy => Instant::now() + QUIET,
                None => Instant::now() + limit + WATCH_GRACE,
            };
            let event = tokio::select! {
                event = timeout_at(deadline, events.next()) => event,
                // Not in the middle of a list: repeated requests would never let one end.
                () = health.reconnect.notified(), if listing.is_none() => return Err(Stop::Ended),
            };
            let event = event.map_err(|_| match &listing {
                // The connection lives, or its pings would have ended it: this server does not mark the end of a list.
                Some(_) => Stop::NoStreamingList,
                None if is_busy && was_told => Stop::Ended,
                None if is_busy => self.share("no event"),
                None => Stop::Failed("the watch is silent".to_owned()),
            })??;
            let Some(event) = event else {
                if started.elapsed() + SHORT_WATCH < limit {
                    self.client.note_early_end();
                }
                // Had it fallen silent it would be shared again by now.
                self.is_busy = is_busy && was_told;
                return Err(match &listing {
                    Some(_) => Stop::Failed("the list ended too early".to_owned()),
                    None if !was_told && started.elapsed() < SHORT_WATCH => {
                        Stop::Failed("the watch ended as soon as it began".to_owned())
                    }
                    None => Stop::Ended,
                });
            };
            let (is_listed, version) = (listing.is_none(), self.version);
            self.event(&event, &mut listing)?;
            // Bookmarks, and events of what is listed already, bring no list closer to its end.
            if let Some(live) = listing.as_ref().filter(|live| live.len() > listed) {
                (grown, listed) = (Instant::now(), live.len());
            }
            *backoff = BACKOFF_FIRST;
            was_told = true;
            self.expired &= !is_listed;
            if listing.is_none() && health.works() {
                tracing::info!(resource = %self.source.resource, "lists and watches again");
            }
            // What brings the version no further would be sent again.
            let is_shared = is_listed && !is_busy && self.version > version;
            if is_shared && burst.grows(Instant::now()) && Instant::now() >= self.shared_until {
                self.is_busy = true;
                return Err(Stop::Ended);
            }
        }
    }

    /// Takes one event of a watch. While the initial events come they are collected in `listing`.
    fn event(&mut self, bytes: &[u8], listing: &mut Option<Listed<T>>) -> Result<(), Stop> {
        self.source.health.hears();
        let event = match Event::<T>::read(bytes) {
            Ok(event) => event,
            Err(error) => return Err(Stop::Failed(format!("the watch sent what is no event: {error}"))),
        };
        match event {
            Event::Object { kind, object } => {
                let object = self.read(object);
                self.changed(kind, object, listing);
            }
            Event::Error(status) => return Err(ApiError::Status(Box::new(status)).into()),
            Event::Other { kind: "BOOKMARK", item } => self.bookmark(item, listing),
            Event::Other { kind, item } => match self.decode(item) {
                Ok(object) => self.changed(kind, object, listing),
                Err(key) => self.changed_unread(kind, &key, listing),
            },
        }
        Ok(())
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
            // A change while the list is sent comes before the list's end, too.
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
            tracing::info!(resource = %self.source.resource, "lists again");
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

    /// The object, or the key of one that this build cannot read.
    fn decode(&mut self, item: Item<'_>) -> Result<Arc<T>, Key> {
        let health: &Health = &self.source.health;
        match item.read::<T>() {
            Ok(object) => Ok(self.read(object)),
            Err(error) => {
                // The name tells a person where to look; the version lets the watch resume behind this object.
                let Identity { metadata } = item.read().unwrap_or_default();
                let key = Key::new(&metadata.namespace, &metadata.name);
                tracing::warn!(resource = health.resource, %key, %error, "cannot read an object; its last state stays");
                health.cannot_read(key.clone(), error.to_string());
                if self.version.is_some() {
                    self.seen(metadata.resource_version);
                }
                Err(key)
            }
        }
    }
}

/// Splits a body into events: lines, or frames.
struct Events<S> {
    stream: S,
    buffer: BytesMut,
}

impl<S: Stream<Item = Result<Bytes, ApiError>> + Unpin> Events<S> {
    async fn next(&mut self) -> Result<Option<BytesMut>, Stop> {
        let mut searched = 0;
        loop {
            let (end, least) = match protobuf::frame(&self.buffer) {
                Frame::None => {
                    let end = memchr(b'\n', &self.buffer[searched..]).map(|end| searched + end + 1);
                    (end, self.buffer.len())
                }
                Frame::Of(length) => {
                    let whole = Frame::whole(length);
                    (Some(whole).filter(|whole| *whole <= self.buffer.len()), whole)
                }
                Frame::Unknown => (None, 0),
            };
            if let Some(end) = end {
                let event = self.buffer.split_to(end);
                if self.buffer.is_empty() {
                    // Gives the memory of a large burst back.
                    self.buffer = BytesMut::new();
                }
                return Ok(Some(event));
            }
            searched = self.buffer.len();
            if least > EVENT_BYTES_MAX {
                return Err(Stop::Failed(format!("the watch sent an event of more than {EVENT_BYTES_MAX} bytes")));
            }
            match self.stream.next().await {
                Some(chunk) => self.buffer.extend_from_slice(&chunk?),
                None => return Ok(None),
            }
        }
    }
}

#[cfg(test)]
mod tests;
