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

#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct LabelSet(Box<[(Text, Text)]>);

static SETS: LazyLock<Interner<LabelSet>> = LazyLock::new(Interner::new);

impl Labels {
    /// From pairs in any order; of two equal keys the later one counts.
    pub fn new<K: AsRef<str>, V: AsRef<str>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        let sorted: BTreeMap<Text, Text> =
            pairs.into_iter().map(|(key, value)| (Text::new(key.as_ref()), Text::new(value.as_ref()))).collect();
        Self(SETS.intern_owned(LabelSet(sorted.into_iter().collect())))
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        let pairs = &self.0.0;
        pairs.binary_search_by(|(candidate, _)| candidate.as_str().cmp(key)).ok().map(|at| pairs[at].1.as_str())
    }

    /// All pairs by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.0.is_empty()
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
        Ok(Self(SETS.intern_owned(LabelSet(pairs.unwrap_or_default().into_iter().collect()))))
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
    }
}
