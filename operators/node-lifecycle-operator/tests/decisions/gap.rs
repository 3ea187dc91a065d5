//! Whether nodes were watched without a gap.

use std::time::Duration;

use node_lifecycle_operator::memory::Look;
use node_lifecycle_operator::plan::Config;
use node_lifecycle_operator::plan::gap::gap;
use shared::testing::ago;

use crate::fixtures::CONFIG;

/// A look so many seconds ago, and whether all was followed then.
fn look((seconds, is_followed): (i64, bool)) -> Look {
    Look { at: ago(seconds), is_followed }
}

#[track_caller]
fn check(last: Option<(i64, bool)>, now: (i64, bool), config: &Config, expected: &str) {
    let found = gap(last.map(look), look(now), config).map(|gap| gap.to_string()).unwrap_or_default();
    assert_eq!(found, expected);
}

#[test]
fn a_gap_is_a_time_in_which_nobody_could_have_seen_a_sign_of_life() {
    let row = |last, now, expected: &str| check(last, now, &CONFIG, expected);
    row(None, (0, true), "");
    row(Some((5, true)), (0, true), "");
    let away = "cannot watch nodes or their leases";
    row(None, (0, false), away);
    row(Some((5, true)), (0, false), away);
    row(Some((5, false)), (0, false), away);
    // The period begins when they can be followed, and not at the last look before that.
    row(Some((5, false)), (0, true), "could not watch nodes or their leases at 2026-01-01T11:59:55Z");
    // The processor was busy, and the process slept.
    row(Some((25, true)), (0, true), "");
    row(Some((26, true)), (0, true), "no look at the nodes since 2026-01-01T11:59:34Z");
    // The clock was set back.
    row(Some((-1, true)), (0, true), "no look at the nodes since 2026-01-01T12:00:01Z");
}

#[test]
fn looks_may_be_far_apart_where_that_is_asked_for() {
    let seldom = Config { period: Duration::from_secs(60), ..CONFIG };
    check(Some((120, true)), (0, true), &seldom, "");
    check(Some((121, true)), (0, true), &seldom, "no look at the nodes since 2026-01-01T11:57:59Z");
    let for_ever = Config { period: Duration::MAX, ..CONFIG };
    check(Some((86_400, true)), (0, true), &for_ever, "");
}
