//! What each autoscaler recommended of late, and how its target was scaled: what stabilization windows and the periods
//! of policies look back on.
//!
//! A kill loses this, as upstream. Then the number that the target asks for counts as the first recommendation, so that
//! nothing is scaled down before a whole window has been seen. Left out: what is older than any window.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use shared::api::object::Key;

use crate::objects::Behavior;

/// The history of one autoscaler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Its recommendations; none before its scale was first read.
    pub recommendations: Option<Vec<Recommendation>>,
    /// When its target got more replicas.
    pub ups: Vec<ScaleEvent>,
    /// When it got fewer.
    pub downs: Vec<ScaleEvent>,
}

/// A number of replicas that the metrics asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recommendation {
    /// The number.
    pub replicas: i32,
    /// When.
    pub at: Timestamp,
}

/// A change of the number of replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleEvent {
    /// By how many.
    pub change: i32,
    /// When.
    pub at: Timestamp,
}

impl History {
    /// Adds a change that was made, and drops those that no policy looks back on.
    ///
    /// Upstream: `storeScaleEvent`, `pkg/controller/podautoscaler/horizontal.go`. There one that is too old gives its
    /// place to a new one, and the others stay until there is a new one.
    pub fn add_change(&mut self, behavior: &Behavior, (from, to): (i32, i32), now: Timestamp) {
        let (events, rules) =
            if to > from { (&mut self.ups, &behavior.scale_up) } else { (&mut self.downs, &behavior.scale_down) };
        let period = u64::try_from(rules.longest_period_seconds()).unwrap_or_default();
        let cutoff = before(now, Duration::from_secs(period));
        events.retain(|event| event.at >= cutoff);
        let change = i32::try_from(to.abs_diff(from)).unwrap_or(i32::MAX);
        events.push(ScaleEvent { change, at: now });
    }
}

/// The instant so long before another.
pub fn before(now: Timestamp, time: Duration) -> Timestamp {
    now.checked_sub(time).unwrap_or(Timestamp::MIN)
}

/// The histories of all autoscalers.
#[derive(Default)]
pub struct Histories(Mutex<HashMap<Key, History>>);

impl Histories {
    /// That of one autoscaler.
    pub fn of(&self, autoscaler: &Key) -> History {
        self.histories().get(autoscaler).cloned().unwrap_or_default()
    }

    /// Notes the recommendations that count from now on.
    pub fn recommended(&self, autoscaler: &Key, recommendations: Vec<Recommendation>) {
        self.histories().entry(autoscaler.clone()).or_default().recommendations = Some(recommendations);
    }

    /// Notes a change that was made.
    pub fn scaled(&self, autoscaler: &Key, behavior: &Behavior, change: (i32, i32), now: Timestamp) {
        self.histories().entry(autoscaler.clone()).or_default().add_change(behavior, change, now);
    }

    /// Forgets one.
    pub fn forget(&self, autoscaler: &Key) {
        self.histories().remove(autoscaler);
    }

    /// Forgets all.
    pub fn start_over(&self) {
        self.histories().clear();
    }

    fn histories(&self) -> MutexGuard<'_, HashMap<Key, History>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
