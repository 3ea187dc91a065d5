//! The selectors of the targets of all autoscalers, as each was last read: two that have pods in common fight for them.
//!
//! An autoscaler whose metrics do not decide has none here, such as one whose target is at zero, as upstream.
//! Left out: anything that decides.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::object::Key;
use shared::api::selector::Selector;

/// The selectors by the key of the autoscaler.
#[derive(Default)]
pub struct Selectors(Mutex<BTreeMap<Key, Selector>>);

impl Selectors {
    /// Notes that of one autoscaler, and gives those of its whole namespace.
    pub fn note(&self, autoscaler: &Key, selector: Selector) -> Vec<(Key, Selector)> {
        let mut selectors = self.selectors();
        selectors.insert(autoscaler.clone(), selector);
        let of_namespace = selectors.iter().filter(|(key, _)| key.namespace() == autoscaler.namespace());
        of_namespace.map(|(key, selector)| (key.clone(), selector.clone())).collect()
    }

    /// Forgets that of one.
    pub fn forget(&self, autoscaler: &Key) {
        self.selectors().remove(autoscaler);
    }

    /// Forgets all.
    pub fn start_over(&self) {
        self.selectors().clear();
    }

    fn selectors(&self) -> MutexGuard<'_, BTreeMap<Key, Selector>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
