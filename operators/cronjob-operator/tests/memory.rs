//! The memory that the cached views of a tenant's objects take.

use std::fs::read_to_string;

use cronjob_operator::objects::CronJob;
use serde_json::json;
use shared::testing::{enlarged, object};

/// The anonymous memory of this process in KiB.
fn anonymous() -> i64 {
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or_default();
    line.trim_end_matches("kB").trim().parse().unwrap_or_default()
}

/// etcd stores objects of up to 1.5 MiB; a limit of 64 MiB would hold 45 of them whole.
#[test]
fn hundreds_of_the_largest_cron_jobs_fit_into_a_small_limit() {
    let read = |number: usize| -> CronJob {
        let template = json!({ "spec": { "template": enlarged(json!({})) } });
        let cron_job = object("batch/v1", "CronJob", &format!("large-{number}"))
            .set(&["spec", "schedule"], "* * * * *")
            .set(&["spec", "suspend"], true)
            .set(&["spec", "jobTemplate"], template);
        serde_json::from_value(cron_job.json().clone()).unwrap()
    };
    // The first ones show how much reading takes for a moment.
    let first: Vec<CronJob> = (0..4).map(read).collect();
    let before = anonymous();
    let cached: Vec<CronJob> = (0..300).map(read).collect();
    let taken = anonymous() - before;
    assert!(before > 0 && taken < 16 * 1024, "{taken} KiB for {} CronJobs", cached.len());
    assert!(first.iter().chain(&cached).all(|cron_job| cron_job.spec.job_template.whole().is_none()));
}
