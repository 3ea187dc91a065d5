//! Index sets, waits after failures, conditions. Upstream: `indexed_job_utils_test.go`, `backoff_utils_test.go` and
//! `TestEnsureJobConditions`, `pkg/controller/job`.

use std::collections::BTreeSet;

use job_operator::memory::backoff::BackoffRecord;
use job_operator::objects::status::{JobCondition, JobStatus};
use job_operator::plan::indexed::{OrderedIntervals, first_pending_indexes};
use proptest::prelude::*;
use shared::api::time::Time;
use shared::testing::{NOW, ago};

/// Upstream: `TestParseIndexesFromString` and `TestCalculateSucceededIndexes`.
#[test]
fn index_sets_read_as_they_are_written() {
    let parse = |text: &str, completions, expected: &str| {
        assert_eq!(OrderedIntervals::parse(text, completions).to_string(), expected, "{text:?} of {completions}");
    };
    parse("", 10, "");
    parse("0", 10, "0");
    parse("0,1", 10, "0,1");
    parse("0-1", 10, "0,1");
    parse("0,1,3-5,7", 10, "0,1,3-5,7");
    parse("0-2,3", 10, "0-3");
    parse("0,1-foo,bar", 10, "0");
    parse("-3,5", 10, "5");
    parse("0-5,8-10", 8, "0-5");
    parse("0-5,8-10", 10, "0-5,8,9");
    parse("3", 2, "");
    parse("1-2-3", 10, "1,2");
    parse("0,99999999999,2", 10, "0");
    parse("3-99999999999", 10, "3-9");
    parse("99999999999999999999,2", 10, "2");
    parse("0-2147483647", i32::MAX, "0-2147483646");
    parse("5-2,7,7,1-3,2-4", 10, "1-4,7");
    parse("0,1", 0, "");
    parse("0", -1, "");
}

#[test]
fn pending_indexes_are_the_lowest_that_nobody_has() {
    let pending = |count, completions, done: &str, taken: &[i32]| {
        let taken: BTreeSet<i32> = taken.iter().copied().collect();
        first_pending_indexes(count, completions, &OrderedIntervals::parse(done, completions), &taken)
    };
    assert_eq!(pending(0, 10, "", &[]), [0_i32; 0]);
    assert_eq!(pending(3, 10, "", &[]), [0, 1, 2]);
    assert_eq!(pending(5, 20, "2-5,9", &[8]), [0, 1, 6, 7, 10]);
    assert_eq!(pending(9, 4, "1", &[]), [0, 2, 3]);
    assert_eq!(pending(9, 4, "0-3", &[]), [0_i32; 0]);
    assert_eq!(pending(2, i32::MAX, "0-1000000000", &[1_000_000_001]), [1_000_000_002, 1_000_000_003]);
}

proptest! {
    #[test]
    fn of_any_text_comes_a_set_of_indexes(text in "[0-9,x+-]{0,30}", completions in -2..90_i32) {
        let set = OrderedIntervals::parse(&text, completions);
        let counted = (0..90).filter(|index| set.has(*index)).count();
        prop_assert_eq!(set.total(), i64::try_from(counted).unwrap());
        prop_assert_eq!(&OrderedIntervals::parse(&set.to_string(), completions), &set);
        let pending = first_pending_indexes(usize::MAX, completions, &set, &BTreeSet::new());
        prop_assert_eq!(pending, (0..completions).filter(|index| !set.has(*index)).collect::<Vec<_>>());
    }

    #[test]
    fn an_index_set_is_a_set(left in prop::collection::btree_set(0..60_i32, 0..40), right in prop::collection::btree_set(0..60_i32, 0..40)) {
        let set = OrderedIntervals::default().with(left.iter().copied());
        let other = OrderedIntervals::default().with(right.iter().copied());
        prop_assert_eq!(&OrderedIntervals::parse(&set.to_string(), i32::MAX), &set);
        prop_assert_eq!(set.total(), i64::try_from(left.len()).unwrap());
        prop_assert_eq!(set.common(&other), i64::try_from(left.intersection(&right).count()).unwrap());
        let both: BTreeSet<i32> = left.union(&right).copied().collect();
        prop_assert_eq!(set.union(&other), OrderedIntervals::default().with(both.iter().copied()));
        for index in 0..60 {
            prop_assert_eq!(set.has(index), left.contains(&index));
        }
        let pending = first_pending_indexes(usize::MAX, 60, &set, &right);
        prop_assert_eq!(pending, (0..60).filter(|index| !both.contains(index)).collect::<Vec<_>>());
    }
}

/// Upstream: `TestNewBackoffRecord`.
#[test]
fn failures_since_the_last_success_count() {
    let at = |seconds: i64| Some(Time::of(ago(seconds)));
    let check = |stored: i64, succeeded: &[i64], failed: &[i64], expected: (i64, Option<i64>)| {
        let stored = BackoffRecord { failures: stored, last_failure: (stored > 0).then(|| Time::of(ago(99))) };
        let times = |seconds: &[i64]| seconds.iter().map(|seconds| at(*seconds)).collect::<Vec<_>>();
        let record = stored.with(&times(succeeded), &times(failed));
        let expected = BackoffRecord { failures: expected.0, last_failure: expected.1.and_then(at) };
        assert_eq!(record, expected);
    };
    check(0, &[], &[], (0, None));
    check(2, &[], &[], (2, Some(99)));
    check(2, &[], &[5], (3, Some(5)));
    check(0, &[], &[9, 5], (2, Some(5)));
    check(2, &[5], &[], (0, None));
    check(0, &[1], &[9, 5], (0, None));
    check(0, &[5], &[9, 7, 3, 1], (2, Some(1)));
    check(2, &[5], &[3], (1, Some(3)));
    // A failure at the same instant came before the success.
    check(0, &[5], &[5], (0, None));
}

/// Upstream: `TestGetRemainingTime`.
#[test]
fn waits_double_up_to_ten_minutes() {
    let wait = |failures, seconds| {
        let record = BackoffRecord { failures, last_failure: Some(Time::of(ago(seconds))) };
        record.remaining(NOW).map_or(0, |wait| wait.as_secs())
    };
    let waits: Vec<u64> = (0..10).map(|failures| wait(failures, 0)).collect();
    assert_eq!(waits, [0, 10, 20, 40, 80, 160, 320, 600, 600, 600]);
    assert_eq!(wait(i64::MAX, 0), 600);
    assert_eq!((wait(1, 9), wait(1, 10), wait(1, 11), wait(3, 15)), (1, 0, 0, 25));
    assert_eq!(BackoffRecord::default().remaining(NOW), None);
}

#[test]
fn a_condition_is_set_where_it_differs() {
    let at = |seconds| Time::of(ago(seconds));
    let condition = |is_true, reason: &str, seconds| JobCondition::new("Suspended", is_true, reason, "m", at(seconds));
    let mut status = JobStatus::default();
    assert!(!status.ensure_condition(condition(false, "a", 9)), "what does not hold is not added");
    assert!(status.ensure_condition(condition(true, "a", 9)));
    assert!(!status.ensure_condition(condition(true, "a", 1)));
    assert_eq!(status.conditions[0].last_transition_time, Some(at(9)));
    assert!(status.ensure_condition(condition(true, "b", 1)));
    assert_eq!(status.conditions[0].last_transition_time, Some(at(1)));
    assert!(status.ensure_condition(condition(false, "b", 1)));
    assert_eq!(status.conditions.len(), 1);
}
