//! One key of a queue: where it is, what it waits out, and how it goes on after a sync.
//!
//! Left out: the lanes and timers of all keys.

use tokio::time::Instant;

use super::{Backoff, Cause, after};
use crate::working::decisions::Trigger;

#[derive(Default)]
pub(super) struct Entry {
    pub(super) queued: Option<Queued>,
    pub(super) processing: Option<Processing>,
    /// Added again while being processed.
    pub(super) dirty: Option<SyncRequest>,
    /// In a row, without those of extra syncs.
    pub(super) failures: u32,
    pub(super) pause: Option<Pause>,
    pub(super) timer: Option<Due>,
    /// The change that the timer was set for, unless a sync has begun since.
    pub(super) unseen: Option<Trigger>,
}

pub(super) struct Processing {
    pub(super) since: Instant,
    /// An event has led to it before the next try is due, which stays due if this fails.
    pub(super) is_extra: bool,
    pub(super) trigger: Option<Trigger>,
}

/// When a key is put into a lane although nothing happens, and what for.
#[derive(Clone, Copy)]
pub(super) struct Due {
    pub(super) at: Instant,
    pub(super) purpose: &'static str,
}

/// A wait after a sync, which an edit ends.
#[derive(Clone, Copy)]
pub(super) struct Pause {
    /// From then on an event leads to a sync.
    pub(super) events: Instant,
    /// When a key that failed is tried again.
    pub(super) retry: Option<Instant>,
}

impl Pause {
    pub(super) fn end(self) -> Instant {
        self.retry.map_or(self.events, |retry| self.events.min(retry))
    }

    pub(super) fn is_over(self, now: Instant) -> bool {
        self.events <= now && !self.awaits_retry(now)
    }

    pub(super) fn awaits_retry(self, now: Instant) -> bool {
        self.retry.is_some_and(|retry| retry > now)
    }
}

pub(super) struct Queued {
    pub(super) request: SyncRequest,
    pub(super) since: Instant,
}

/// A request to sync a key: its cause, and the change behind it.
#[derive(Clone)]
pub(super) struct SyncRequest {
    pub(super) cause: Cause,
    pub(super) trigger: Option<Trigger>,
}

impl SyncRequest {
    pub(super) fn event() -> Self {
        Self { cause: Cause::Event, trigger: None }
    }

    /// Of two requests an edit wins, and of the same cause the first.
    pub(super) fn or(self, later: Self) -> Self {
        if later.cause > self.cause { later } else { self }
    }
}

impl Entry {
    pub(super) fn is_idle(&self, now: Instant) -> bool {
        let Self { queued, processing, dirty: _, failures, pause, timer, unseen: _ } = self;
        let may_work = pause.is_none_or(|pause| pause.is_over(now));
        queued.is_none() && processing.is_none() && *failures == 0 && timer.is_none() && may_work
    }
}

/// How an entry goes on after a sync, and when its key is due again without anything happening to it.
impl Entry {
    pub(super) fn settle(&mut self, due: Option<Due>) -> Option<Due> {
        (self.failures, self.pause) = (0, None);
        due
    }

    pub(super) fn rest(&mut self, until: Instant) -> Option<Due> {
        (self.failures, self.pause) = (0, Some(Pause { events: until, retry: None }));
        None
    }

    pub(super) fn fail(&mut self, is_extra: bool, events: Instant, backoff: Backoff, now: Instant) -> Due {
        let still_due = self.pause.and_then(|pause| pause.retry).filter(|_| is_extra);
        let retry = still_due.unwrap_or_else(|| {
            self.failures = self.failures.saturating_add(1);
            after(now, backoff.after(self.failures))
        });
        self.pause = Some(Pause { events, retry: Some(retry) });
        Due { at: retry, purpose: "" }
    }
}
