//! Months of a CronJob in a moment: each sync is followed by the one that it asked for, on a clock that the test sets.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::time::Duration;

use cronjob_operator::objects::CronJob;
use cronjob_operator::observe::Observed;
use cronjob_operator::plan::{Run, plan};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::testing::{ObjectBuilder, object};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn cron_job(schedule: &str, zone: &str) -> ObjectBuilder {
    object("batch/v1", "CronJob", "c")
        .set(&["spec", "schedule"], schedule)
        .set(&["spec", "timeZone"], zone)
        .set(&["spec", "jobTemplate", "spec"], json!({}))
}

fn with_last_run(cron_job: &ObjectBuilder, last: Option<Timestamp>) -> Observed {
    let last = last.map(|last| Value::from(last.to_string()));
    let cron_job = last.into_iter().fold(cron_job.clone(), |it, last| it.set(&["status", "lastScheduleTime"], last));
    Observed { cron_job: cron_job.build::<CronJob>(), jobs: Vec::new(), missing: BTreeSet::new(), edited_at: None }
}

/// The runs of a CronJob from its creation until `end`, and the number of syncs. Each of its Jobs is gone at once.
fn runs(cron_job: &ObjectBuilder, from: &str, end: &str) -> (Vec<Timestamp>, usize) {
    let (mut now, end) = (at(from), at(end));
    let cron_job = cron_job.clone().created(now);
    let (mut runs, mut syncs) = (Vec::new(), 0);
    while now < end {
        let decided = plan(&with_last_run(&cron_job, runs.last().copied()), now);
        syncs += 1;
        if let Run::Start(start) = decided.run {
            runs.push(start.due);
        }
        let Some(next) = decided.next else { break };
        now += next;
    }
    (runs, syncs)
}

fn shown(runs: &[Timestamp]) -> Vec<String> {
    runs.iter().map(ToString::to_string).collect()
}

#[test]
fn a_year_of_nights_leaves_out_the_one_that_has_no_half_past_two() {
    let nightly = cron_job("30 2 * * *", "America/New_York");
    let (runs, syncs) = runs(&nightly, "2024-01-01T12:00:00Z", "2025-01-01T12:00:00Z");
    // A leap year, and its first sync only waits.
    assert_eq!((runs.len(), syncs), (365, 366));
    let spring: Vec<Timestamp> = runs.iter().copied().filter(|run| run.to_string().starts_with("2024-03-1")).collect();
    assert_eq!(shown(&spring)[..2], ["2024-03-11T06:30:00Z", "2024-03-12T06:30:00Z"]);
    let leap: Vec<Timestamp> = runs.iter().copied().filter(|run| run.to_string().starts_with("2024-02-29")).collect();
    assert_eq!(shown(&leap), ["2024-02-29T07:30:00Z"]);
}

#[test]
fn a_year_of_nights_has_two_runs_in_the_one_that_has_half_past_one_twice() {
    let nightly = cron_job("30 1 * * *", "Europe/London");
    let (runs, syncs) = runs(&nightly, "2025-01-01T12:00:00Z", "2026-01-01T12:00:00Z");
    // One more in autumn, and one less in spring.
    assert_eq!((runs.len(), syncs), (365, 366));
    let days = |day: &str| shown(&runs).into_iter().filter(|run| run.starts_with(day)).collect::<Vec<_>>();
    assert_eq!(days("2025-03-30"), [""; 0]);
    assert_eq!(days("2025-10-26"), ["2025-10-26T00:30:00Z", "2025-10-26T01:30:00Z"]);
}

#[test]
fn every_hour_is_one_run_whatever_the_clocks_do() {
    for (zone, from, end) in [
        ("America/New_York", "2024-03-05T00:15:00Z", "2024-03-15T00:15:00Z"),
        ("America/New_York", "2024-10-30T00:15:00Z", "2024-11-09T00:15:00Z"),
        ("Asia/Kolkata", "2024-03-05T00:15:00Z", "2024-03-15T00:15:00Z"),
    ] {
        let (runs, syncs) = runs(&cron_job("@hourly", zone), from, end);
        assert_eq!((runs.len(), syncs), (240, 241), "{zone} from {from}");
        assert!(runs.is_sorted_by(|before, after| before < after));
    }
}

#[test]
fn a_leap_day_is_slept_for_and_not_polled_for() {
    let leap = cron_job("0 0 29 2 *", "Etc/UTC");
    let (runs, syncs) = runs(&leap, "2023-03-01T00:00:00Z", "2030-01-01T00:00:00Z");
    assert_eq!(shown(&runs), ["2024-02-29T00:00:00Z", "2028-02-29T00:00:00Z"]);
    assert_eq!(syncs, 3);
}

#[test]
fn a_clock_that_goes_back_starts_nothing_twice() {
    let hourly = cron_job("0 * * * *", "Etc/UTC").created(at("2024-05-01T09:30:00Z"));
    let ran = with_last_run(&hourly, Some(at("2024-05-01T12:00:00Z")));
    for (now, expected) in [
        ("2024-05-01T10:00:00Z", "nothing (not due); again in 3h0m0.1s"),
        ("2024-05-01T12:00:00Z", "nothing (not due); again in 1h0m0.1s"),
        ("2024-05-01T13:00:00Z", "start c-28576140 (due 2024-05-01T13:00:00Z); again in 1h0m0.1s"),
    ] {
        assert_eq!(plan(&ran, at(now)).to_string(), expected, "at {now}");
    }
}

proptest! {
    #[test]
    fn whatever_a_cron_job_says_a_sync_of_it_ends_and_the_next_one_waits(
        schedule in prop::sample::select(vec!["* * * * *", "@every 1s", "@every 2540400h", "0 0 29 2 *", ", * * * *", "TZ=", "@"]),
        numbers in prop::collection::vec(prop::sample::select(vec![None, Some(i64::MIN), Some(-1), Some(0), Some(i64::MAX)]), 1),
        limits in prop::collection::vec(prop::sample::select(vec![None, Some(i32::MIN), Some(-1), Some(0), Some(i32::MAX)]), 2),
        last in prop::sample::select(vec![None, Some("0001-01-01T00:00:00Z"), Some("2026-01-01T11:59:00Z"), Some("9999-12-31T23:59:59Z")]),
        now in prop::sample::select(vec!["0001-01-01T00:00:00Z", "2026-01-01T12:00:00.5Z", "9999-12-30T21:59:59Z"]),
    ) {
        let built = cron_job(schedule, "America/New_York")
            .set(&["spec", "startingDeadlineSeconds"], numbers[0])
            .set(&["spec", "successfulJobsHistoryLimit"], limits[0])
            .set(&["spec", "failedJobsHistoryLimit"], limits[1])
            .set(&["status", "lastScheduleTime"], last);
        let state = Observed { cron_job: built.build::<CronJob>(), jobs: Vec::new(), missing: BTreeSet::new(), edited_at: None };
        let decided = plan(&state, at(now));
        prop_assert!(decided.next.is_none_or(|next| next >= Duration::from_millis(100)), "{}", decided);
    }
}
