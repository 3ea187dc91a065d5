//! The running sync: log lines and traces name its queue, its key and its attempt.

use std::cell::Cell;

use opentelemetry::TraceId;
use tokio::time::Instant;
use tracing::Instrument;

use super::trace::trace_of;
use crate::api::object::Key;
use crate::working::decisions::Trigger;
use crate::working::queue::Queue;

tokio::task_local! {
    static SYNC: Running;
}

/// A running sync, as log lines and traces name it.
pub(crate) struct Running {
    queue: Queue,
    pub(crate) key: Key,
    pub(crate) attempt: u32,
    /// The trace of the change that led to it, if traces are sent.
    pub(crate) trace: Option<TraceId>,
    /// When the event that led to it was seen; none once a write was accepted.
    unanswered: Cell<Option<Instant>>,
}

impl Running {
    pub(crate) fn queue(&self) -> &'static str {
        self.queue.name()
    }
}

/// Runs a sync of a key. `cause` is the change that led to it.
pub(crate) fn in_sync<F: Future>(
    queue: &Queue,
    key: &Key,
    attempt: u32,
    cause: Option<&Trigger>,
    syncing: F,
) -> impl Future<Output = F::Output> + use<F> {
    let span = tracing::info_span!(
        "sync",
        queue = queue.name(),
        %key,
        attempt,
        cause.resource = cause.map(|cause| display(cause.resource)),
        cause.object = cause.map(|cause| display(&cause.object)),
        cause.version = cause.map(|cause| cause.version.0),
    );
    let traced = cause.filter(|_| !span.is_disabled());
    let running = Running {
        queue: queue.clone(),
        key: key.clone(),
        attempt,
        trace: traced.map(|Trigger { resource, object, version, .. }| trace_of(resource, object, *version)),
        unanswered: Cell::new(cause.map(|cause| cause.seen)),
    };
    SYNC.scope(running, syncing.instrument(span))
}

/// Tells the queue of a sync's first write how long after the event it was accepted.
pub(crate) fn wrote() {
    running(|sync| {
        if let Some(seen) = sync.unanswered.take() {
            sync.queue.wrote(seen.elapsed());
        }
    });
}

/// Give the running sync to `look`, if there is one.
pub(crate) fn running(look: impl FnOnce(&Running)) {
    // Outside of a sync there is none to give.
    let _ = SYNC.try_with(look);
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::*;
    use crate::api::object::ResourceVersion;
    use crate::api::resource::{PODS, Resource};
    use crate::working::decisions::Trigger;
    use crate::working::queue::{Backoff, Cause, Observer};

    const RESOURCE: &Resource = &PODS;

    #[derive(Clone, Default)]
    struct Writes(Arc<Mutex<Vec<Duration>>>);

    impl Observer for Writes {
        fn added(&self) {}
        fn depth(&self, _: usize) {}
        fn dequeued(&self, _: Duration) {}
        fn worked(&self, _: Duration) {}
        fn retried(&self) {}
        fn failed(&self, _: &'static str) {}
        fn wrote(&self, after: Duration) {
            self.0.lock().unwrap().push(after);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_write_of_a_sync_is_timed_from_the_event_that_led_to_it() {
        let writes = Writes::default();
        let queue = Queue::new("test", Backoff::default(), Some(Box::new(writes.clone())));
        Queue::start(std::slice::from_ref(&queue), || {});
        let pass = |seconds| tokio::time::advance(Duration::from_secs(seconds));
        let key = Key::new("ns", "a");
        let trigger =
            Trigger { resource: RESOURCE, object: key.clone(), version: ResourceVersion(1), seen: Instant::now() };
        pass(1).await;
        queue.add_for(&key, Cause::Event, trigger);
        queue.add(&Key::new("ns", "at a time of its own"), Cause::Event);
        pass(2).await;
        for _ in 0..2 {
            let key = queue.next().await.unwrap();
            let syncing = async {
                pass(4).await;
                wrote();
                wrote();
            };
            in_sync(&queue, &key, 1, queue.trigger(&key).as_ref(), syncing).await;
        }
        assert_eq!(*writes.0.lock().unwrap(), [Duration::from_secs(7)]);
    }
}
