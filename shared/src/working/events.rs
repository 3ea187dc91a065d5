//! Events about objects, posted as client-go's recorder does: queued, counted and combined; recording never blocks.
//!
//! Equal events are counted in one Event (a PATCH of `count`). From the tenth on, events that differ only in their
//! message are combined. One object gets at most 25 in a burst. Events are core/v1, because `events.k8s.io` would
//! change what `kubectl describe` and existing alerts show. A process that does not work posts no events but those of
//! its election.
//! Left out: annotations on Events, and host names in their source.

mod correlator;
mod lru;
mod post;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::api::object::ObjectReference;
use crate::transport::client::Client;
use crate::transport::clock::Clock;
use post::Poster;

/// Upstream: `maxQueuedEvents`, staging/src/k8s.io/client-go/tools/record/event.go.
const QUEUED_MAX: usize = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventType {
    Normal,
    Warning,
}

impl EventType {
    /// The Event's `type`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedEvent {
    /// The state of the object that it is about.
    pub about: ObjectReference,
    pub kind: EventType,
    /// Upstream's word for it.
    pub reason: &'static str,
    pub message: String,
}

impl PlannedEvent {
    pub fn normal(about: ObjectReference, reason: &'static str, message: String) -> Self {
        Self { about, kind: EventType::Normal, reason, message }
    }

    pub fn warning(about: ObjectReference, reason: &'static str, message: String) -> Self {
        Self { about, kind: EventType::Warning, reason, message }
    }
}

/// Counts of events by their outcome.
#[derive(Clone)]
pub struct EventMetrics {
    pub(crate) posted: Counter,
    pub(crate) filtered: Counter,
    pub(crate) dropped: Counter,
    pub(crate) failed: Counter,
}

/// One call of [`Recorder::event`].
#[derive(Clone, Debug)]
struct Occurrence {
    component: &'static str,
    about: ObjectReference,
    kind: EventType,
    reason: String,
    message: String,
    at: Timestamp,
}

/// Posts events; cheap to clone, never blocks. The default one only logs.
#[derive(Clone, Default)]
pub struct Recorder {
    component: &'static str,
    queue: Option<Arc<Queue>>,
    at_any_time: bool,
}

struct Queue {
    /// Boxed, for a channel allocates the room for 32 values when it is made.
    sender: mpsc::Sender<Box<Occurrence>>,
    is_full: AtomicBool,
    is_working: AtomicBool,
    clock: Clock,
    metrics: EventMetrics,
}

impl Recorder {
    /// A recorder that posts also while another replica may lead.
    #[must_use]
    pub fn at_any_time(self) -> Self {
        Self { at_any_time: true, ..self }
    }

    /// Logs an event and queues it. If the queue is full, the event is dropped and counted. Before work has started, it
    /// is ignored.
    pub fn event(&self, about: &ObjectReference, kind: EventType, reason: &str, message: String) {
        let is_working = |queue: &Arc<Queue>| queue.is_working.load(Ordering::Relaxed);
        if !self.at_any_time && !self.queue.as_ref().is_none_or(is_working) {
            return;
        }
        tracing::info!(
            object = %about.key,
            kind = &*about.resource.kind,
            r#type = kind.as_str(),
            reason,
            text = message,
            "event occurred"
        );
        let Some(queue) = &self.queue else { return };
        let occurrence = Occurrence {
            component: self.component,
            about: about.clone(),
            kind,
            reason: reason.to_owned(),
            message,
            at: queue.clock.now(),
        };
        let is_full = queue.sender.try_send(Box::new(occurrence)).is_err();
        let was_full = queue.is_full.swap(is_full, Ordering::Relaxed);
        if is_full {
            queue.metrics.dropped.inc();
        }
        if is_full && !was_full {
            tracing::warn!(queued = QUEUED_MAX, "events are dropped: too many are queued");
        }
    }
}

pub struct Events {
    queue: Arc<Queue>,
    stop: CancellationToken,
    posting: JoinHandle<()>,
}

impl Events {
    /// Starts to post; called inside the tokio runtime.
    pub fn start(client: Client, clock: Clock, metrics: EventMetrics) -> Self {
        let (sender, occurrences) = mpsc::channel(QUEUED_MAX);
        let stop = CancellationToken::new();
        let poster = Poster::new(client, metrics.clone(), stop.clone());
        let posting = tokio::spawn(poster.run(occurrences));
        let (is_full, is_working) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { queue: Arc::new(Queue { sender, is_full, is_working, clock, metrics }), stop, posting }
    }

    /// The function to call once when work starts.
    pub fn starter(&self) -> impl FnOnce() + Send + use<> {
        let queue = Arc::clone(&self.queue);
        move || queue.is_working.store(true, Ordering::Relaxed)
    }

    /// A recorder whose events come from this component.
    pub fn recorder(&self, component: &'static str) -> Recorder {
        Recorder { component, queue: Some(Arc::clone(&self.queue)), at_any_time: false }
    }

    /// Posts the queued events for at most this long; each is tried once.
    pub async fn stop(self, limit: Duration) {
        self.stop.cancel();
        if tokio::time::timeout(limit, self.posting).await.is_err() {
            tracing::warn!(?limit, "not all events were posted in time");
        }
    }
}

#[cfg(test)]
mod tests;
