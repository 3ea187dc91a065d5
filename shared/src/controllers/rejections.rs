//! Back-off for pods that their nodes reject: how many replacements may be made now, and when more may.
//!
//! A node ends a pod that it does not admit before any container starts. A controller that replaces it at once makes
//! hundreds of pods a minute, all of which fail the same way. So the first few rejections in a row cost nothing, and
//! then replacements wait: longer each time that one which has waited is rejected too, and few at a time. A pod of the
//! template that runs ends the row, and so does some time without a rejection. All of this is a value: it knows no
//! cache and no clock.
//! Left out: how a controller finds rejected pods and remembers them, which is its own.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::api::intern::Text;
use crate::api::time::Time;
use crate::transport::clock::left_of;

/// The reason of the event that tells of the beginning of a back-off.
pub const REJECTED_POD_BACKOFF: &str = "RejectedPodBackoff";
/// The purpose of the timer while replacements wait.
pub const HELD_BACK: &str = "replacements of rejected pods";
/// After this long without another one, rejections are forgotten: twice the longest delay, as upstream's back-offs are.
pub const FORGOTTEN_AFTER: Duration = Duration::from_secs(2 * LONGEST_SECONDS);
/// So many rejections in a row cost nothing.
pub const FREE: usize = 3;
/// The longest delay.
const LONGEST_SECONDS: u64 = 30;
/// So many replacements are under way at a time: whether nodes still reject them is seen by a few.
const TRIALS: usize = 3;
/// So many rows are kept of one owner: the reasons come from outside.
const ROWS_MAX: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The template that it was made from; `""` where its owner has one template at a time.
    pub template: Text,
    /// The node's reason, such as `OutOfcpu`.
    pub reason: Text,
    pub created: Option<Time>,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = &self.reason;
        write!(
            f,
            "Nodes reject the pods one after the other ({reason}): replacements wait, 1s at first and at most \
             {LONGEST_SECONDS}s"
        )
    }
}

/// The known rejections of one owner's pods: a row for each template and reason. None is no reason to wait.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rejections(Vec<Row>);

#[derive(Clone, Debug, PartialEq)]
struct Row {
    template: Text,
    reason: Text,
    count: usize,
    /// How many delays they have cost.
    delays: u32,
    /// When the last delay began.
    delayed: Timestamp,
    /// When the last one was seen.
    last: Timestamp,
    /// When the newest of the pods was created.
    newest: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    pub pods: usize,
    pub reason: Text,
    pub delay_seconds: u64,
    /// Its end; none once it is over, where they wait for those that are under way.
    pub until: Option<Timestamp>,
}

impl Rejections {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Counts a rejection that was not seen before. Gives whether a back-off begins with it.
    ///
    /// One that is seen during a delay is of a pod from before it, so it costs no longer delay.
    pub fn note(&mut self, rejection: &Rejection, now: Timestamp) -> bool {
        let known = self.0.iter().position(|row| row.is_of(rejection));
        let at = known.unwrap_or_else(|| self.begin(rejection, now));
        let row = &mut self.0[at];
        row.count = row.count.saturating_add(1);
        row.last = now;
        row.newest = row.newest.max(rejection.created);
        if row.count <= FREE || row.left(now).is_some() {
            return false;
        }
        row.delays = row.delays.saturating_add(1);
        row.delayed = now;
        row.delays == 1
    }

    /// Adds a row, in the place of the one that is quiet for longest if there are many.
    fn begin(&mut self, rejection: &Rejection, now: Timestamp) -> usize {
        let quietest = (0..self.0.len()).min_by_key(|at| self.0[*at].last);
        if let Some(at) = quietest.filter(|_| self.0.len() >= ROWS_MAX) {
            self.0.remove(at);
        }
        let Rejection { template, reason, created } = rejection.clone();
        self.0.push(Row { template, reason, count: 0, delays: 0, delayed: now, last: now, newest: created });
        self.0.len() - 1
    }

    pub fn forget(&mut self, runs: impl Fn(&str) -> Option<Time>, now: Timestamp) {
        self.0.retain(|row| row.remembered(now).is_some() && runs(&row.template) <= row.newest);
    }

    /// How many of the `missing` pods of a template may be made now, and the others. `under_way` is how many there are
    /// that do not run yet and may be rejected: those that the scheduler has found no node for never are.
    pub fn allow(&self, template: &str, missing: usize, under_way: usize, now: Timestamp) -> (usize, Option<Held>) {
        let of_template = self.delayed().filter(|row| *row.template == *template);
        let last = of_template.max_by_key(|row| (row.left(now), row.delayed));
        let Some(row) = last else { return (missing, None) };
        let left = row.left(now);
        let allowed = if left.is_some() { 0 } else { TRIALS.saturating_sub(under_way).min(missing) };
        let pods = missing - allowed;
        let held = Held {
            pods,
            reason: row.reason.clone(),
            delay_seconds: row.delay_seconds(),
            until: left.map(|left| now.checked_add(left).unwrap_or(Timestamp::MAX)),
        };
        (allowed, (pods > 0).then_some(held))
    }

    /// Whether replacements wait for the end of a delay.
    pub fn is_delaying(&self, now: Timestamp) -> bool {
        self.delayed().any(|row| row.left(now).is_some())
    }

    /// How long from `now` until more may be made, should nothing happen: a delay ends, or a row is forgotten.
    pub fn wait(&self, now: Timestamp) -> Option<Duration> {
        self.delayed().map(|row| row.left(now).or_else(|| row.remembered(now)).unwrap_or_default()).min()
    }

    fn delayed(&self) -> impl Iterator<Item = &Row> {
        self.0.iter().filter(|row| row.delays > 0)
    }
}

impl Row {
    fn is_of(&self, rejection: &Rejection) -> bool {
        let Rejection { template, reason, created: _ } = rejection;
        (&self.template, &self.reason) == (template, reason)
    }

    /// 1, 2, 4, … seconds; 0 before the first delay.
    fn delay_seconds(&self) -> u64 {
        let doublings = self.delays.checked_sub(1);
        doublings.map_or(0, |doublings| 2_u64.checked_pow(doublings).unwrap_or(LONGEST_SECONDS).min(LONGEST_SECONDS))
    }

    /// What is left of the last delay.
    fn left(&self, now: Timestamp) -> Option<Duration> {
        left_of(Duration::from_secs(self.delay_seconds()), self.delayed, now)
    }

    /// For how long it is remembered.
    fn remembered(&self, now: Timestamp) -> Option<Duration> {
        left_of(FORGOTTEN_AFTER, self.last, now)
    }
}

/// `2 held back for 4s until 2026-01-01T12:00:04Z, since nodes reject them (OutOfcpu)`.
impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pods, reason, delay_seconds, until } = self;
        match until {
            Some(until) => write!(f, "{pods} held back for {delay_seconds}s until {}", Time::of(*until)),
            None => write!(f, "{pods} held back until one of those under way runs"),
        }?;
        write!(f, ", since nodes reject them ({reason})")
    }
}

#[cfg(test)]
mod tests;
