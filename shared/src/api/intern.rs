//! Shared strings and values: a thousand pods of one ReplicaSet hold one copy of their namespace, node, labels and owner.
//!
//! Left out: removal on drop. An entry nobody else holds any more is swept when the table has doubled since the last
//! sweep, so the table never holds more than twice what is in use.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A table of values of one type, each kept once.
pub struct Interner<T: ?Sized + Eq + Hash> {
    table: Mutex<Table<T>>,
}

struct Table<T: ?Sized> {
    entries: HashSet<Arc<T>>,
    sweep_at: usize,
}

impl<T: ?Sized + Eq + Hash> Interner<T> {
    const FIRST_SWEEP: usize = 256;

    pub fn new() -> Self {
        Self { table: Mutex::new(Table { entries: HashSet::new(), sweep_at: Self::FIRST_SWEEP }) }
    }

    /// Gives the one shared copy of `value`, which is stored if it is new.
    pub fn intern<Q>(&self, value: &Q) -> Arc<T>
    where
        Q: ?Sized + Eq + Hash,
        Arc<T>: Borrow<Q> + for<'a> From<&'a Q>,
    {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = table.entries.get(value) {
            return Arc::clone(known);
        }
        if table.entries.len() >= table.sweep_at {
            table.entries.retain(|entry| Arc::strong_count(entry) > 1);
            table.sweep_at = (table.entries.len() * 2).max(Self::FIRST_SWEEP);
        }
        let shared: Arc<T> = Arc::from(value);
        table.entries.insert(Arc::clone(&shared));
        shared
    }

    /// As [`Self::intern`], for a value that is already built.
    pub fn intern_owned(&self, value: T) -> Arc<T>
    where
        T: Sized,
    {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = table.entries.get(&value) {
            return Arc::clone(known);
        }
        if table.entries.len() >= table.sweep_at {
            table.entries.retain(|entry| Arc::strong_count(entry) > 1);
            table.sweep_at = (table.entries.len() * 2).max(Self::FIRST_SWEEP);
        }
        let shared = Arc::new(value);
        table.entries.insert(Arc::clone(&shared));
        shared
    }
}

impl<T: ?Sized + Eq + Hash> Default for Interner<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// A short string that many objects repeat (a namespace, a node, a label): one allocation for the whole process.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Arc<str>);

static TEXTS: LazyLock<Interner<str>> = LazyLock::new(Interner::new);

impl Text {
    pub fn new(text: &str) -> Self {
        Self(TEXTS.intern(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::new("")
    }
}

impl Deref for Text {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Text;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text::new(text))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_are_one_allocation() {
        let (first, second) = (Text::new("kube-system"), Text::new("kube-system"));
        assert!(Arc::ptr_eq(&first.0, &second.0));
    }

    #[test]
    fn what_nobody_holds_is_swept() {
        let interner: Interner<str> = Interner::new();
        let held = interner.intern("held");
        for i in 0..10_000 {
            interner.intern(format!("dropped-{i}").as_str());
        }
        let table = interner.table.lock().unwrap();
        assert!(table.entries.len() <= Interner::<str>::FIRST_SWEEP + 1, "{} entries", table.entries.len());
        assert!(table.entries.contains(&held));
    }
}
