//! The state of a queue for explanations: of one key, and of the whole queue.
//!
//! Left out: metrics, which the queue's observer gets as they happen.

use std::time::Duration;

use tokio::time::Instant;

use super::Queue;
use super::entry::{Due, Entry};
use crate::api::object::Key;

/// State of one key; times are relative to now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// How long it has waited to be taken.
    pub queued: Option<Duration>,
    /// How long it has been synced or held.
    pub processing: Option<Duration>,
    pub failures: u32,
    /// Time until the retry after a failure.
    pub next_try: Option<Duration>,
    /// Time until the next planned sync, and its purpose.
    pub timer: Option<(Duration, &'static str)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub waiting: usize,
    /// Wait of the oldest of them.
    pub oldest: Option<Duration>,
    pub processing: usize,
    /// Keys whose last sync failed.
    pub failing: usize,
}

impl Queue {
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

    /// How long keys have waited while no sync ended.
    pub(crate) fn stalled(&self) -> Duration {
        let (state, now) = (self.state(), Instant::now());
        let first = [state.edits.front(), state.events.front()].into_iter().flatten();
        let since = first.filter_map(|key| Some(state.keys.get(key)?.queued.as_ref()?.since)).min();
        since.map_or(Duration::ZERO, |since| now - state.ended.map_or(since, |ended| ended.max(since)))
    }

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
