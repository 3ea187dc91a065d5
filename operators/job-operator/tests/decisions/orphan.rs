//! Pods whose finalizer has lost its meaning. Upstream: `TestSyncOrphanPod`, `pkg/controller/job/job_controller_test.go`.

use job_operator::observe::OrphanPod;
use job_operator::plan::orphan::plan_orphan;
use serde_json::json;
use shared::testing::{ObjectBuilder, uid};

use crate::fixtures::{FINALIZER, Spec, job, orphan, pod, untracked};

#[track_caller]
fn check(pod: &ObjectBuilder, job: Option<&ObjectBuilder>, expected: &str) {
    let observed = OrphanPod { pod: pod.build(), job: job.map(ObjectBuilder::build), is_job_cached: true };
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
    check(&tracked_orphan, None, "let go (no controller)");
    check(&a(), None, "let go (its Job is gone)");
    check(&a(), Some(&job(1, 1)), "nothing (its Job goes on)");
    check(&a(), Some(&job(1, 1).condition("Complete", "True", "", "")), "let go (its Job is finished)");
    check(&a(), Some(&job(1, 1).condition("Failed", "True", "", "")), "let go (its Job is finished)");
    check(&a(), Some(&job(1, 1).condition("Failed", "False", "", "")), "nothing (its Job goes on)");
    let external = job(1, 1).with("managedBy", "example.com/x").condition("Complete", "True", "", "");
    check(&a(), Some(&external), "nothing (its Job is another controller's)");
    check(&of("batch/v1", "CronJob"), None, "nothing (not a Job's)");
    check(&of("example/v1", "Job"), None, "nothing (not a Job's)");
    check(&of("batch/v1", "Job"), None, "let go (its Job is gone)");
}
