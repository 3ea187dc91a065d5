//! Throttle of statuses: while pods start by the hundred, each one changes the counts of its owner, and every watcher of
//! the owner receives each status.
//!
//! A status with nothing new but counts on the way to the end state waits until a second after the object's last one.
//! Everything else is written at once. Which counts are on the way is each controller's rule.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::api::object::Key;
use crate::transport::clock::left_of;

/// The purpose of the timer of a status that waits.
pub const NEXT_STATUS: &str = "the next status";

/// The least time between an object's last status and one with nothing new but counts.
const INTERVAL: Duration = Duration::from_secs(1);
/// Entries older than the interval are dropped once there are this many.
const MANY: usize = 1024;

/// When statuses were last written, by object.
#[derive(Debug, Default)]
pub struct StatusThrottle(Mutex<BTreeMap<Key, Timestamp>>);

impl StatusThrottle {
    /// How long a status with nothing new but counts waits. None if it may be written now.
    pub fn wait(&self, key: &Key, now: Timestamp) -> Option<Duration> {
        let written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        written.get(key).and_then(|at| left_of(INTERVAL, *at, now))
    }

    pub fn wrote(&self, key: &Key, now: Timestamp) {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if written.len() >= MANY {
            written.retain(|_, at| left_of(INTERVAL, *at, now).is_some());
        }
        written.insert(key.clone(), now);
    }

    pub fn forget(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::testing::NOW;

    fn later(millis: i64) -> Timestamp {
        NOW + SignedDuration::from_millis(millis)
    }

    #[test]
    fn counts_wait_until_a_second_after_the_last_status() {
        let (throttle, key) = (StatusThrottle::default(), Key::new("default", "web"));
        assert_eq!(throttle.wait(&key, NOW), None, "no status yet");
        throttle.wrote(&key, NOW);
        assert_eq!(throttle.wait(&key, later(300)), Some(Duration::from_millis(700)));
        assert_eq!(throttle.wait(&Key::new("default", "other"), later(300)), None, "another object");
        throttle.wrote(&key, later(500));
        assert_eq!(throttle.wait(&key, later(1000)), Some(Duration::from_millis(500)));
        assert_eq!(throttle.wait(&key, later(1500)), None);
        assert_eq!(throttle.wait(&key, later(-1)), None, "the clock was set back");
        throttle.forget(&key);
        assert_eq!(throttle.wait(&key, later(1000)), None, "the object is gone");
    }

    #[test]
    fn old_entries_are_dropped() {
        let throttle = StatusThrottle::default();
        for object in 0..MANY {
            throttle.wrote(&Key::new("default", &object.to_string()), NOW);
        }
        throttle.wrote(&Key::new("default", "last"), later(1000));
        assert_eq!(throttle.0.lock().unwrap().len(), 1);
    }
}
