//! Jobs and CronJobs.

use cli::cause::State::{AtRest, InProgress, Stuck};
use cli::evidence::Evidence;
use serde_json::{Value, json};
use shared::api::explain::Timer;

use super::scene::{Row, at, event, evidence, lease, object, operator, owned, pod_in, row, says, time, with};

fn job(rest: &Value) -> Value {
    let base = json!({
        "spec": { "parallelism": 1, "completions": 1, "backoffLimit": 3 },
        "status": { "startTime": time(-600) },
    });
    with(object("batch/v1", "Job", "load", &base), rest)
}

/// A pod of the Job, in this state.
fn job_pod(state: &Value, rest: &Value) -> Value {
    owned(pod_in(state, rest), "Job", "load")
}

fn failed(reason: &str, message: &str, rest: &Value) -> Evidence {
    let condition = json!([{ "type": "Failed", "status": "True", "reason": reason, "message": message }]);
    evidence(vec![with(job(&json!({ "status": { "conditions": condition, "failed": 4 } })), rest)])
}

fn ended_pod() -> Value {
    let ended = json!({ "state": { "terminated": { "exitCode": 2, "reason": "Error" } } });
    job_pod(&ended, &json!({ "status": { "phase": "Failed" } }))
}

fn failures() -> Vec<Row> {
    let mut limit = failed("BackoffLimitExceeded", "Job has reached the specified backoff limit", &json!({}));
    limit.objects.push(ended_pod());
    let indexed = |rest: &Value| with(json!({ "status": { "failedIndexes": "1,3-5" } }), rest);
    vec![
        row(
            limit,
            Stuck,
            "load: failed: 4 pods failed (backoffLimit 3); last failure: container main exited with code 2 (Error)",
        ),
        row(
            failed("DeadlineExceeded", "", &json!({ "spec": { "activeDeadlineSeconds": 60 } })),
            Stuck,
            "load: failed: not finished within 60 s (activeDeadlineSeconds)",
        ),
        row(
            failed(
                "PodFailurePolicy",
                "Container main for pod team/load-x failed with exit code 42 matching FailJob rule at index 0",
                &json!({}),
            ),
            Stuck,
            "load: failed by its pod failure policy: Container main for pod team/load-x failed with exit code 42 matching FailJob rule at index 0",
        ),
        row(failed("FailedIndexes", "", &indexed(&json!({}))), Stuck, "load: failed: indexes 1,3-5 failed"),
        row(
            failed("MaxFailedIndexesExceeded", "", &indexed(&json!({ "spec": { "maxFailedIndexes": 3 } }))),
            Stuck,
            "load: failed: more than 3 indexes failed: 1,3-5 (maxFailedIndexes)",
        ),
        row(failed("Unheard", "of it", &json!({})), Stuck, "load: failed (Unheard): of it"),
    ]
}

fn jobs() -> Vec<Row> {
    let done = json!([{ "type": "Complete", "status": "True" }]);
    let done = json!({ "status": { "conditions": done, "succeeded": 1, "completionTime": time(-60) } });
    let with_ttl = with(done.clone(), &json!({ "spec": { "ttlSecondsAfterFinished": 100 } }));
    let failing = || evidence(vec![job(&json!({ "status": { "failed": 2, "active": 0 } })), ended_pod()]);
    let timed = says(failing(), "job-operator", ("jobs.batch", "load"), |said| {
        said.keys[0].standing.timer = Some(Timer { due: at(40), purpose: "back-off".to_owned() });
    });
    let image = json!({ "state": { "waiting": { "reason": "ErrImagePull" } } });
    let quota = "pods \"load-\" is forbidden: exceeded quota: team, requested: pods=1, used: pods=9, limited: pods=9";
    let refused = || evidence(vec![job(&json!({})), event("load", "FailedCreate", quota, -3)]);
    vec![
        row(
            evidence(vec![job(&json!({ "spec": { "suspend": true } }))]),
            AtRest,
            "load: suspended (spec.suspend): no pods run until it is resumed",
        ),
        row(
            evidence(vec![job(&json!({ "spec": { "managedBy": "kueue.x-k8s.io/multikueue" } }))]),
            AtRest,
            "load: managed by `kueue.x-k8s.io/multikueue` (spec.managedBy), not by job-operator",
        ),
        row(evidence(vec![job(&done)]), AtRest, "load: complete: 1 pod succeeded"),
        row(
            evidence(vec![job(&with_ttl)]),
            AtRest,
            "load: complete: 1 pod succeeded; ttl-after-finished-operator deletes it in 40 s",
        ),
        row(
            timed,
            Stuck,
            "load: pods keep failing: 2 failed, backoffLimit 3, next retry in 40 s; last failure: container main exited with code 2 (Error)",
        ),
        row(
            evidence(vec![job(&json!({ "status": { "active": 1 } })), job_pod(&image, &json!({}))]),
            Stuck,
            "load: pod web-a: cannot pull image `web:2` (ErrImagePull)",
        ),
        row(
            refused(),
            Stuck,
            "load: 1 of 1 pod missing: Job load cannot create pods: quota `team` exceeded (pods 9/9)",
        ),
        row(
            operator(refused(), "job-operator", |asked| asked.lease = lease("", -2)),
            Stuck,
            "load: not reconciled: no replica of job-operator holds its Lease",
        ),
        row(
            evidence(vec![job(&json!({ "status": { "active": 1 } }))]),
            InProgress,
            "load: running: 1 pod active, 0 of 1 succeeded",
        ),
    ]
}

fn cron_job(rest: &Value) -> Value {
    let base = json!({ "spec": { "schedule": "*/5 * * * *" }, "status": { "lastScheduleTime": time(-100) } });
    with(object("batch/v1", "CronJob", "nightly", &base), rest)
}

fn told(reason: &str, message: &str, rest: &Value) -> Evidence {
    evidence(vec![cron_job(rest), event("nightly", reason, message, -5)])
}

fn cron_jobs() -> Vec<Row> {
    let running =
        || owned(job(&json!({ "metadata": { "name": "nightly-1", "uid": "nightly-1" } })), "CronJob", "nightly");
    let forbid = json!({ "spec": { "concurrencyPolicy": "Forbid" } });
    let due = says(evidence(vec![cron_job(&json!({}))]), "cronjob-operator", ("cronjobs.batch", "nightly"), |said| {
        said.keys[0].standing.timer = Some(Timer { due: at(200), purpose: "next run".to_owned() });
    });
    let missed = || told("TooManyMissedTimes", "too many missed start times: 4321", &json!({}));
    let deadline = json!({ "spec": { "startingDeadlineSeconds": 5 } });
    let late = || told("MissSchedule", "Missed scheduled time to start a job", &deadline);
    let mut forbidden = told("JobAlreadyActive", "Not starting job", &forbid);
    forbidden.objects.push(running());
    let unknown = says(
        evidence(vec![cron_job(&json!({ "spec": { "timeZone": "Mars/Base" } }))]),
        "cronjob-operator",
        ("cronjobs.batch", "nightly"),
        |said| {
            said.keys[0].now[0].reason = json!("unknownTimeZone");
        },
    );
    vec![
        row(
            evidence(vec![cron_job(&json!({ "spec": { "suspend": true } }))]),
            AtRest,
            "nightly: suspended (spec.suspend): no Jobs are started",
        ),
        row(
            told("UnknownTimeZone", "invalid timeZone", &json!({ "spec": { "timeZone": "Europe/Nowhere" } })),
            Stuck,
            "nightly: unknown time zone `Europe/Nowhere`",
        ),
        row(unknown, Stuck, "nightly: unknown time zone `Mars/Base`"),
        row(
            told("UnparseableSchedule", "unparseable schedule: x", &json!({ "spec": { "schedule": "x" } })),
            Stuck,
            "nightly: invalid schedule `x`: unparseable schedule: x",
        ),
        row(missed(), Stuck, "nightly: missed too many scheduled times: too many missed start times: 4321"),
        // An event outlasts who told it.
        row(
            operator(missed(), "cronjob-operator", |asked| asked.lease = lease("", -2)),
            Stuck,
            "nightly: not reconciled: no replica of cronjob-operator holds its Lease",
        ),
        row(
            operator(late(), "cronjob-operator", |asked| asked.lease = lease("op-0_1", -60)),
            Stuck,
            "nightly: not reconciled: the Lease of cronjob-operator expired 45 s ago (last holder op-0)",
        ),
        row(
            late(),
            Stuck,
            "nightly: missed its scheduled time by more than 5 s (startingDeadlineSeconds): Missed scheduled time to start a job",
        ),
        row(forbidden, Stuck, "nightly: waiting for job/nightly-1 to finish (concurrencyPolicy: Forbid)"),
        row(evidence(vec![cron_job(&json!({})), running()]), InProgress, "nightly: running: job/nightly-1"),
        row(due, AtRest, "nightly: not due yet: schedule `*/5 * * * *`, next in 3 min, last 100 s ago"),
    ]
}

pub(crate) fn rows() -> Vec<Row> {
    [failures(), jobs(), cron_jobs()].concat()
}
