//! Explanations of a queue: the wait of one key, and the state of all.
//!
//! Left out: the metrics, which the queue's observer gets as things happen.

use std::time::Duration;

use tokio::time::Instant;

use super::Queue;
use super::entry::{Due, Entry};
use crate::api::object::Key;

/// The waits of a key, as times from now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// So long it has been waiting to be taken.
    pub queued: Option<Duration>,
    /// So long it has been worked on, or held.
    pub processing: Option<Duration>,
    /// Failures in a row.
    pub failures: u32,
    /// When it is tried again after a failure.
    pub next_try: Option<Duration>,
    /// When it is looked at again although nothing happens, and what for.
    pub timer: Option<(Duration, &'static str)>,
}

/// A queue as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The number of keys that wait to be taken.
    pub waiting: usize,
    /// So long the one has been waiting that waits longest.
    pub oldest: Option<Duration>,
    /// The number of keys that are synced or held.
    pub processing: usize,
    /// The number of keys that failed last time.
    pub failing: usize,
}

impl Queue {
    /// The waits of a key.
    pub(crate) fn standing(&self, key: &Key) -> Standing {
        let (state, now) = (self.state(), Instant::now());
        let Some(entry) = state.keys.get(key) else { return Standing::default() };
        let Entry { queued, processing, dirty: _, failures, pause, timer, unseen: _ } = &**entry;
        let until = |due: Instant| due.saturating_duration_since(now);
        let next_try = pause.and_then(|pause| pause.retry);
        let is_own = |due: &Due| !due.purpose.is_empty() || next_try.is_none();
        Standing {
            queued: queued.as_ref().map(|queued| now - queued.since),
            processing: processing.as_ref().map(|processing| now - processing.since),
            failures: *failures,
            next_try: next_try.map(until),
            timer: timer.filter(is_own).map(|Due { at, purpose }| (until(at), purpose)),
        }
    }

    /// How the queue fares as a whole.
    pub(crate) fn summary(&self) -> Summary {
        let (state, now) = (self.state(), Instant::now());
        let since = state.keys.values().filter_map(|entry| entry.queued.as_ref()).map(|queued| queued.since);
        Summary {
            waiting: state.len(),
            oldest: since.min().map(|since| now - since),
            processing: state.keys.values().filter(|entry| entry.processing.is_some()).count(),
            failing: state.keys.values().filter(|entry| entry.failures > 0).count(),
        }
    }
}
