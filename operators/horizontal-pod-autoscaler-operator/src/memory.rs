//! What is remembered of each autoscaler between syncs: its recommendations and scalings, which windows and policies
//! look back on, and the selector of its target.
//!
//! A restart loses all of it, as upstream. The replicas that the target asks for then count as the first
//! recommendation, so that nothing is scaled down before a whole window has passed.
//!
//! The history has monotonic times, as upstream's: no step of the wall clock ends a window or a period.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use shared::api::object::Key;
use shared::api::selector::Selector;
use shared::following::cache::Cache;

use crate::objects::{Behavior, HorizontalPodAutoscaler};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// None before its scale was first read.
    pub recommendations: Option<Vec<Recommendation>>,
    pub ups: Vec<ScaleEvent>,
    pub downs: Vec<ScaleEvent>,
}

/// A number of replicas that the metrics asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recommendation {
    pub replicas: i32,
    pub at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleEvent {
    /// By how many replicas; never negative.
    pub change: i32,
    pub at: Instant,
}

impl History {
    /// Adds a change, and drops those that no policy looks back on.
    ///
    /// Upstream: `storeScaleEvent`, `pkg/controller/podautoscaler/horizontal.go`, which reuses the place of one
    /// outdated event and keeps the others until there is a new one.
    pub fn add_change(&mut self, behavior: &Behavior, (from, to): (i32, i32), now: Instant) {
        let (events, rules) =
            if to > from { (&mut self.ups, &behavior.scale_up) } else { (&mut self.downs, &behavior.scale_down) };
        let period = Duration::from_secs(u64::try_from(rules.longest_period_seconds()).unwrap_or_default());
        events.retain(|event| now.saturating_duration_since(event.at) <= period);
        let change = i32::try_from(to.abs_diff(from)).unwrap_or(i32::MAX);
        events.push(ScaleEvent { change, at: now });
    }
}

pub struct Memory {
    autoscalers: Arc<Cache<HorizontalPodAutoscaler>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    histories: HashMap<Key, History>,
    /// Only of autoscalers whose metrics decide, as upstream: not of one whose target is at zero.
    selectors: BTreeMap<Key, Selector>,
}

impl Memory {
    pub fn new(autoscalers: Arc<Cache<HorizontalPodAutoscaler>>) -> Self {
        Self { autoscalers, state: Mutex::default() }
    }

    /// Whether this autoscaler still exists. It may have been deleted while a request was awaited, and nobody would
    /// forget again what is remembered after that.
    pub fn knows(&self, autoscaler: &HorizontalPodAutoscaler) -> bool {
        let known = self.autoscalers.get(&autoscaler.metadata.key);
        known.is_some_and(|known| known.metadata.uid == autoscaler.metadata.uid)
    }

    pub fn history(&self, autoscaler: &Key) -> History {
        self.state().histories.get(autoscaler).cloned().unwrap_or_default()
    }

    pub fn set_recommendations(&self, autoscaler: &HorizontalPodAutoscaler, recommendations: Vec<Recommendation>) {
        self.change(autoscaler, |history| history.recommendations = Some(recommendations));
    }

    pub fn add_change(&self, autoscaler: &HorizontalPodAutoscaler, change: (i32, i32), now: Instant) {
        if let Some(behavior) = &autoscaler.behavior {
            self.change(autoscaler, |history| history.add_change(behavior, change, now));
        }
    }

    /// Changes the history of an autoscaler that still exists, which is asked under the lock of its deletion.
    fn change(&self, autoscaler: &HorizontalPodAutoscaler, change: impl FnOnce(&mut History)) {
        let mut state = self.state();
        if self.knows(autoscaler) {
            change(state.histories.entry(autoscaler.metadata.key.clone()).or_default());
        }
    }

    /// Sets the selector of its target, and returns all selectors of its namespace.
    ///
    /// Upstream: `validateAndParseSelector`, `pkg/controller/podautoscaler/horizontal.go`.
    pub fn note_selector(&self, autoscaler: &HorizontalPodAutoscaler, selector: Selector) -> Vec<(Key, Selector)> {
        let (own, mut state) = (&autoscaler.metadata.key, self.state());
        if self.knows(autoscaler) {
            state.selectors.insert(own.clone(), selector);
        }
        let of_namespace = state.selectors.iter().filter(|(key, _)| key.namespace() == own.namespace());
        of_namespace.map(|(key, selector)| (key.clone(), selector.clone())).collect()
    }

    pub fn forget(&self, autoscaler: &Key) {
        let mut state = self.state();
        state.histories.remove(autoscaler);
        state.selectors.remove(autoscaler);
    }

    pub fn start_over(&self) {
        *self.state() = State::default();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
