//! Pods whose finalizer has lost its meaning. Upstream: `TestSyncOrphanPod`, `pkg/controller/job/job_controller_test.go`.

use job_operator::observe::OrphanPod;
use job_operator::plan::orphan::plan_orphan;
use serde_json::json;
use shared::testing::{ObjectBuilder, uid};

use crate::fixtures::{FINALIZER, Spec, job, orphan, pod, untracked};

#[track_caller]
fn check(pod: &ObjectBuilder, job: Option<&ObjectBuilder>, expected: &str) {
    let observed =
        OrphanPod { pod: pod.build(), job: job.map(ObjectBuilder::build), is_cached: true, is_job_cached: true };
    assert_eq!(plan_orphan(&observed).to_string(), expected);
}

fn of(api_version: &str, kind: &str) -> ObjectBuilder {
    let owner = json!([{ "apiVersion": api_version, "kind": kind, "name": "pi", "uid": uid("pi").to_string(), "controller": true }]);
    pod("a", "Running").set(&["metadata", "ownerReferences"], owner)
}

#[test]
fn a_finalizer_goes_when_no_job_will_count_the_pod() {
    let a = || pod("a", "Running");
    let tracked_orphan = orphan("a", "Running").set(&["metadata", "finalizers"], json!([FINALIZER]));
    check(&untracked("a", "Running"), None, "nothing (no finalizer)");
    check(&tracked_orphan, None, "remove finalizer (no controller)");
    check(&a(), None, "remove finalizer (its Job is gone)");
    check(&a(), Some(&job(1, 1)), "nothing (its Job is running)");
    check(&a(), Some(&job(1, 1).condition("Complete", "True", "", "")), "remove finalizer (its Job is finished)");
    check(&a(), Some(&job(1, 1).condition("Failed", "True", "", "")), "remove finalizer (its Job is finished)");
    check(&a(), Some(&job(1, 1).condition("Failed", "False", "", "")), "nothing (its Job is running)");
    let external = job(1, 1).with("managedBy", "example.com/x").condition("Complete", "True", "", "");
    check(&a(), Some(&external), "nothing (another controller manages its Job)");
    check(&of("batch/v1", "CronJob"), None, "nothing (not owned by a Job)");
    check(&of("example/v1", "Job"), None, "nothing (not owned by a Job)");
    check(&of("batch/v1", "Job"), None, "remove finalizer (its Job is gone)");
}

#[test]
fn a_pod_that_no_watch_shows_stays_its_jobs_only_where_the_job_selects_it() {
    #[track_caller]
    fn check(pod: &ObjectBuilder, job: &ObjectBuilder, expected: &str) {
        let observed = OrphanPod { pod: pod.build(), job: Some(job.build()), is_cached: false, is_job_cached: true };
        assert_eq!(plan_orphan(&observed).to_string(), expected);
    }
    let stripped = pod("a", "Running").set(&["metadata", "labels"], json!({}));
    check(&pod("a", "Running"), &job(1, 1), "nothing (its Job is running)");
    check(&stripped, &job(1, 1), "disown (its Job does not select it)");
    let deleted = job(1, 1).terminating();
    check(&stripped, &deleted, "remove finalizer (its Job is being deleted and does not select it)");
    let unreadable = json!({ "matchExpressions": [{ "key": "job", "operator": "Like" }] });
    check(&stripped, &job(1, 1).with("selector", unreadable), "nothing (its Job is running)");
    check(&stripped, &job(1, 1).condition("Complete", "True", "", ""), "remove finalizer (its Job is finished)");
}
