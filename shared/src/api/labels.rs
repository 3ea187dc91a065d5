//! Labels: a sorted set of key-value pairs, shared between all objects that carry the same ones.
//!
//! Left out: matching, which is [`crate::api::selector`]'s.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::api::intern::{Interner, Text};

/// The labels of one object, or of a pod template; sorted by key; one allocation per distinct set.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(Arc<LabelSet>);

/// Nodes, and pods of StatefulSets, all have labels of their own, but under the same keys.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct LabelSet {
    keys: Arc<[Text]>,
    values: Box<[Text]>,
}

static KEYS: LazyLock<Interner<[Text]>> = LazyLock::new(Interner::new);
static SETS: LazyLock<Interner<LabelSet>> = LazyLock::new(Interner::new);

impl Labels {
    /// From pairs in any order; of two equal keys the later one counts.
    pub fn new<K: AsRef<str>, V: AsRef<str>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        Self::sorted(
            pairs.into_iter().map(|(key, value)| (Text::new(key.as_ref()), Text::new(value.as_ref()))).collect(),
        )
    }

    fn sorted(pairs: BTreeMap<Text, Text>) -> Self {
        let (keys, values): (Vec<Text>, Vec<Text>) = pairs.into_iter().unzip();
        Self(SETS.intern_owned(LabelSet { keys: KEYS.intern(&keys[..]), values: values.into() }))
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        let LabelSet { keys, values } = &*self.0;
        let at = keys.binary_search_by(|candidate| candidate.as_str().cmp(key)).ok()?;
        values.get(at).map(Text::as_str)
    }

    /// All pairs by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let LabelSet { keys, values } = &*self.0;
        keys.iter().map(Text::as_str).zip(values.iter().map(Text::as_str))
    }

    pub fn is_empty(&self) -> bool {
        self.0.keys.is_empty()
    }

    /// Whether each pair of `other` is here too.
    pub fn contains_all(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || other.iter().all(|(key, value)| self.get(key) == Some(value))
    }

    /// These labels and one more, which replaces one of the same key.
    #[must_use]
    pub fn with(&self, key: &str, value: &str) -> Self {
        Self::new(self.iter().chain(std::iter::once((key, value))))
    }

    /// These labels without `key`.
    #[must_use]
    pub fn without(&self, key: &str) -> Self {
        Self::new(self.iter().filter(|(candidate, _)| *candidate != key))
    }
}

impl Default for Labels {
    fn default() -> Self {
        Self::new(std::iter::empty::<(&str, &str)>())
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Serialize for Labels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pairs: Option<BTreeMap<Text, Text>> = Deserialize::deserialize(deserializer)?;
        Ok(Self::sorted(pairs.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_allocation_per_distinct_set() {
        let first: Labels = serde_json::from_str(r#"{"b":"2","a":"1"}"#).unwrap();
        let second = Labels::new([("a", "1"), ("b", "2")]);
        assert!(Arc::ptr_eq(&first.0, &second.0));
        assert_eq!(first.get("b"), Some("2"));
        assert_eq!(first.without("b").with("a", "3").get("a"), Some("3"));
        assert!(first.contains_all(&Labels::new([("a", "1")])));
        assert!(!first.contains_all(&Labels::new([("a", "2")])));
        let other = Labels::new([("a", "1"), ("b", "3")]);
        assert!(Arc::ptr_eq(&first.0.keys, &other.0.keys), "and one for distinct keys");
    }
}
