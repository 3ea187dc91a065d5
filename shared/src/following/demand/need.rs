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

    pub(crate) fn note<T: Object>(&self, change: &Change<'_, T>, needs: impl Fn(&T) -> bool) {
        self.note_under(change.latest().meta().namespace(), change, needs);
    }

    /// As [`Self::note`], each object under its name.
    pub(crate) fn note_by_name<T: Object>(&self, change: &Change<'_, T>, needs: impl Fn(&T) -> bool) {
        self.note_under(change.latest().meta().name(), change, needs);
    }

    fn note_under<T: Object>(&self, place: &str, change: &Change<'_, T>, needs: impl Fn(&T) -> bool) {
        let (before, after) = match change {
            Change::Added(new) => (None, Some(*new)),
            Change::Updated { old, new } => (Some(*old), Some(*new)),
            Change::Deleted(last) => (Some(*last), None),
        };
        let counts = |object: Option<&Arc<T>>| object.is_some_and(|object| needs(object));
        let place = Text::new(place);
        match (counts(before), counts(after)) {
            (false, true) => self.add(&place),
            (true, false) => self.remove(&place),
            (true, true) | (false, false) => {}
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
