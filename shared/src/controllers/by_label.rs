//! Objects found by a label that a selector asks for, so that no sync looks at every pod of its namespace.
//!
//! An object is found by those of its labels alone by which somebody has looked; there are few such keys. A new one sorts
//! the objects that are known again, once. Without a label the whole namespace is found.
//! Left out: keys that nobody asks for any more. They stay, and cost a place for each object that has such a label.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use crate::api::intern::Text;
use crate::api::object::Object;
use crate::following::cache::{Cache, IndexId, IndexValue};
use crate::following::informer::{Informer, InformerBuilder};

/// In place of a label, where there is none.
const ALL: (&str, &str) = ("", "");

/// The value under which something of a namespace is found that has this label, or selects by it.
pub fn label_value(namespace: &str, label: Option<(&str, &str)>) -> IndexValue {
    let (key, value) = label.unwrap_or(ALL);
    IndexValue::Text(Text::new(&format!("{namespace}/{key}={value}")))
}

/// The objects of a cache by their labels.
pub struct ByLabel<T> {
    objects: Arc<Cache<T>>,
    index: IndexId,
    /// The keys of the labels by which objects are found.
    keys: Arc<RwLock<BTreeSet<Text>>>,
}

impl<T: Object> ByLabel<T> {
    pub fn new(mut objects: InformerBuilder<T>) -> (Self, Informer<T>) {
        let keys = Arc::new(RwLock::new(BTreeSet::<Text>::new()));
        let known = Arc::clone(&keys);
        let index = objects.index(move |object, emit| {
            let (meta, known) = (object.meta(), known.read().unwrap_or_else(PoisonError::into_inner));
            for key in known.iter() {
                let label = if key.is_empty() { Some(ALL) } else { meta.labels.get(key).map(|value| (&**key, value)) };
                if label.is_some() {
                    emit(label_value(meta.namespace(), label));
                }
            }
        });
        let objects = objects.build();
        (Self { objects: objects.cache(), index, keys }, objects)
    }

    /// The objects of a namespace that have this label, by key; all of them without one.
    pub fn find(&self, namespace: &str, label: Option<(&str, &str)>) -> Vec<Arc<T>> {
        let (key, _) = label.unwrap_or(ALL);
        let is_known = self.keys.read().unwrap_or_else(PoisonError::into_inner).contains(key);
        if !is_known && self.keys.write().unwrap_or_else(PoisonError::into_inner).insert(Text::new(key)) {
            self.objects.reindex(self.index);
        }
        self.objects.by_index(self.index, &label_value(namespace, label))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::resource::PODS;
    use crate::following::cache::Part;
    use crate::testing::pod;
    use crate::working::control::Written;

    #[test]
    fn objects_are_found_by_labels_whether_they_came_before_or_after_the_first_look() {
        let (pods, informer) = ByLabel::new(InformerBuilder::<Written>::of(PODS));
        let store = |name: &str, labels: &[(&str, &str)]| {
            let pod = labels.iter().fold(pod(name), |pod, (key, value)| pod.label(key, value));
            informer.cache().apply(Part::default(), &pod.build(), |_| {});
        };
        let found = |label| {
            let found = pods.find("default", label);
            found.iter().map(|pod| pod.meta().name().to_owned()).collect::<Vec<_>>()
        };
        store("a", &[("app", "web"), ("tier", "front")]);
        store("b", &[("app", "db")]);
        assert_eq!(found(Some(("app", "web"))), ["a"]);
        store("c", &[("app", "web")]);
        store("d", &[]);
        assert_eq!(found(Some(("app", "web"))), ["a", "c"]);
        assert_eq!(found(Some(("tier", "front"))), ["a"]);
        assert_eq!(found(None), ["a", "b", "c", "d"]);
        store("a", &[("app", "db")]);
        assert_eq!(found(Some(("app", "web"))), ["c"]);
        assert_eq!(found(Some(("app", "other"))), [""; 0]);
        assert!(pods.find("other", None).is_empty());
    }
}
