//! Diagnosis of Jobs and `CronJobs`. The operator tells when a `CronJob` is due; schedules are not parsed here.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::cause::Cause;
use crate::cause::batch::Batch;
use crate::cause::cron::Cron;
use crate::cause::refusal::Refusal;
use crate::cause::trouble::Trouble;
use crate::cause::workload::{Pods, Workload};
use crate::diagnose::{operators, pods, workload};
use crate::evidence::{Evidence, event_time};
use crate::object::{Condition, Object};
use crate::words::line;

/// Upstream: `JobControllerName`, staging/src/k8s.io/api/batch/v1/types.go.
const JOB_CONTROLLER: &str = "kubernetes.io/job-controller";
/// Tolerance between the time of an event and the last start.
const SOON: SignedDuration = SignedDuration::from_secs(1);

pub(crate) fn job(evidence: &Evidence, job: Object<'_>) -> Cause {
    let manager = job.text("/spec/managedBy");
    if !manager.is_empty() && manager != JOB_CONTROLLER {
        return Batch::ManagedBy { controller: manager.to_owned() }.into();
    }
    if let Some(ended) = ended(evidence, job) {
        return ended.into();
    }
    if job.is("/spec/suspend") {
        return Batch::JobSuspended.into();
    }
    refused(evidence, job).unwrap_or_else(|| under_way(evidence, job).into())
}

fn ended(evidence: &Evidence, job: Object<'_>) -> Option<Batch> {
    let holding = |names: [&str; 2]| {
        let found = names.iter().find_map(|name| job.condition(name));
        found.filter(|condition| condition.status == "True")
    };
    if let Some(failed) = holding(["Failed", "FailureTarget"]) {
        return Some(failure(evidence, job, failed));
    }
    let complete = holding(["Complete", "Complete"])?;
    let at = job.time("/status/completionTime").or(complete.since);
    let ttl = job.number("/spec/ttlSecondsAfterFinished").map(SignedDuration::from_secs);
    let expires = at.zip(ttl).and_then(|(at, ttl)| at.checked_add(ttl).ok());
    Some(Batch::Complete { succeeded: job.count("/status/succeeded"), expires })
}

fn failure(evidence: &Evidence, job: Object<'_>, failed: Condition<'_>) -> Batch {
    let indexes = job.text("/status/failedIndexes").to_owned();
    match failed.reason {
        "BackoffLimitExceeded" => Batch::BackoffLimit {
            limit: job.number("/spec/backoffLimit").unwrap_or(6),
            failed: job.count("/status/failed"),
            last: last_failure(evidence, job),
        },
        "DeadlineExceeded" => Batch::Deadline { seconds: job.count("/spec/activeDeadlineSeconds") },
        "PodFailurePolicy" => Batch::PodFailurePolicy { message: line(failed.message) },
        "FailedIndexes" => Batch::FailedIndexes { indexes, limit: None },
        "MaxFailedIndexesExceeded" => Batch::FailedIndexes { indexes, limit: job.number("/spec/maxFailedIndexes") },
        reason => Batch::JobFailed { reason: reason.to_owned(), message: line(failed.message) },
    }
}

fn pods_of<'a>(evidence: &'a Evidence, job: Object<'a>) -> impl Iterator<Item = Object<'a>> {
    evidence.owned_by(job.uid()).filter(|pod| pod.kind() == "Pod")
}

fn last_failure(evidence: &Evidence, job: Object<'_>) -> String {
    let failed = pods_of(evidence, job).filter(|pod| pod.text("/status/phase") == "Failed");
    let last = failed.max_by_key(|pod| pod.created());
    let trouble = last.and_then(|pod| pods::trouble(evidence, pod));
    match trouble {
        Some(Trouble::CrashLoop { container, exit_code, reason, .. }) => {
            format!("container {container} exited with code {exit_code} ({reason})")
        }
        Some(trouble) => trouble.to_string(),
        None => String::new(),
    }
}

fn wanted(job: Object<'_>) -> i64 {
    let parallelism = job.number("/spec/parallelism").unwrap_or(1);
    let left = job.number("/spec/completions").map(|of| of - job.count("/status/succeeded"));
    parallelism.min(left.unwrap_or(parallelism))
}

fn refused(evidence: &Evidence, job: Object<'_>) -> Option<Cause> {
    let active = pods_of(evidence, job).filter(|pod| pods::is_active(*pod)).count();
    let missing = wanted(job) - i64::try_from(active).unwrap_or(i64::MAX);
    if missing <= 0 {
        return None;
    }
    let (refusal, next_try) = workload::refusal(evidence, job)?;
    if let Some(absent) = operators::absent(evidence, job).filter(|_| next_try.is_none()) {
        return Some(absent);
    }
    if let Refusal::NotAllowed { message } = &refusal {
        return Some(operators::without_role(job, message));
    }
    let missing = Pods { count: missing, of: wanted(job) };
    Some(Workload::Refused { missing, by: format!("Job {}", job.name()), refusal, next_try }.into())
}

fn under_way(evidence: &Evidence, job: Object<'_>) -> Batch {
    let troubles = pods_of(evidence, job).filter(|pod| pods::is_active(*pod));
    let troubles = troubles.filter_map(|pod| Some((pod, pods::trouble(evidence, pod)?)));
    // A Job's pods need not become ready.
    let is_wrong = |trouble: &Trouble| !trouble.is_passing() && !matches!(trouble, Trouble::NotReady { .. });
    let worst = troubles.filter(|(_, trouble)| is_wrong(trouble)).max_by_key(|(_, trouble)| trouble.weight());
    if let Some((pod, trouble)) = worst {
        return Batch::JobPod { pod: format!("pod {}", pod.name()), trouble };
    }
    let (failed, active) = (job.count("/status/failed"), job.count("/status/active"));
    if failed > 0 && active == 0 {
        let limit = job.number("/spec/backoffLimit").unwrap_or(6);
        return Batch::PodsFail { failed, limit, next_try: due(evidence, job), last: last_failure(evidence, job) };
    }
    Batch::Running { active, succeeded: job.count("/status/succeeded"), completions: job.number("/spec/completions") }
}

fn due(evidence: &Evidence, object: Object<'_>) -> Option<Timestamp> {
    let answers = evidence.operators.iter().filter_map(|asked| operators::answer(asked, object));
    let timers = answers.flat_map(|answer| &answer.keys).filter_map(|key| key.standing.timer.as_ref());
    timers.map(|timer| timer.due).min()
}

pub(crate) fn cron_job(evidence: &Evidence, cron_job: Object<'_>) -> Cause {
    if cron_job.is("/spec/suspend") {
        return Cron::CronJobSuspended.into();
    }
    if let Some(cause) = complaint(evidence, cron_job) {
        return cause.into();
    }
    let own = evidence.owned_by(cron_job.uid()).filter(|job| job.kind() == "Job");
    let active: Vec<String> =
        own.filter(|job| !job.holds("Complete") && !job.holds("Failed")).map(Object::called).collect();
    let is_waiting =
        reason(evidence, cron_job, "forbidden") || newest(evidence, cron_job, &["JobAlreadyActive"]).is_some();
    if !active.is_empty() && cron_job.text("/spec/concurrencyPolicy") == "Forbid" && is_waiting {
        return Cron::Forbidden { active }.into();
    }
    if !active.is_empty() {
        return Cron::CronJobActive { active }.into();
    }
    Cron::NotDue {
        next: due(evidence, cron_job),
        last: cron_job.time("/status/lastScheduleTime"),
        schedule: cron_job.text("/spec/schedule").to_owned(),
    }
    .into()
}

/// The newest event with one of these reasons, unless a Job was started since.
fn newest<'a>(evidence: &'a Evidence, cron_job: Object<'a>, reasons: &[&str]) -> Option<Object<'a>> {
    let event = evidence.event(cron_job, reasons)?;
    let started = cron_job.time("/status/lastScheduleTime");
    let is_newer = event_time(event).zip(started).is_none_or(|(told, started)| told.duration_since(started) > -SOON);
    is_newer.then_some(event)
}

fn reason(evidence: &Evidence, object: Object<'_>, case: &str) -> bool {
    let answers = evidence.operators.iter().filter_map(|asked| operators::answer(asked, object));
    let stages = answers.flat_map(|answer| &answer.keys).flat_map(|key| &key.now);
    stages.into_iter().any(|stage| operators::is_case(&stage.reason, case))
}

fn too_late(evidence: &Evidence, cron_job: Object<'_>) -> Option<String> {
    let answers = evidence.operators.iter().filter_map(|asked| operators::answer(asked, cron_job));
    let mut stages = answers.flat_map(|answer| &answer.keys).flat_map(|key| &key.now);
    let reason = stages.find_map(|stage| stage.reason.get("tooLate"))?;
    let due = reason.get("due").and_then(Value::as_str).unwrap_or_default();
    Some(if due.is_empty() { String::new() } else { format!("due at {due}") })
}

fn complaint(evidence: &Evidence, cron_job: Object<'_>) -> Option<Cron> {
    let told = |reasons: &[&str]| newest(evidence, cron_job, reasons).map(|event| line(event.text("/message")));
    let zone = cron_job.text("/spec/timeZone");
    if told(&["UnknownTimeZone"]).is_some() || reason(evidence, cron_job, "unknownTimeZone") {
        return Some(Cron::UnknownTimeZone { zone: zone.to_owned() });
    }
    let words = ["UnParseableCronJobSchedule", "UnparseableSchedule", "UnsupportedSchedule", "InvalidSchedule"];
    let is_bad = ["unparseable", "neverDue"].iter().any(|case| reason(evidence, cron_job, case));
    if let Some(message) = told(&words).or_else(|| is_bad.then(String::new)) {
        return Some(Cron::InvalidSchedule { schedule: cron_job.text("/spec/schedule").to_owned(), message });
    }
    if let Some(message) = told(&["TooManyMissedTimes"]) {
        return Some(Cron::TooManyMissed { message });
    }
    let seconds = cron_job.number("/spec/startingDeadlineSeconds")?;
    let message = told(&["MissSchedule"]).or_else(|| too_late(evidence, cron_job))?;
    Some(Cron::MissedDeadline { seconds, message })
}
