//! Sets of indexes of an Indexed Job.
//!
//! Upstream: `pkg/controller/job/indexed_job_utils.go`.

use std::collections::BTreeSet;
use std::fmt;

/// A set of indexes: intervals, both ends included, in ascending order and with gaps between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderedIntervals(Vec<Interval>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval {
    first: i32,
    last: i32,
}

impl OrderedIntervals {
    /// Reads `0,2-4`. Invalid parts and indexes from `completions` on are skipped.
    /// Upstream: `parseIndexesFromString`.
    pub fn parse(text: &str, completions: i32) -> Self {
        let mut intervals: Vec<Interval> = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            // As upstream, with numbers that are larger than any index: one that begins too high ends the text.
            let mut ends = part.split('-').map(str::parse::<i64>);
            let (first, last) = match (ends.next(), ends.next()) {
                (Some(Ok(first)), None) => (first, first),
                (Some(Ok(first)), Some(Ok(last))) => (first, last),
                (_, _) => continue,
            };
            if first >= i64::from(completions) {
                break;
            }
            let last = last.min(i64::from(completions) - 1);
            if let (Ok(first), Ok(last)) = (i32::try_from(first), i32::try_from(last))
                && first <= last
            {
                intervals.push(Interval { first, last });
            }
        }
        Self::default().merged(intervals.into_iter())
    }

    /// Adds indexes; negative ones are skipped.
    ///
    /// Upstream: `withOrderedIndexes` and `merge`.
    #[must_use]
    pub fn with(&self, indexes: impl IntoIterator<Item = i32>) -> Self {
        self.merged(indexes.into_iter().map(|index| Interval { first: index, last: index }))
    }

    /// The union of both sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.merged(other.0.iter().copied())
    }

    fn merged(&self, others: impl Iterator<Item = Interval>) -> Self {
        let mut all: Vec<Interval> = self.0.iter().copied().chain(others).collect();
        all.sort_unstable_by_key(|interval| interval.first);
        let mut merged: Vec<Interval> = Vec::new();
        for interval in all {
            match merged.last_mut() {
                Some(before) if interval.first <= before.last.saturating_add(1) => {
                    before.last = before.last.max(interval.last);
                }
                Some(_) | None => merged.push(interval),
            }
        }
        Self(merged)
    }

    /// Upstream: `has`.
    pub fn has(&self, index: i32) -> bool {
        let after = self.0.partition_point(|interval| interval.first <= index);
        after.checked_sub(1).is_some_and(|at| self.0[at].last >= index)
    }

    /// The number of indexes.
    ///
    /// Upstream: `total`.
    pub fn total(&self) -> i64 {
        let length = |interval: &Interval| (i64::from(interval.last) - i64::from(interval.first) + 1).max(0);
        self.0.iter().map(length).sum()
    }

    pub fn common(&self, other: &Self) -> i64 {
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut common = 0;
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            common += (i64::from(a.last.min(b.last)) - i64::from(a.first.max(b.first)) + 1).max(0);
            if a.last <= b.last {
                left.next()
            } else {
                right.next()
            };
        }
        common
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// As the API has it: `0,2,4-6`, but two adjacent indexes as `0,1`.
///
/// Upstream: `String`.
impl fmt::Display for OrderedIntervals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Interval { first, last }) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match i64::from(*last) - i64::from(*first) {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

/// The lowest `count` indexes below `completions` that are neither done nor taken.
///
/// Upstream: `firstPendingIndexes`.
pub fn first_pending_indexes(
    count: usize,
    completions: i32,
    done: &OrderedIntervals,
    taken: &BTreeSet<i32>,
) -> Vec<i32> {
    let end = Interval { first: completions, last: completions };
    let mut next = 0;
    let gaps = done.0.iter().chain(std::iter::once(&end)).flat_map(|interval| {
        let gap = next..interval.first.min(completions);
        next = interval.last.saturating_add(1);
        gap
    });
    gaps.filter(|index| !taken.contains(index)).take(count).collect()
}
