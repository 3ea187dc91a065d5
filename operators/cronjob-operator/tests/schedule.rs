//! The due run, and the time of the next look: upstream's tables.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use cronjob_operator::memory::Edits;
use cronjob_operator::objects::CronJob;
use cronjob_operator::plan::cron::parse;
use cronjob_operator::plan::schedule::{Due, Missed, most_recent, next_delay, since, since_in_time};
use jiff::Timestamp;
use shared::following::cache::Change;
use shared::process::flags::GoDuration;
use shared::testing::{ObjectBuilder, object};

fn at(text: &str) -> Timestamp {
    format!("{text}Z").parse().unwrap()
}

fn check_due(schedule: &str, since: &str, now: &str, expected: &str) {
    let shown = match most_recent(&parse(schedule).unwrap(), at(since), at(now)) {
        Ok(Due { time, missed }) => {
            let time = time.map_or("none".to_owned(), |time| time.to_string());
            format!(
                "{time} {}",
                match missed {
                    Missed::None => "none missed",
                    Missed::Few => "few missed",
                    Missed::Many => "many missed",
                }
            )
        }
        Err(error) => error.to_string(),
    };
    assert_eq!(shown, expected, "{schedule} since {since} at {now}");
}

fn check_delay(schedule: &str, since: &str, now: &str, expected: &str) {
    let delay = next_delay(&parse(schedule).unwrap(), at(since), at(now)).unwrap();
    assert_eq!(GoDuration(delay).to_string(), expected, "{schedule} since {since} at {now}");
}

/// Upstream: `TestNextScheduleTime`, `TestMostRecentScheduleTime`.
#[test]
fn the_latest_time_that_has_come_is_due() {
    let hourly = "0 * * * *";
    check_due(hourly, "2015-05-19T09:59:00", "2015-05-19T09:59:30", "none none missed");
    check_due(hourly, "2015-05-19T09:59:00", "2015-05-19T10:00:00", "2015-05-19T10:00:00Z none missed");
    check_due(hourly, "2015-05-19T09:59:00", "2015-05-19T10:59:59", "2015-05-19T10:00:00Z none missed");
    check_due(hourly, "2015-05-19T09:59:00", "2015-05-19T11:00:00", "2015-05-19T11:00:00Z few missed");
    check_due(hourly, "2015-05-19T09:59:00", "2015-05-22T10:00:00", "2015-05-22T10:00:00Z few missed");
    check_due(hourly, "2015-05-19T09:59:00", "2015-05-30T10:01:00", "2015-05-30T10:00:00Z many missed");
    check_due("@every 1h", "2016-05-12T10:01:00", "2016-05-19T10:00:00", "2016-05-19T09:01:00Z many missed");
}

/// Upstream: `TestMostRecentScheduleTime`. 2025-03-06 is a Thursday.
#[test]
fn irregular_schedules_are_estimated_and_may_give_nothing() {
    let office = "30 6-16/4 * * 1-5";
    check_due(office, "2025-03-06T10:30:00", "2025-03-07T10:31:00", "2025-03-07T10:30:00Z few missed");
    check_due(office, "2025-03-06T10:30:00", "2025-03-10T10:31:00", "2025-03-10T10:30:00Z few missed");
    check_due(office, "2025-03-06T10:00:00", "2025-03-07T10:31:00", "2025-03-07T10:30:00Z few missed");
    check_due("30 10,11,12 * * 1-5", "2025-03-06T10:30:00", "2025-03-07T16:30:00", "none few missed");
    let error = "time difference between two schedules is less than 1 second";
    check_due("59 23 31 2 *", "2025-03-06T10:30:00", "2025-03-07T16:30:00", error);
}

/// Upstream: `TestNextScheduleTimeDuration`, `TestControllerV2UpdateCronJob`.
#[test]
fn a_key_sleeps_until_just_after_the_next_time() {
    check_delay("30 10,11,12 * * 1-5", "2025-03-06T10:30:00", "2025-03-07T16:30:00", "66h0m0.1s");
    check_delay("30 6-16/4 * * 1-5", "2025-03-06T10:30:00", "2025-03-07T10:31:00", "3h59m0.1s");
    check_delay("0 12 * * 5", "2025-03-06T10:00:00", "2025-03-06T16:00:00", "20h0m0.1s");
    check_delay("0 12 * * 4", "2025-03-06T12:00:00", "2025-03-25T11:30:00", "48h30m0.1s");
    check_delay("*/1 * * * *", "2025-03-06T09:59:00", "2025-03-06T09:59:59", "1.1s");
    check_delay("@every 1m", "2025-03-06T09:59:00", "2025-03-06T09:59:59", "1.1s");
    check_delay("@every 3m", "2025-03-06T09:59:00", "2025-03-06T09:59:59", "2m1.1s");
    check_delay("TZ=America/New_York 30 2 * * *", "2024-03-09T07:30:00", "2024-03-09T08:00:00", "46h30m0.1s");
    check_delay("TZ=America/New_York 30 1 * * *", "2024-11-03T05:30:00", "2024-11-03T05:30:01", "59m59.1s");
    check_delay("0 0 29 2 *", "2024-02-29T00:00:00", "2024-03-01T00:00:00", "35040h0m0.1s");
    let never = parse("0 0 29 2 *").unwrap();
    assert_eq!(next_delay(&never, at("2096-02-29T00:00:00"), at("2096-03-01T00:00:00")), None);
}

fn ran(uid: &str, schedule: &str) -> ObjectBuilder {
    let built = object("batch/v1", "CronJob", "c").created(at("2025-03-06T00:00:00")).set(&["metadata", "uid"], uid);
    let built = built.set(&["spec", "schedule"], schedule).set(&["spec", "jobTemplate", "spec"], 1);
    built.set(&["status", "lastScheduleTime"], "2025-03-06T10:00:00Z")
}

const UID: &str = "00000000-0000-4000-8000-000000000001";

#[test]
fn times_count_from_the_last_run_or_from_a_later_edit() {
    let cron_job = ran(UID, "0 * * * *").build::<CronJob>();
    let (last, now) = (at("2025-03-06T10:00:00"), at("2025-03-06T11:00:00"));
    for (edited_at, expected) in [
        (None, last),
        (Some(at("2025-03-06T09:30:00")), last),
        (Some(at("2025-03-06T10:30:00")), at("2025-03-06T10:30:00")),
        (Some(at("2025-03-06T18:30:00")), last),
    ] {
        assert_eq!(since(&cron_job, edited_at, now), expected, "{edited_at:?}");
        assert_eq!(since_in_time(&cron_job, edited_at, now), expected, "{edited_at:?}");
    }
}

#[test]
fn an_edit_of_the_schedule_is_remembered_until_the_cron_job_is_gone() {
    let (first, second) = (at("2025-03-06T10:30:00"), at("2025-03-06T10:40:00"));
    let hourly = ran(UID, "0 * * * *").build::<CronJob>();
    let daily = ran(UID, "0 0 * * *").build::<CronJob>();
    let abroad = ran(UID, "0 0 * * *").set(&["spec", "timeZone"], "Asia/Kolkata").build::<CronJob>();
    let suspended = ran(UID, "0 0 * * *").set(&["spec", "suspend"], true).build::<CronJob>();
    let another = ran("00000000-0000-4000-8000-000000000002", "@daily").build::<CronJob>();
    let edits = Edits::default();
    let uid = hourly.metadata.uid;
    edits.note(&Change::Added(&hourly), first);
    edits.note(&Change::Updated { old: &daily, new: &suspended }, first);
    edits.note(&Change::Updated { old: &hourly, new: &another }, first);
    assert_eq!((edits.last(uid), edits.last(another.metadata.uid)), (None, None));
    edits.note(&Change::Updated { old: &hourly, new: &daily }, first);
    assert_eq!(edits.last(uid), Some(first));
    edits.note(&Change::Updated { old: &daily, new: &abroad }, second);
    assert_eq!(edits.last(uid), Some(second));
    edits.note(&Change::Deleted(&abroad), second);
    assert_eq!(edits.last(uid), None);
}

#[test]
fn a_deadline_moves_the_start_of_counting() {
    let cron_job = |deadline: i64| {
        let built = object("batch/v1", "CronJob", "c").created(at("2025-03-06T10:30:00"));
        let built = built.set(&["spec", "schedule"], "*/5 * * * *").set(&["spec", "jobTemplate", "spec"], 1);
        built.set(&["spec", "startingDeadlineSeconds"], deadline).build::<CronJob>()
    };
    let now = at("2025-03-06T10:32:00");
    assert_eq!(since_in_time(&cron_job(60), None, now), at("2025-03-06T10:31:00"));
    assert_eq!(since_in_time(&cron_job(600), None, now), at("2025-03-06T10:30:00"));
    assert_eq!(since_in_time(&cron_job(i64::MAX), None, now), at("2025-03-06T10:30:00"));
}
