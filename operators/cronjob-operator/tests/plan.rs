//! The plan of one sync: upstream's own cases, and the properties of every plan.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cronjob_operator::apply::{Outcome, Started};
use cronjob_operator::objects::{CronJob, CronJobStatus, Ended, Job, JobReference};
use cronjob_operator::observe::Observed;
use cronjob_operator::plan::{Left, Plan, Run, plan, plan_live_read, plan_template_read};
use cronjob_operator::status::next_status;
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::api::object::Kind;
use shared::testing::properties::{comes_to_rest, order_is_irrelevant};
use shared::testing::{ObjectBuilder, enlarged, object, uid};
use shared::working::decisions::stage;

/// Upstream's tests play on this day.
fn at(clock: &str) -> Timestamp {
    let text = if clock.contains('T') { clock.to_owned() } else { format!("2016-05-19T{clock}") };
    let seconds = if text.len() == 16 { ":00" } else { "" };
    format!("{text}{seconds}Z").parse().unwrap()
}

const HOURLY: &str = "0 * * * ?";

/// Created at 09:59.
fn cron_job(schedule: &str) -> ObjectBuilder {
    object("batch/v1", "CronJob", "mycronjob")
        .created(at("09:59"))
        .set(&["spec", "schedule"], schedule)
        .set(&["spec", "concurrencyPolicy"], "Allow")
        .set(&["spec", "jobTemplate"], template())
}

fn template() -> Value {
    json!({ "metadata": { "labels": { "a": "b" }, "annotations": { "x": "y" } }, "spec": { "template": { "new": 1e2 } } })
}

fn last_run(cron_job: ObjectBuilder, time: Timestamp) -> ObjectBuilder {
    cron_job.set(&["status", "lastScheduleTime"], time.to_string())
}

fn active(cron_job: ObjectBuilder, names: &[&str]) -> ObjectBuilder {
    let references: Vec<Value> = names
        .iter()
        .map(|name| json!({ "kind": "Job", "namespace": "default", "name": name, "uid": uid(name).to_string() }))
        .collect();
    cron_job.set(&["status", "active"], references)
}

fn policy(cron_job: ObjectBuilder, policy: &str) -> ObjectBuilder {
    cron_job.set(&["spec", "concurrencyPolicy"], policy)
}

fn deadline(cron_job: ObjectBuilder, seconds: i64) -> ObjectBuilder {
    cron_job.set(&["spec", "startingDeadlineSeconds"], seconds)
}

fn job(name: &str, owner: &CronJob) -> ObjectBuilder {
    object("batch/v1", "Job", name).owned_by(owner)
}

fn ended(job: ObjectBuilder, how: &str, start: Option<&str>, completion: Option<&str>) -> ObjectBuilder {
    let mut job = job.set(&["status", "conditions"], json!([{ "type": how, "status": "True" }]));
    for (field, time) in [("startTime", start), ("completionTime", completion)] {
        if let Some(time) = time {
            job = job.set(&["status", field], at(time).to_string());
        }
    }
    job
}

fn observed(cron_job: &ObjectBuilder, jobs: impl Fn(&CronJob) -> Vec<ObjectBuilder>) -> Observed {
    let cron_job: Arc<CronJob> = cron_job.build();
    let jobs = jobs(&cron_job).iter().map(ObjectBuilder::build).collect();
    Observed { cron_job, jobs, missing: BTreeSet::new(), edited_at: None }
}

fn alone(cron_job: &ObjectBuilder) -> Observed {
    observed(cron_job, |_| Vec::new())
}

fn check(observed: &Observed, now: &str, expected: &str) {
    assert_eq!(plan(observed, at(now)).to_string(), expected, "at {now}");
}

/// The name of the Job that is due then.
fn name(due: &str) -> String {
    format!("mycronjob-{}", at(due).as_second() / 60)
}

/// Upstream: `TestControllerV2SyncCronJob`, "never ran".
#[test]
fn the_first_run_starts_when_it_is_due_and_not_before() {
    check(&alone(&cron_job(HOURLY)), "09:59", "nothing (not due); again in 1m0.1s");
    let started = format!("start {} (due 2016-05-19T10:00:00Z); again in 59m0.1s", name("10:00"));
    for each in ["Allow", "Forbid", "Replace"] {
        check(&alone(&policy(cron_job(HOURLY), each)), "10:01", &started);
    }
    let at_once = started.replace("59m0.1s", "1h0m0.1s");
    check(&alone(&cron_job(HOURLY)), "10:00", &at_once);
    let new_york = cron_job(HOURLY).set(&["spec", "timeZone"], "America/New_York");
    check(&alone(&new_york), "09:59", "nothing (not due); again in 1m0.1s");
    check(&alone(&new_york), "10:01", &started);
}

#[test]
fn a_large_template_is_read_only_for_a_run_that_is_due() {
    let template = json!({ "spec": { "template": enlarged(json!({})) } });
    let large = cron_job(HOURLY).set(&["spec", "jobTemplate"], template);
    let suspended = large.clone().set(&["spec", "suspend"], true);
    for (cron_job, now, expected) in [
        (&large, "09:59", None),
        (&large, "10:01", Some("read the template (its 1400061 bytes are not cached)")),
        (&suspended, "10:01", None),
        (&cron_job(HOURLY), "10:01", None),
    ] {
        let live_read = plan_template_read(&alone(cron_job), at(now)).map(|live_read| live_read.to_string());
        assert_eq!(live_read.as_deref(), expected, "at {now}");
    }
}

#[test]
fn a_schedule_that_was_edited_and_cannot_be_read_is_told_in_other_words() {
    let edited = Observed { edited_at: Some(at("10:00")), ..alone(&cron_job("this is not valid")) };
    check(&edited, "10:01", "event UnParseableCronJobSchedule; nothing (invalid schedule)");
    let told = &plan(&edited, at("10:01")).notices[0].message;
    assert_eq!(told, "unparseable schedule for cronjob: this is not valid");
}

/// Upstream: `TestControllerV2SyncCronJob`, "not valid schedule", "not valid time zone".
#[test]
fn what_cannot_be_read_is_told_once_and_waits_for_a_change() {
    let unparseable = "event UnparseableSchedule; nothing (invalid schedule)";
    check(&alone(&cron_job("obvious error schedule")), "10:01", unparseable);
    let zone = cron_job(HOURLY).set(&["spec", "timeZone"], "bad timezone");
    check(&alone(&zone), "10:01", "event UnknownTimeZone; nothing (unknown time zone)");
    let message = &plan(&alone(&zone), at("10:01")).notices[0].message;
    assert_eq!(message, r#"invalid timeZone: "bad timezone": unknown time zone bad timezone"#);
    let never = "event InvalidSchedule; nothing (the schedule is never due)";
    check(&alone(&cron_job("59 23 31 2 *")), "10:01", never);
}

/// Upstream: `TestControllerV2SyncCronJob`, "TZ is also set in schedule".
#[test]
fn a_zone_in_the_schedule_goes_before_the_field_and_is_told() {
    let both = cron_job("TZ=UTC 0 * * * ?").set(&["spec", "timeZone"], "Asia/Kolkata");
    let expected =
        format!("event UnsupportedSchedule; start {} (due 2016-05-19T10:00:00Z); again in 59m0.1s", name("10:00"));
    check(&alone(&both), "10:01", &expected);
}

#[test]
fn suspended_or_being_deleted_starts_nothing_but_cleans_up() {
    let suspended = cron_job(HOURLY).set(&["spec", "suspend"], true).set(&["spec", "successfulJobsHistoryLimit"], 0);
    check(&alone(&suspended), "10:01", "nothing (suspended)");
    let done = |owner: &CronJob| vec![ended(job("old", owner), "Complete", None, None)];
    check(&observed(&suspended, done), "10:01", "delete old (history limit); nothing (suspended)");
    check(&alone(&cron_job(HOURLY).terminating()), "10:01", "nothing (being deleted)");
}

/// Upstream: `TestControllerV2SyncCronJob`, "past deadline": no event either, since what is too late is not due.
#[test]
fn what_is_later_than_the_deadline_is_not_due() {
    let ran = last_run(cron_job(HOURLY), at("09:00"));
    check(
        &alone(&deadline(ran.clone(), 10)),
        "10:12",
        "nothing (2016-05-19T10:00:00Z is more than 10s ago); again in 48m0.1s",
    );
    let expected = format!("start {} (due 2016-05-19T10:00:00Z); again in 48m0.1s", name("10:00"));
    check(&alone(&deadline(ran, 1000)), "10:12", &expected);
}

/// Upstream: `TestControllerV2SyncCronJob`, "long overdue".
#[test]
fn a_week_of_missed_runs_is_one_run_and_a_warning() {
    let overdue = last_run(cron_job(HOURLY), at("2016-05-12T09:00"));
    let start = format!("start {} (due 2016-05-19T10:00:00Z); again in 1h0m0.1s", name("10:00"));
    check(&alone(&overdue), "10:00", &format!("event TooManyMissedTimes; {start}"));
    let long = deadline(overdue.clone(), 600_000);
    check(&alone(&long), "10:00", &format!("event TooManyMissedTimes; {start}"));
    // A short deadline leaves few missed runs to count, and what is due right now is in time.
    check(&alone(&deadline(overdue, 10)), "10:00", &start);
}

/// Unlike upstream, which starts the run of 10:00.
#[test]
fn a_run_that_the_schedule_would_have_had_before_it_was_edited_is_not_started() {
    let edited = |time| Observed { edited_at: Some(time), ..alone(&last_run(cron_job(HOURLY), at("08:00"))) };
    check(&edited(at("10:30")), "10:30:01", "nothing (not due); again in 29m59.1s");
    let start = format!("start {} (due 2016-05-19T11:00:00Z); again in 59m59.1s", name("11:00"));
    check(&edited(at("10:30")), "11:00:01", &start);
    // A day of times before the edit is not missed.
    let old = Observed { edited_at: Some(at("10:30")), ..alone(&last_run(cron_job(HOURLY), at("2016-05-12T09:00"))) };
    check(&old, "11:00:01", &start);
}

#[test]
fn an_edit_that_was_noted_before_the_clock_was_set_back_holds_no_run() {
    let edited = Observed { edited_at: Some(at("18:30")), ..alone(&last_run(cron_job(HOURLY), at("10:00"))) };
    check(&edited, "10:30:01", "nothing (not due); again in 29m59.1s");
    let start = format!("start {} (due 2016-05-19T11:00:00Z); again in 59m59.1s", name("11:00"));
    check(&edited, "11:00:01", &start);
}

/// Upstream: `TestControllerV2SyncCronJob`, "@every".
#[test]
fn every_stays_anchored_to_the_last_run() {
    let ran = last_run(cron_job("@every 1h"), at("2016-05-12T10:01"));
    let expected =
        format!("event TooManyMissedTimes; start {} (due 2016-05-19T09:01:00Z); again in 1m0.1s", name("09:01"));
    check(&alone(&ran), "10:00", &expected);
    let late = deadline(last_run(cron_job("@every 1h"), at("10:01")), 10);
    check(&alone(&late), "11:01:11", "nothing (2016-05-19T11:01:00Z is more than 10s ago); again in 59m49.1s");
}

/// Upstream: `TestControllerV2SyncCronJob`, "still active, is time".
#[test]
fn the_concurrency_policy_says_what_becomes_of_a_run_while_another_goes_on() {
    let base = active(last_run(cron_job(HOURLY), at("09:00")), &["running"]);
    let running = |owner: &CronJob| vec![job("running", owner)];
    let start = format!("start {} (due 2016-05-19T10:00:00Z); again in 59m0.1s", name("10:00"));
    check(&observed(&base, running), "10:01", &start);
    check(
        &observed(&policy(base.clone(), "Replace"), running),
        "10:01",
        &format!("delete running (replaced); {start}"),
    );
    let waits = "event JobAlreadyActive; nothing (2016-05-19T10:00:00Z waits for an active job); again in 59m0.1s";
    let forbid = policy(base.clone(), "Forbid");
    check(&observed(&forbid, running), "10:01", waits);
    // Later on only the latest run counts.
    let later = "event JobAlreadyActive; nothing (2016-05-19T12:00:00Z waits for an active job); again in 30m0.1s";
    check(&observed(&forbid, running), "12:30", later);
    let over = |owner: &CronJob| vec![ended(job("running", owner), "Complete", Some("09:00"), Some("10:00:30"))];
    check(&observed(&forbid, over), "10:01", &format!("running is over (Complete); {start}"));
    check(&observed(&policy(base, "Unheard"), running), "10:01", &start);
}

#[test]
fn a_run_that_was_started_is_not_started_again() {
    let nothing = "nothing (already started 2016-05-19T10:00:00Z); again in 59m0.1s";
    // The status was written.
    check(&alone(&last_run(cron_job("0 10 * * *"), at("10:00"))), "10:01", "nothing (not due); again in 23h59m0.1s");
    // Only the Job is listed, under the name of the run.
    let listed = active(last_run(cron_job(HOURLY), at("09:00")), &[&name("10:00")]);
    for each in ["Allow", "Forbid", "Replace"] {
        check(&alone(&policy(listed.clone(), each)), "10:01", nothing);
    }
    // The status says so, although the clock went back since.
    let ahead = last_run(cron_job(HOURLY), at("10:00"));
    check(&alone(&ahead), "09:30", "nothing (not due); again in 1h30m0.1s");
}

#[test]
fn an_active_job_that_is_gone_leaves_and_one_nobody_listed_is_told() {
    let listed = active(last_run(cron_job(HOURLY), at("10:00")), &["gone", "kept"]);
    let mut state = observed(&listed, |owner| vec![job("stranger", owner), job("kept", owner)]);
    state.missing.insert(uid("gone"));
    check(&state, "10:01", "gone is missing; event UnexpectedJob; nothing (not due); again in 59m0.1s");
    let notice = &plan(&state, at("10:01")).notices[0];
    assert_eq!(notice.message, "Saw a job that the controller did not create or forgot: stranger");
}

/// Upstream: `TestControllerV2CleanupFinishedJobs`, `TestByJobStartTime`.
#[test]
fn the_oldest_finished_jobs_beyond_each_limit_are_deleted() {
    let limited = |successful: Value, failed: Value| {
        last_run(cron_job(HOURLY), at("10:00"))
            .set(&["spec", "successfulJobsHistoryLimit"], successful)
            .set(&["spec", "failedJobsHistoryLimit"], failed)
    };
    let jobs = |owner: &CronJob| {
        vec![
            ended(job("a-unknown", owner), "Complete", None, None),
            ended(job("b-late", owner), "Complete", Some("08:00"), Some("08:01")),
            ended(job("c-early", owner), "Complete", Some("07:00"), Some("07:01")),
            ended(job("d-same", owner), "Complete", Some("07:00"), Some("07:01")),
            ended(job("e-failed", owner), "Failed", Some("06:00"), None),
            ended(job("f-failed", owner), "Failed", Some("05:00"), None),
            job("g-running", owner),
        ]
    };
    let rest = "event UnexpectedJob; nothing (not due); again in 59m0.1s";
    for (successful, failed, deleted) in [
        (json!(3), json!(2), &["c-early"][..]),
        (json!(1), json!(1), &["c-early", "d-same", "b-late", "f-failed"]),
        (json!(0), Value::Null, &["c-early", "d-same", "b-late", "a-unknown"]),
        (json!(10), json!(0), &["f-failed", "e-failed"]),
        (Value::Null, Value::Null, &[]),
    ] {
        let steps = deleted.iter().map(|name| format!("delete {name} (history limit); ")).chain([rest.to_owned()]);
        check(&observed(&limited(successful, failed), jobs), "10:01", &steps.collect::<Vec<_>>().concat());
    }
}

#[test]
fn a_job_being_deleted_counts_but_is_not_deleted_again() {
    let limited = last_run(cron_job(HOURLY), at("10:00")).set(&["spec", "successfulJobsHistoryLimit"], 1);
    let jobs = |owner: &CronJob| {
        vec![
            ended(job("a", owner), "Complete", Some("07:00"), Some("07:01")).terminating(),
            ended(job("b", owner), "Complete", Some("08:00"), Some("08:01")),
        ]
    };
    check(&observed(&limited, jobs), "10:01", "nothing (not due); again in 59m0.1s");
}

/// Upstream lists by the name alone, and would delete these.
#[test]
fn jobs_of_another_owner_of_the_same_name_are_left_alone() {
    let limited = last_run(cron_job(HOURLY), at("10:00")).set(&["spec", "successfulJobsHistoryLimit"], 0);
    let before: Arc<CronJob> = cron_job(HOURLY).uid_of("its predecessor").build();
    let state = observed(&limited, |_| {
        vec![ended(job("old", &before), "Complete", None, Some("10:00")), job("running", &before)]
    });
    check(&state, "10:01", "event UnexpectedJob; nothing (not due); again in 59m0.1s");
    assert_eq!(next_status(&state, &Outcome::default()), None);
}

fn body_of(observed: &Observed) -> String {
    match plan(observed, at("10:01")).run {
        Run::Start(start) => start.body,
        Run::Nothing => unreachable!("nothing is due"),
    }
}

/// Due at 10:00, with a template that is this text: [`ObjectBuilder`] would read it and write it again.
fn of_template(template: &str) -> Observed {
    let text = cron_job(HOURLY).set(&["spec", "jobTemplate"], "TEMPLATE").json().to_string();
    let read: CronJob = serde_json::from_str(&text.replace(r#""TEMPLATE""#, template)).unwrap();
    Observed { cron_job: Arc::new(read), jobs: Vec::new(), missing: BTreeSet::new(), edited_at: None }
}

#[test]
fn every_byte_of_a_template_reaches_the_job() {
    for spec in [
        r#"{"b":1e400,"template":{"spec":{"new":[12345678901234567890123,-0.0,null]}},"a":1.0}"#,
        r#"{"a":"\u003c&\u2028\/<>\ud800","z":[ 1 ],"b":{"c":1,"c":2},"z":0}"#,
        "{\"a\":\"\u{2028}\u{2029}\"}",
        "{}",
    ] {
        let body = body_of(&of_template(&format!(r#"{{"spec":{spec}}}"#)));
        assert!(body.ends_with(&format!(r#""spec":{spec}}}"#)), "{body}");
    }
    let metadata = r#"{"labels":{"b":"\u003c","a":"1"},"annotations":{"a":"\u2028","c":"\ud800"}}"#;
    let body = body_of(&of_template(&format!(r#"{{"metadata":{metadata},"spec":{{}}}}"#)));
    let timestamp = r#""batch.kubernetes.io/cronjob-scheduled-timestamp":"2016-05-19T10:00:00Z""#;
    let kept = metadata.replace(r#","c""#, &format!(r#",{timestamp},"c""#));
    assert!(body.contains(kept.trim_matches(['{', '}'])), "{body}");
}

/// Rows of what cannot be read, and what is said of it.
#[test]
fn a_template_that_cannot_be_read_starts_nothing_and_is_told() {
    for (template, said) in [
        ("null", "the job template has no spec"),
        (r#"{"spec":null}"#, "the job template has no spec"),
        (r#"{"metadata":{"labels":{"a":"b"}}}"#, "the job template has no spec"),
        ("[1]", "cannot read the job template: "),
        (r#""text""#, "cannot read the job template: "),
        (r#"{"spec":"text"}"#, "cannot read the job template: "),
        (r#"{"spec":{},"spec":{}}"#, "cannot read the job template: duplicate field `spec`"),
        (r#"{"metadata":{"labels":1},"spec":{}}"#, "cannot read the job template: "),
        (r#"{"metadata":{"annotations":[]},"spec":{}}"#, "cannot read the job template: "),
    ] {
        let observed = of_template(template);
        let told = "event FailedCreate; nothing (invalid job template for 2016-05-19T10:00:00Z); again in 59m0.1s";
        check(&observed, "10:01", told);
        let message = plan(&observed, at("10:01")).notices.remove(0).message;
        assert!(message.starts_with(&format!("Error creating job: {said}")), "{template}: {message}");
        check(&observed, "09:59", "nothing (not due); again in 1m0.1s");
    }
}

/// Upstream: `TestGetJobFromTemplate2`.
#[test]
fn a_job_is_its_template_with_a_name_an_owner_and_the_time_it_was_due() {
    let body = |cron_job: &ObjectBuilder| -> Value { serde_json::from_str(&body_of(&alone(cron_job))).unwrap() };
    let made = body(&cron_job(HOURLY));
    let expected = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name("10:00"),
            "labels": { "a": "b" },
            "annotations": { "batch.kubernetes.io/cronjob-scheduled-timestamp": "2016-05-19T10:00:00Z", "x": "y" },
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "CronJob", "name": "mycronjob", "uid": uid("mycronjob").to_string(),
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": { "template": { "new": 1e2 } },
    });
    assert_eq!(made, expected);
    for (zone, expected) in [
        ("Europe/Berlin", "2016-05-19T12:00:00+02:00"),
        ("America/St_Johns", "2016-05-19T07:00:00-02:30"),
        ("Africa/Abidjan", "2016-05-19T10:00:00Z"),
    ] {
        let schedule = if zone == "America/St_Johns" { "30 * * * *" } else { HOURLY };
        let zoned = cron_job(schedule).set(&["spec", "timeZone"], zone).created(at("09:29"));
        let made = body(&zoned);
        let annotations = &made["metadata"]["annotations"];
        let timestamp = &annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"];
        let expected = expected.replace("07:00:00-02:30", "07:30:00-02:30");
        assert_eq!(*timestamp, *expected, "{zone}");
    }
    let bare = cron_job(HOURLY).set(&["spec", "jobTemplate"], json!({ "spec": {} }));
    assert_eq!(body(&bare)["metadata"].get("labels"), None);
}

fn status_of(observed: &Observed, outcome: &Outcome) -> String {
    next_status(observed, outcome).map_or("unchanged".to_owned(), |status| {
        let names: Vec<&str> = status.active.iter().map(|job| &*job.name).collect();
        let show = |time: Option<shared::api::time::Time>| time.map_or("-".to_owned(), |time| time.to_string());
        format!("{names:?} {} {}", show(status.last_schedule_time), show(status.last_successful_time))
    })
}

#[test]
fn the_status_follows_from_what_was_done() {
    let base = active(last_run(cron_job(HOURLY), at("09:00")), &["one", "two"]);
    let jobs = |owner: &CronJob| {
        let early = ended(job("one", owner), "Complete", Some("09:00"), Some("09:10"));
        let late = ended(job("other", owner), "Complete", Some("08:00"), Some("09:20"));
        vec![early, late, job("two", owner), ended(job("failed", owner), "Failed", None, Some("09:30"))]
    };
    let state = observed(&base, jobs);
    let reference = JobReference::new(&job("three", &state.cron_job).build::<Job>().metadata);
    let started = Some(Started { due: at("10:00"), job: reference });
    let outcome = Outcome { left: [uid("one")].into(), started, ..Outcome::default() };
    let expected = r#"["two", "three"] 2016-05-19T10:00:00Z 2016-05-19T09:20:00Z"#;
    assert_eq!(status_of(&state, &outcome), expected);
    let nothing = r#"["one", "two"] 2016-05-19T09:00:00Z 2016-05-19T09:20:00Z"#;
    assert_eq!(status_of(&state, &Outcome::default()), nothing);
    assert_eq!(status_of(&alone(&base), &Outcome::default()), "unchanged");
    // A success that is older than the last one known changes nothing.
    let known = base.set(&["status", "lastSuccessfulTime"], at("09:50").to_string());
    assert_eq!(status_of(&observed(&known, jobs), &Outcome::default()), "unchanged");
}

/// The state in the apiserver after a plan in which nothing fails.
fn applied(state: &Observed, plan: &Plan) -> Observed {
    let Plan { cleanup, leave, notices: _, run, reason: _, next: _ } = plan;
    let mut outcome = Outcome { left: leave.iter().map(|leave| leave.uid).collect(), ..Outcome::default() };
    let mut jobs = state.jobs.clone();
    let mut gone: Vec<_> = cleanup.clone();
    if let Run::Start(start) = run {
        gone.extend(start.replace.iter().cloned());
        outcome.left.extend(start.replace.iter().map(|deletion| deletion.uid));
        let made: Arc<Job> = job(&start.name, &state.cron_job).build();
        outcome.started = Some(Started { due: start.due, job: JobReference::new(&made.metadata) });
        jobs.push(made);
    }
    let status = next_status(state, &outcome).unwrap_or_else(|| state.cron_job.status.clone());
    let missing = state.missing.difference(&outcome.left).copied().collect();
    jobs.retain(|job| gone.iter().all(|deletion| deletion.uid != job.metadata.uid));
    jobs.sort_by(|a, b| a.metadata.key.cmp(&b.metadata.key));
    Observed { cron_job: with_status(state, &status), jobs, missing, edited_at: state.edited_at }
}

/// A view is not to be cloned, so it is built anew from what the tests vary.
fn with_status(state: &Observed, status: &CronJobStatus) -> Arc<CronJob> {
    let spec = &state.cron_job.spec;
    let mut built = cron_job(&spec.schedule)
        .set(&["spec", "concurrencyPolicy"], format!("{:?}", spec.concurrency_policy))
        .set(&["spec", "startingDeadlineSeconds"], spec.starting_deadline_seconds)
        .set(&["spec", "successfulJobsHistoryLimit"], spec.successful_jobs_history_limit)
        .set(&["spec", "failedJobsHistoryLimit"], spec.failed_jobs_history_limit);
    for (field, time) in
        [("lastScheduleTime", status.last_schedule_time), ("lastSuccessfulTime", status.last_successful_time)]
    {
        if let Some(time) = time {
            built = built.set(&["status", field], time.to_string());
        }
    }
    built.set(&["status", "active"], serde_json::to_value(&status.active).unwrap()).build()
}

fn states() -> impl Strategy<Value = (Observed, Timestamp)> {
    let schedules =
        vec![HOURLY, "*/5 * * * *", "@every 7m", "30 6-16/4 * * 1-5", "0 0 1 1 *", "nonsense", "59 23 31 2 *"];
    let limit = || prop::option::of(0_i64..3);
    (
        (prop::sample::select(schedules), prop::sample::select(vec!["Allow", "Forbid", "Replace"])),
        (prop::option::of(0_i64..4000), limit(), limit()),
        prop::option::of(0_i64..800_000),
        prop::collection::vec((0_u8..4, any::<bool>(), 0_i64..90_000, any::<bool>()), 0..6),
        0_i64..7200,
    )
        .prop_map(|((schedule, policy), (deadline, successful, failed), ran, jobs, later)| {
            let now = Timestamp::from_second(at("10:00").as_second() + later).unwrap();
            let ago = |seconds: i64| Timestamp::from_second(now.as_second() - seconds).unwrap().to_string();
            let named: Vec<_> = (0..).zip(jobs).map(|(number, job)| (format!("job-{number}"), job)).collect();
            let listed: Vec<&str> = named.iter().filter(|(_, job)| job.1).map(|(name, _)| name.as_str()).collect();
            let mut built = active(cron_job(schedule), &listed)
                .set(&["spec", "concurrencyPolicy"], policy)
                .set(&["spec", "startingDeadlineSeconds"], deadline)
                .set(&["spec", "successfulJobsHistoryLimit"], successful)
                .set(&["spec", "failedJobsHistoryLimit"], failed);
            if let Some(ran) = ran {
                built = built.set(&["status", "lastScheduleTime"], ago(ran));
            }
            let stranger: Arc<CronJob> = cron_job(HOURLY).uid_of("its predecessor").build();
            let mut state = alone(&built);
            for (name, (kind, _, age, is_ours)) in &named {
                let owner = if *is_ours { &state.cron_job } else { &stranger };
                let base = job(name, owner).set(&["status", "startTime"], ago(*age));
                let end =
                    |how: &str| ended(base.clone(), how, None, None).set(&["status", "completionTime"], ago(age / 2));
                match kind {
                    0 => state.jobs.push(base.build()),
                    1 => state.jobs.push(end("Complete").build()),
                    2 => state.jobs.push(end("Failed").build()),
                    _ => drop(state.missing.insert(uid(name))),
                }
            }
            state.missing.retain(|uid| state.cron_job.has_active(*uid));
            (state, now)
        })
}

proptest! {
    #[test]
    fn planning_again_after_applying_changes_nothing((mut state, now) in states()) {
        comes_to_rest(2, || {
            let decided = plan(&state, now);
            let before = state.cron_job.status.clone();
            state = applied(&state, &decided);
            !decided.cleanup.is_empty() || matches!(decided.run, Run::Start(_)) || state.cron_job.status != before
        });
    }

    #[test]
    fn the_order_of_jobs_makes_no_difference((state, now) in states()) {
        order_is_irrelevant(&state.jobs, |jobs| {
            let jobs = jobs.to_vec();
            let mut decided = plan(&Observed { cron_job: Arc::clone(&state.cron_job), jobs, missing: state.missing.clone(), edited_at: None }, now);
            // Notices are told in the order of the Jobs, which a cache gives by key.
            decided.notices.sort_by(|a, b| a.message.cmp(&b.message));
            decided
        });
    }

    #[test]
    fn nothing_is_touched_that_is_not_ours_or_still_runs_within_the_rules((state, now) in states()) {
        let Plan { cleanup, leave, notices: _, run, reason: _, next } = plan(&state, now);
        for deletion in &cleanup {
            let job = state.owned().find(|job| job.metadata.uid == deletion.uid).unwrap();
            prop_assert!(job.ended.is_some() && job.metadata.key == deletion.key);
        }
        for leaver in &leave {
            prop_assert!(state.cron_job.has_active(leaver.uid));
            prop_assert_eq!(leaver.why == Left::Missing, state.missing.contains(&leaver.uid));
        }
        let active = state.cron_job.status.active.len() - leave.len();
        if let Run::Start(start) = &run {
            prop_assert!(start.due <= now && Some(start.due) > state.cron_job.status.last_schedule_time.map(shared::api::time::Time::timestamp));
            let deadline = state.cron_job.spec.starting_deadline_seconds;
            prop_assert!(deadline.is_none_or(|seconds| now.as_second() - start.due.as_second() <= seconds));
            match format!("{:?}", state.cron_job.spec.concurrency_policy).as_str() {
                "Forbid" => prop_assert_eq!(active, 0),
                "Replace" => prop_assert_eq!(active, start.replace.len()),
                _ => prop_assert!(start.replace.is_empty()),
            }
        }
        // A key sleeps until there is something to do: never a busy loop.
        prop_assert!(next.is_none_or(|next| next >= Duration::from_millis(100)));
        let kept = |ended| state.owned().filter(|job| job.ended == Some(ended)).count();
        let limit = state.cron_job.spec.successful_jobs_history_limit.map(|limit| usize::try_from(limit).unwrap());
        let deleted = state.owned().filter(|job| job.ended == Some(Ended::Complete) && cleanup.iter().any(|deletion| deletion.uid == job.metadata.uid)).count();
        prop_assert_eq!(deleted, limit.map_or(0, |limit| kept(Ended::Complete).saturating_sub(limit)));
    }
}

#[test]
fn kinds_are_served_where_the_apiserver_has_them() {
    assert_eq!(CronJob::RESOURCE.object_path("ns", "a", "status"), "/apis/batch/v1/namespaces/ns/cronjobs/a/status");
}

mod reasons {
    use super::*;

    #[track_caller]
    fn check(observed: &Observed, now: &str, expected: impl Into<Value>) {
        assert_eq!(stage(&plan(observed, at(now))).reason, expected.into(), "at {now}");
    }

    #[test]
    fn a_cron_job_that_waits_says_for_what() {
        let next = |next: &str| json!({ "notDue": { "next": next } });
        check(&alone(&cron_job(HOURLY)), "09:59:30", next("2016-05-19T10:00:00Z"));
        let late = deadline(last_run(cron_job(HOURLY), at("09:00")), 10);
        let due = "2016-05-19T10:00:00Z";
        let too_late = json!({ "due": due, "deadlineSeconds": 10, "next": "2016-05-19T11:00:00Z" });
        check(&alone(&late), "10:12", json!({ "tooLate": too_late }));
        check(&alone(&cron_job(HOURLY).set(&["spec", "suspend"], true)), "10:01", "suspended");
        check(&alone(&cron_job(HOURLY).terminating()), "10:01", "beingDeleted");
        let zone = cron_job(HOURLY).set(&["spec", "timeZone"], "bad timezone");
        check(&alone(&zone), "10:01", json!({ "unknownTimeZone": { "zone": "bad timezone" } }));
        check(&alone(&cron_job("59 23 31 2 *")), "10:01", json!({ "neverDue": { "schedule": "59 23 31 2 *" } }));
        let error = "expected exactly 5 fields, found 1: [odd]";
        check(&alone(&cron_job("odd")), "10:01", json!({ "unparseable": { "schedule": "odd", "error": error } }));
        let bare = cron_job(HOURLY).set(&["spec", "jobTemplate"], json!({}));
        let error = "the job template has no spec";
        check(&alone(&bare), "10:01", json!({ "invalidTemplate": { "due": due, "error": error } }));
    }

    #[test]
    fn a_run_that_is_due_says_what_it_waits_for_or_replaces() {
        let due = "2016-05-19T10:00:00Z";
        let base = active(last_run(cron_job(HOURLY), at("09:00")), &["running"]);
        let running = |owner: &CronJob| vec![job("running", owner)];
        let of = |each: &str| observed(&policy(base.clone(), each), running);
        let starts = |replaced: Value| json!({ "due": { "due": due, "missed": "none", "replaced": replaced } });
        check(&of("Allow"), "10:01", starts(json!([])));
        check(&of("Replace"), "10:01", starts(json!(["running"])));
        check(&of("Forbid"), "10:01", json!({ "forbidden": { "due": due, "active": ["running"] } }));
        let listed = active(last_run(cron_job(HOURLY), at("09:00")), &[&name("10:00")]);
        check(&alone(&listed), "10:01", json!({ "started": { "due": due } }));
        let overdue = alone(&last_run(cron_job(HOURLY), at("2016-05-12T09:00")));
        check(&overdue, "10:00", json!({ "due": { "due": due, "missed": "many", "replaced": [] } }));
    }

    #[test]
    fn the_apiserver_is_asked_only_where_status_and_cache_differ() {
        let listed = active(cron_job(HOURLY), &["running"]);
        let running = |owner: &CronJob| vec![job("running", owner)];
        assert_eq!(plan_live_read(&observed(&listed, running)), None);
        let over = |owner: &CronJob| vec![ended(job("over", owner), "Complete", None, None)];
        assert_eq!(plan_live_read(&observed(&cron_job(HOURLY), over)), None);
        let others = |_: &CronJob| vec![job("running", &cron_job(HOURLY).uid_of("another").build::<CronJob>())];
        assert_eq!(plan_live_read(&observed(&cron_job(HOURLY), others)), None);

        let look = |observed: Observed| stage(&plan_live_read(&observed).unwrap());
        let missing = look(alone(&listed));
        assert_eq!(missing.text, "read live (running is listed, but not cached)");
        assert_eq!(missing.reason, json!({ "active": { "unlisted": [], "missing": ["running"] } }));
        let unlisted = look(observed(&cron_job(HOURLY), running));
        assert_eq!(unlisted.text, "read live (running runs, but is not listed)");
        assert_eq!(unlisted.reason, json!({ "active": { "unlisted": ["running"], "missing": [] } }));
    }
}
