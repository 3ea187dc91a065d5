//! In which namespaces objects are that need a resource, or of which names they are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::watch;

use crate::api::intern::Text;
use crate::api::object::Object;
use crate::following::cache::Change;

/// How many objects of each namespace need a resource; all clones are one. Objects that have no namespace are counted
/// under the empty one, or where each needs something else (a node its pods) under their names.
#[derive(Clone, Default)]
pub struct Need(Arc<watch::Sender<BTreeMap<Text, usize>>>);

impl Need {
    /// Counts one object more of this namespace, or of this name, until the returned [`Needed`] is dropped.
    #[must_use]
    pub fn hold(&self, namespace: &str) -> Needed {
        let namespace = Text::new(namespace);
        self.add(&namespace);
        Needed { need: self.clone(), namespace }
    }

    /// Counts an object under the place that it needs something of; none if it needs nothing.
    pub(crate) fn note<T: Object>(&self, change: &Change<'_, T>, place: impl Fn(&T) -> Option<Text>) {
        let (before, after) = match change {
            Change::Added(new) => (None, Some(*new)),
            Change::Updated { old, new } => (Some(*old), Some(*new)),
            Change::Deleted(last) => (Some(*last), None),
        };
        let place = |object: Option<&Arc<T>>| object.and_then(|object| place(object));
        let (before, after) = (place(before), place(after));
        if before != after {
            // Added first, so that the need as a whole does not end in between.
            if let Some(place) = after {
                self.add(&place);
            }
            if let Some(place) = before {
                self.remove(&place);
            }
        }
    }

    fn add(&self, namespace: &Text) {
        self.0.send_if_modified(|counts| {
            let count = counts.entry(namespace.clone()).or_default();
            *count += 1;
            *count == 1
        });
    }

    fn remove(&self, namespace: &Text) {
        self.0.send_if_modified(|counts| {
            let Some(count) = counts.get_mut(namespace) else { return false };
            *count -= 1;
            let is_last = *count == 0;
            if is_last {
                counts.remove(namespace);
            }
            is_last
        });
    }

    pub fn is_there(&self) -> bool {
        !self.0.borrow().is_empty()
    }

    pub(crate) fn is_of(&self, namespace: &Text) -> bool {
        self.0.borrow().contains_key(namespace)
    }

    pub(super) fn namespaces(&self) -> BTreeSet<Text> {
        self.0.borrow().keys().cloned().collect()
    }

    /// To notice that a namespace is in need for the first time, or is not any more.
    pub(super) fn subscribe(&self) -> watch::Receiver<BTreeMap<Text, usize>> {
        self.0.subscribe()
    }
}

/// One object's need, until this is dropped.
pub struct Needed {
    need: Need,
    namespace: Text,
}

impl Drop for Needed {
    fn drop(&mut self) {
        self.need.remove(&self.namespace);
    }
}
