//! Creations and deletions that a controller has not seen yet. Until it has, its cache is known to be stale.
//!
//! Left out: creations by identity; a pod's uid is known only after the call that creates it.
//!
//! Upstream: `ControllerExpectations` and `UIDTrackingControllerExpectations`, `pkg/controller/controller_utils.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Serialize;

use crate::api::object::{Key, Uid};
use crate::transport::clock::instant;

/// After this long an expectation no longer holds a sync back: its event is taken as lost.
///
/// Upstream: `ExpectationsTimeout`, `pkg/controller/controller_utils.go`.
pub const TIMEOUT: Duration = Duration::from_mins(5);

/// The expected creations and deletions of each key.
///
/// Deletions are tracked by uid, so that a pod's deletionTimestamp and its removal count once. (Upstream tracks them by
/// namespace and name, in spite of the name.) All methods may be called from any thread.
#[derive(Debug, Default)]
pub struct Expectations {
    by_key: Mutex<BTreeMap<Key, Expected>>,
}

#[derive(Debug)]
struct Expected {
    creations: usize,
    deleted: BTreeSet<Uid>,
    /// By the clock that nobody can set, as upstream: a step of the other one would end the wait for what has just been
    /// written.
    since: Instant,
}

/// The creations and deletions that a key waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Outstanding {
    /// Creations not seen yet.
    pub creations: usize,
    /// Deletions not seen yet.
    pub deletions: usize,
    /// When waiting ends even if they are never seen, by the wall clock of the observation. Nothing else wakes the key
    /// then.
    pub expires: Timestamp,
}

impl Outstanding {
    /// How long from `now` until waiting ends. Never longer than it lasts, even if the clock was set back.
    pub fn remaining(&self, now: Timestamp) -> Duration {
        Duration::try_from(now.duration_until(self.expires)).unwrap_or_default().min(TIMEOUT)
    }
}

/// `3 creations and 1 deletion`.
impl fmt::Display for Outstanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let (creations, deletions) = (self.creations, self.deletions);
        match (creations, deletions) {
            (_, 0) => write!(f, "{creations} creation{}", plural(creations)),
            (0, _) => write!(f, "{deletions} deletion{}", plural(deletions)),
            (_, _) => {
                write!(f, "{creations} creation{} and {deletions} deletion{}", plural(creations), plural(deletions))
            }
        }
    }
}

impl Expectations {
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Expected>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces what is expected of `key`. Call it before the writes: their events may come before their answers.
    pub fn expect(&self, key: &Key, creations: usize, deleted: impl IntoIterator<Item = Uid>) {
        let deleted = deleted.into_iter().collect();
        self.lock().insert(key.clone(), Expected { creations, deleted, since: instant() });
    }

    /// `count` creations were seen, or will never be because the calls failed or were not made.
    pub fn creations_observed(&self, key: &Key, count: usize) {
        if let Some(expected) = self.lock().get_mut(key) {
            expected.creations = expected.creations.saturating_sub(count);
        }
    }

    /// The deletion of `uid` was seen, or will never be because the call failed. Seeing it twice counts once, and one
    /// that was not expected does not count.
    pub fn deletion_observed(&self, key: &Key, uid: Uid) {
        if let Some(expected) = self.lock().get_mut(key) {
            expected.deleted.remove(&uid);
        }
    }

    /// The outstanding expectations; `None` if the cache can be trusted for this key.
    pub fn outstanding(&self, key: &Key, now: Timestamp) -> Option<Outstanding> {
        let by_key = self.lock();
        let Expected { creations, deleted, since } = by_key.get(key)?;
        let (creations, deletions) = (*creations, deleted.len());
        let left = TIMEOUT.saturating_sub(instant().saturating_duration_since(*since));
        let expires = now.checked_add(left).unwrap_or(Timestamp::MAX);
        let holds = creations + deletions > 0 && !left.is_zero();
        holds.then_some(Outstanding { creations, deletions, expires })
    }

    /// Forgets everything: what a restored etcd has lost is never seen.
    pub fn start_over(&self) {
        self.lock().clear();
    }

    pub fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn key() -> Key {
        Key::new("default", "web")
    }

    fn uid(number: u8) -> Uid {
        Uid::parse(&format!("00000000-0000-4000-8000-0000000000{number:02x}"))
    }

    /// The outstanding expectations at second 1, as text; `-` for none.
    fn outstanding(expectations: &Expectations) -> String {
        expectations.outstanding(&key(), at(1)).map_or("-".to_owned(), |outstanding| outstanding.to_string())
    }

    #[test]
    fn a_key_without_a_record_waits_for_nothing() {
        let expectations = Expectations::new();
        assert_eq!(outstanding(&expectations), "-");
        expectations.creations_observed(&key(), 1);
        expectations.deletion_observed(&key(), uid(1));
        assert_eq!(outstanding(&expectations), "-");
    }

    /// Upstream's `TestControllerExpectations`.
    #[test]
    fn creations_are_counted_down_from_any_thread() {
        let expectations = Expectations::new();
        expectations.expect(&key(), 20, []);
        std::thread::scope(|scope| {
            for _ in 0..19 {
                scope.spawn(|| expectations.creations_observed(&key(), 1));
            }
        });
        assert_eq!(outstanding(&expectations), "1 creation");
        expectations.creations_observed(&key(), 7);
        assert_eq!(outstanding(&expectations), "-");
        expectations.expect(&key(), 2, []);
        assert_eq!(outstanding(&expectations), "2 creations");
    }

    /// Upstream's `TestUIDExpectations`.
    #[test]
    fn a_deletion_counts_once_and_only_if_expected() {
        let expectations = Expectations::new();
        expectations.expect(&key(), 0, [uid(1), uid(2), uid(2)]);
        assert_eq!(outstanding(&expectations), "2 deletions");
        expectations.deletion_observed(&key(), uid(1));
        expectations.deletion_observed(&key(), uid(1));
        expectations.deletion_observed(&key(), uid(3));
        assert_eq!(outstanding(&expectations), "1 deletion");
        expectations.deletion_observed(&key(), uid(2));
        assert_eq!(outstanding(&expectations), "-");
    }

    #[test]
    fn the_next_expectation_replaces_all_of_the_last() {
        let expectations = Expectations::new();
        expectations.expect(&key(), 0, [uid(1)]);
        expectations.expect(&key(), 3, [uid(2)]);
        assert_eq!(outstanding(&expectations), "3 creations and 1 deletion");
        expectations.deletion_observed(&key(), uid(1));
        assert_eq!(outstanding(&expectations), "3 creations and 1 deletion");
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_after_five_minutes_however_the_clock_is_set() {
        let expectations = Expectations::new();
        expectations.expect(&key(), 1, []);
        tokio::time::advance(Duration::from_secs(299)).await;
        for now in [0, 299, 8 * 3600] {
            let outstanding = expectations.outstanding(&key(), at(now)).unwrap();
            assert_eq!((outstanding.expires, outstanding.remaining(at(now))), (at(now + 1), Duration::from_secs(1)));
            assert_eq!(outstanding.remaining(at(now + 2)), Duration::ZERO);
            assert_eq!(outstanding.remaining(at(now - 8 * 3600)), TIMEOUT);
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(expectations.outstanding(&key(), at(0)), None);
    }

    #[test]
    fn a_forgotten_key_starts_clean() {
        let expectations = Expectations::new();
        expectations.expect(&key(), 1, [uid(1)]);
        expectations.forget(&key());
        assert_eq!(outstanding(&expectations), "-");
        expectations.expect(&key(), 1, [uid(1)]);
        expectations.start_over();
        assert_eq!(outstanding(&expectations), "-");
    }
}
