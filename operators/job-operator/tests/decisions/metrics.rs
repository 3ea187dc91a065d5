//! The operator's own metrics. Upstream: `pkg/controller/job/metrics/metrics.go`.

use std::time::Duration;

use job_operator::metrics::{JobMetrics, action};
use job_operator::objects::Job;
use job_operator::objects::status::JobStatus;
use job_operator::plan::tracking::Executed;
use job_operator::plan::{Pods, plan};
use serde_json::json;
use shared::process::metrics::{Metrics, StaleSyncSkips};
use shared::testing::{NOW, ObjectBuilder};

use crate::fixtures::{Case, Spec, case, exits, indexed, job, long_ago, pod};

/// The counters of this operator that are not zero after `count`, without what all names have in common.
fn counted(count: impl FnOnce(&JobMetrics)) -> Vec<String> {
    let registry = Metrics::new("job-operator");
    count(&JobMetrics::register(&registry));
    lines_of(&registry)
}

fn lines_of(registry: &Metrics) -> Vec<String> {
    let text = registry.to_text();
    let ours = text.lines().filter_map(|line| line.strip_prefix("job_controller_"));
    let mut lines: Vec<String> = ours.filter(|line| !line.contains("_bucket{")).map(str::to_owned).collect();
    lines.retain(|line| !line.contains("_sum{"));
    lines.sort();
    lines
}

fn status(text: &str, failed: i32) -> JobStatus {
    JobStatus { completed_indexes: text.into(), failed, ..JobStatus::default() }
}

#[test]
fn a_sync_is_counted_by_what_it_did() {
    let synced = |case: Case, is_ok: bool| {
        let observed = case.observed();
        let plan = plan(&observed, NOW);
        let action = action(&plan).expect("there is something to do");
        counted(|metrics| metrics.observe_sync(&observed.job, action, is_ok, Duration::from_millis(5)))
    };
    let labels = |mode: &str, result: &str, action: &str| {
        let labels = format!("{{completion_mode=\"{mode}\",result=\"{result}\",action=\"{action}\"}}");
        vec![format!("job_sync_duration_seconds_count{labels} 1"), format!("job_syncs_total{labels} 1")]
    };
    let plain = || job(1, 1);
    let two = || [pod("a", "Running"), pod("b", "Running")];
    assert_eq!(synced(case(plain(), []), true), labels("NonIndexed", "success", "pods_created"));
    assert_eq!(synced(case(indexed(1, 1), []), false), labels("Indexed", "error", "pods_created"));
    assert_eq!(synced(case(plain(), two()), true), labels("NonIndexed", "success", "pods_deleted"));
    assert_eq!(synced(case(plain(), [pod("a", "Running")]), true), labels("NonIndexed", "success", "tracking"));
    assert_eq!(synced(case(plain(), [pod("a", "Failed")]), true), labels("NonIndexed", "success", "pods_created"));
    let no_index_left = indexed(2, 2).with("backoffLimitPerIndex", 0).said("failedIndexes", "0");
    let one = [crate::fixtures::pod_of(1, "a", "Running")];
    assert_eq!(synced(case(no_index_left, one), true), labels("Indexed", "success", "pods_created"));
    assert_eq!(synced(case(plain(), []).outstanding(), true), labels("NonIndexed", "success", "reconciling"));
    let over = plain().with("backoffLimit", 0);
    assert_eq!(synced(case(over, [pod("a", "Failed")]), true), labels("NonIndexed", "success", "reconciling"));
}

#[test]
fn pods_are_counted_when_a_status_has_counted_them() {
    let plain: std::sync::Arc<Job> = job(1, 9).build();
    let after = JobStatus { succeeded: 5, failed: 3, ..JobStatus::default() };
    let before = JobStatus { succeeded: 2, failed: 2, ..JobStatus::default() };
    let expected = [
        r#"job_pods_finished_total{completion_mode="NonIndexed",result="failed"} 1"#,
        r#"job_pods_finished_total{completion_mode="NonIndexed",result="succeeded"} 3"#,
    ];
    assert_eq!(counted(|metrics| metrics.count_status(&plain, &before, &after)), expected);
    assert!(counted(|metrics| metrics.count_status(&plain, &after, &after)).is_empty());

    let of = |job: ObjectBuilder, before: &JobStatus, after: &JobStatus| {
        let job = job.build::<Job>();
        counted(|metrics| metrics.count_status(&job, before, after))
    };
    // Only indexes that the Job has now.
    let expected = [
        r#"job_finished_indexes_total{status="succeeded",backoffLimit="global"} 1"#,
        r#"job_pods_finished_total{completion_mode="Indexed",result="succeeded"} 1"#,
    ];
    assert_eq!(of(indexed(1, 2), &status("3", 0), &status("1", 0)), expected);
    assert!(of(indexed(1, 2), &status("0,1", 0), &status("0", 0)).is_empty(), "what falls is not counted");
    let failing = |text: &str| JobStatus { failed_indexes: Some(text.into()), ..status("", 0) };
    let expected = [r#"job_finished_indexes_total{status="failed",backoffLimit="perIndex"} 2"#];
    let limited = indexed(1, 9).with("backoffLimitPerIndex", 1);
    assert_eq!(of(limited.clone(), &failing("4"), &failing("2-4")), expected);
    assert_eq!(of(limited, &status("", 0), &failing("1,3")), expected);
}

#[test]
fn new_pods_are_counted_by_what_they_stand_in_for() {
    let made = |case: Case, created: usize, failure: Option<&str>| {
        let plan = plan(&case.observed(), NOW);
        assert!(matches!(plan.pods, Pods::Create(_)), "{plan}");
        let executed = Executed { created, ..case.executed(plan) };
        counted(|metrics| metrics.count_created(&executed, failure.is_some()))
    };
    let line = |reason: &str, status: &str, count: usize| {
        format!("job_pods_creation_total{{reason=\"{reason}\",status=\"{status}\"}} {count}")
    };
    assert_eq!(made(case(job(3, 3), []), 3, None), [line("new", "succeeded", 3)]);
    assert_eq!(made(case(job(3, 3), []), 1, Some("quota")), [line("new", "failed", 1), line("new", "succeeded", 1)]);
    let failed = || long_ago(pod("a", "Failed"));
    assert_eq!(made(case(job(1, 1), [failed()]), 1, None), [line("recreate_terminating_or_failed", "succeeded", 1)]);
    let only_failed = || job(2, 2).with("podReplacementPolicy", "Failed");
    assert_eq!(made(case(only_failed(), [failed()]), 1, None), [line("recreate_failed", "succeeded", 1)]);
    let going = pod("a", "Running").terminating();
    assert_eq!(made(case(only_failed(), [going]), 1, None), [line("recreate_terminating_or_failed", "succeeded", 1)]);
}

#[test]
fn ends_and_actions_of_a_policy_are_counted() {
    let rules = json!({ "rules": [{ "action": "FailJob", "onExitCodes": { "operator": "In", "values": [2] } }] });
    let failing = job(1, 1).with("podFailurePolicy", rules);
    let case = case(failing, [exits(pod("a", "Failed"), "main", 2)]);
    let (_, tracking) = case.tracking();
    let end = tracking.end.as_ref().unwrap();
    let lines = counted(|metrics| {
        metrics.count_policy_actions(&tracking.policy_actions);
        metrics.count_finished(&case.job.build(), &end.ending);
        metrics.count_tracked(true);
        metrics.count_tracked(false);
        metrics.count_external("x.io/y");
    });
    let expected = [
        r#"jobs_by_external_controller_total{controller_name="x.io/y"} 1"#,
        r#"jobs_finished_total{completion_mode="NonIndexed",result="failed",reason="PodFailurePolicy"} 1"#,
        r#"pod_failures_handled_by_failure_policy_total{action="FailJob"} 1"#,
        r#"terminated_pods_tracking_finalizer_total{event="add"} 1"#,
        r#"terminated_pods_tracking_finalizer_total{event="delete"} 1"#,
    ];
    assert_eq!(lines, expected);
}

#[test]
fn held_keys_are_counted_by_resource() {
    let registry = Metrics::new("job-operator");
    let skips = StaleSyncSkips::register(&registry, "job_controller_stale_sync_skips", "");
    skips.count("jobs.batch");
    skips.count("pods");
    let expected = [
        r#"stale_sync_skips_total{group="",resource="pods"} 1"#,
        r#"stale_sync_skips_total{group="batch",resource="jobs"} 1"#,
    ];
    assert_eq!(lines_of(&registry), expected);
}
