//! A map that forgets what was not used for the longest time once it is full.
//!
//! Left out: keys. What is looked up is hashed by the caller, with a seed of this process: of 4096 entries two meet by
//! accident about once in 10^12 processes, and then two events share a count.

use std::collections::{BTreeMap, HashMap};

/// Holds at most `capacity` values; memory grows with use only.
pub(super) struct Lru<V> {
    capacity: usize,
    entries: HashMap<u64, Entry<V>>,
    /// The keys by their last use.
    uses: BTreeMap<u64, u64>,
    next_use: u64,
}

struct Entry<V> {
    used: u64,
    value: V,
}

impl<V> Lru<V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, entries: HashMap::new(), uses: BTreeMap::new(), next_use: 0 }
    }

    /// The value of this key, which is made if it isn't there; either way it is the latest used now.
    pub(super) fn entry(&mut self, key: u64, make: impl FnOnce() -> V) -> &mut V {
        let used = self.next_use;
        self.next_use += 1;
        if let Some(known) = self.entries.get(&key) {
            self.uses.remove(&known.used);
        } else if self.entries.len() >= self.capacity
            && let Some((_, oldest)) = self.uses.pop_first()
        {
            self.entries.remove(&oldest);
        }
        self.uses.insert(used, key);
        let entry = self.entries.entry(key).or_insert_with(|| Entry { used, value: make() });
        entry.used = used;
        &mut entry.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_the_longest_time_is_forgotten() {
        let mut lru = Lru::new(3);
        for key in [1, 2, 3, 1, 4, 5] {
            lru.entry(key, || key);
        }
        let mut known: Vec<u64> = lru.uses.values().copied().collect();
        known.sort_unstable();
        assert_eq!(known, [1, 4, 5]);
        assert_eq!(lru.entries.len(), 3);
        assert_eq!(*lru.entry(1, || 0), 1);
        assert_eq!(*lru.entry(2, || 0), 0);
    }
}
