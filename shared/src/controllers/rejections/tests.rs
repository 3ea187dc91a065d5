use super::*;
use crate::testing::{NOW, ago};
use jiff::SignedDuration;
use proptest::prelude::*;

fn at(millis: i64) -> Timestamp {
    NOW + SignedDuration::from_millis(millis)
}

fn rejected(template: &str, reason: &str, created: Timestamp) -> Rejection {
    Rejection { template: Text::new(template), reason: Text::new(reason), created: Some(Time::of(created)) }
}

/// Of one template, so many rejections at once at each of these seconds after [`NOW`].
fn rows(seconds: &[(i64, usize)]) -> Rejections {
    let mut rejections = Rejections::default();
    for (second, count) in seconds {
        for _ in 0..*count {
            rejections.note(&rejected("", "OutOfcpu", NOW), at(second * 1000));
        }
    }
    rejections
}

/// Three pods are missing at this second: those that may be made, and why the others wait.
#[track_caller]
fn check(rejections: &Rejections, under_way: usize, second: i64, allowed: usize, held: &str) {
    let (now, others) = rejections.allow("", 3, under_way, at(second * 1000));
    let others = others.map_or(String::new(), |held| held.to_string());
    assert_eq!((now, others.as_str()), (allowed, held));
}

#[test]
fn the_first_three_in_a_row_cost_nothing() {
    check(&Rejections::default(), 9, 0, 3, "");
    check(&rows(&[(0, 3)]), 9, 0, 3, "");
    let first = "3 held back for 1s until 2026-01-01T12:00:01Z, since nodes reject them (OutOfcpu)";
    check(&rows(&[(0, 4)]), 0, 0, 0, first);
    check(&rows(&[(0, 500)]), 0, 0, 0, first);
    check(&rows(&[(0, 500)]), 0, 1, 3, "");
}

#[test]
fn the_delay_doubles_where_one_that_has_waited_is_rejected_too() {
    let delay = |seconds: &[(i64, usize)], now: i64| rows(seconds).wait(at(now * 1000)).unwrap().as_secs();
    assert_eq!(delay(&[(0, 4)], 0), 1);
    assert_eq!(delay(&[(0, 4), (1, 3)], 1), 2);
    assert_eq!(delay(&[(0, 4), (1, 3), (3, 1)], 3), 4);
    assert_eq!(delay(&[(0, 4), (1, 1), (3, 1), (7, 1), (15, 1)], 15), 16);
    assert_eq!(delay(&[(0, 4), (1, 1), (3, 1), (7, 1), (15, 1), (31, 1)], 31), 30);
    assert_eq!(delay(&[(0, 4), (1, 1), (3, 1), (7, 1), (15, 1), (31, 1), (61, 1)], 61), 30);
    assert!(rows(&[(0, 4)]).is_delaying(at(999)) && !rows(&[(0, 4)]).is_delaying(at(1000)));
    assert_eq!(rows(&[(0, 3)]).wait(NOW), None);
}

#[test]
fn after_a_delay_a_few_are_under_way_at_a_time() {
    let waits = "3 held back until one of those under way runs, since nodes reject them (OutOfcpu)";
    check(&rows(&[(0, 4)]), 3, 1, 0, waits);
    check(&rows(&[(0, 4)]), 500, 1, 0, waits);
    check(&rows(&[(0, 4)]), 2, 1, 1, &waits.replace('3', "2"));
    // They may be under way for ever.
    assert_eq!(rows(&[(0, 4)]).wait(at(1000)), Some(Duration::from_secs(59)));
}

#[test]
fn a_row_begins_once() {
    let mut rejections = Rejections::default();
    let begins: Vec<bool> = (0..8).map(|second| rejections.note(&rejected("", "a", NOW), at(second * 5000))).collect();
    assert_eq!(begins, [false, false, false, true, false, false, false, false]);
    let text = rejected("", "OutOfcpu", NOW).to_string();
    assert!(text.contains("(OutOfcpu)") && text.ends_with("1s at first and at most 30s"), "{text}");
}

#[test]
fn a_newer_pod_that_runs_ends_the_row_and_so_does_time() {
    let left = |runs: Option<Timestamp>, second: i64| {
        let mut rejections = rows(&[(0, 9)]);
        rejections.forget(|_| runs.map(Time::of), at(second * 1000));
        !rejections.is_empty()
    };
    assert!(left(None, 59) && !left(None, 60));
    assert!(left(Some(ago(1)), 1), "it ran before");
    assert!(left(Some(NOW), 1), "it may have come before the last that was rejected");
    assert!(!left(Some(at(1000)), 1));
}

#[test]
fn a_clock_that_is_set_back_ends_a_delay_and_the_row() {
    let (mut rejections, back) = (rows(&[(0, 4)]), -8 * 3600);
    check(&rejections, 0, back, 3, "");
    let now = at(back * 1000);
    assert_eq!((rejections.is_delaying(now), rejections.wait(now)), (false, Some(Duration::ZERO)));
    rejections.note(&rejected("", "OutOfcpu", NOW), now);
    check(&rejections, 0, back, 0, "3 held back for 2s until 2026-01-01T04:00:02Z, since nodes reject them (OutOfcpu)");
    let mut rejections = rows(&[(0, 4)]);
    rejections.forget(|_| None, now);
    assert!(rejections.is_empty());
}

#[test]
fn each_template_and_each_reason_has_a_row() {
    let mut rejections = Rejections::default();
    for _ in 0..FREE {
        rejections.note(&rejected("new", "OutOfcpu", NOW), NOW);
        rejections.note(&rejected("new", "NodeAffinity", NOW), NOW);
        rejections.note(&rejected("old", "OutOfcpu", NOW), NOW);
    }
    assert_eq!(rejections.wait(NOW), None);
    assert!(rejections.note(&rejected("new", "NodeAffinity", NOW), NOW));
    assert_eq!(rejections.allow("old", 2, 0, NOW), (2, None));
    let (allowed, held) = rejections.allow("new", 2, 0, NOW);
    assert_eq!((allowed, held.unwrap().reason), (0, Text::new("NodeAffinity")));
    for reason in 0..100 {
        rejections.note(&rejected("new", &reason.to_string(), NOW), at(1));
    }
    assert_eq!(rejections.0.len(), ROWS_MAX);
}

/// How many pods are made in a minute where every one is rejected after so many milliseconds.
fn made_in_a_minute(replicas: usize, latency: i64) -> usize {
    let (mut rejections, mut under_way, mut made) = (Rejections::default(), Vec::new(), 0);
    for milli in (0..60_000).step_by(10) {
        let (ended, rest): (Vec<i64>, Vec<i64>) = under_way.into_iter().partition(|end| *end <= milli);
        under_way = rest;
        for _ in ended {
            rejections.note(&rejected("", "OutOfcpu", NOW), at(milli));
        }
        rejections.forget(|_| None, at(milli));
        let (allowed, _) = rejections.allow("", replicas - under_way.len(), under_way.len(), at(milli));
        under_way.extend((0..allowed).map(|_| milli + latency));
        made += allowed;
    }
    made
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn three_replicas_are_at_most_forty_pods_a_minute(latency in 10..4000_i64) {
        prop_assert!(made_in_a_minute(3, latency) <= 40);
    }

    #[test]
    fn many_replicas_are_made_once_and_then_a_few_at_a_time(replicas in 3..600_usize, latency in 10..4000_i64) {
        prop_assert!(made_in_a_minute(replicas, latency) <= replicas.max(6) + 40);
    }

    #[test]
    fn rejections_of_another_template_hold_nothing_back(
        rounds in proptest::collection::vec((0..90_000_i64, 1..9_usize), 0..20),
        (missing, under_way, now) in (0..600_usize, 0..600_usize, 0..90_000_i64),
    ) {
        let mut rejections = Rejections::default();
        for (milli, count) in rounds {
            for _ in 0..count {
                rejections.note(&rejected("other", "OutOfcpu", NOW), at(milli));
            }
        }
        prop_assert_eq!(rejections.allow("", missing, under_way, at(now)), (missing, None));
    }
}
