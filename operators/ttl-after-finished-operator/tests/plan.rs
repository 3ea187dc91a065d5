//! When a finished Job is deleted: upstream's cases, and what holds for every Job.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::api::object::ResourceVersion;
use shared::testing::{NOW, ObjectBuilder, ago, object, uid};
use shared::working::control::Preconditions;
use ttl_after_finished_operator::objects::Job;
use ttl_after_finished_operator::observe::Observed;
use ttl_after_finished_operator::plan::{Plan, needs_cleanup, plan};

fn job(ttl: impl Into<Value>) -> ObjectBuilder {
    object("batch/v1", "Job", "a").set(&["spec", "ttlSecondsAfterFinished"], ttl)
}

fn ended(job: ObjectBuilder, conditions: &Value) -> ObjectBuilder {
    job.set(&["status", "conditions"], conditions.clone())
}

fn condition(type_: &str, status: &str, seconds_ago: i64) -> Value {
    json!({ "type": type_, "status": status, "lastTransitionTime": ago(seconds_ago).to_string() })
}

fn check(job: &ObjectBuilder, expected: &str) {
    let job: Arc<Job> = job.build();
    let decided = plan(&Observed { job: Arc::clone(&job) }, NOW);
    assert_eq!(decided.to_string(), expected);
    // A Job that wakes its key must be worth a sync, and the other way round.
    let is_kept = matches!(decided, Plan::Keep(_)) && !expected.contains("time unknown");
    assert_eq!(needs_cleanup(&job), !is_kept, "{expected}");
}

/// Upstream: `TestTimeLeft`.
#[test]
fn a_job_waits_from_its_end_until_its_time_is_over() {
    for type_ in ["Complete", "Failed"] {
        let finished = |ttl: i32, seconds_ago| ended(job(ttl), &json!([condition(type_, "True", seconds_ago)]));
        check(&finished(0, 0), "delete (expired 2026-01-01T12:00:00Z)");
        check(&finished(15, 10), "wait 5s (expires 2026-01-01T12:00:05Z)");
        check(&finished(10, 10), "delete (expired 2026-01-01T12:00:00Z)");
        check(&finished(10, 15), "delete (expired 2026-01-01T11:59:55Z)");
        // A clock that was ahead.
        check(&finished(10, -15), "wait 25s (expires 2026-01-01T12:00:25Z)");
        check(&finished(i32::MAX, 0), "wait 596523h14m7s (expires 2094-01-19T15:14:07Z)");
    }
}

#[test]
fn a_job_that_goes_on_or_has_no_time_to_live_is_kept() {
    let done = json!([condition("Complete", "True", 99)]);
    check(&job(0), "keep (not finished)");
    check(&ended(job(0), &json!([condition("Complete", "False", 99)])), "keep (not finished)");
    check(&ended(job(0), &json!([condition("Suspended", "True", 99)])), "keep (not finished)");
    check(&ended(job(0), &json!([condition("FailureTarget", "True", 99)])), "keep (not finished)");
    check(&ended(job(Value::Null), &done), "keep (no time to live)");
    check(&ended(job(0), &done).terminating(), "keep (being deleted)");
    check(&ended(job(0), &done).set(&["spec", "managedBy"], "x.io/y"), "delete (expired 2026-01-01T11:58:21Z)");
    let timeless = json!([{ "type": "Failed", "status": "True" }]);
    check(&ended(job(0), &timeless), "keep (finished, time unknown)");
}

#[test]
fn only_the_job_in_the_state_that_was_read_is_deleted() {
    let expired = ended(job(0), &json!([condition("Complete", "True", 1)])).set(&["metadata", "resourceVersion"], "77");
    let Plan::Delete { preconditions, .. } = plan(&Observed { job: expired.build() }, NOW) else {
        unreachable!("it is over")
    };
    let expected = Preconditions { uid: uid("a"), resource_version: Some(ResourceVersion(77)) };
    assert_eq!(preconditions, expected);
}

proptest! {
    #[test]
    fn a_job_is_deleted_when_what_was_left_has_passed_and_not_before(
        ttl in 0_i32..,
        since in -100_000_i64..1_000_000_000,
        nanosecond in 0_i32..1_000_000_000,
    ) {
        let finished = Observed { job: ended(job(ttl), &json!([condition("Complete", "True", since)])).build() };
        let now = Timestamp::new(NOW.as_second(), nanosecond).unwrap();
        match plan(&finished, now) {
            Plan::Wait { left, expires } => {
                prop_assert!(expires.timestamp() == now + left);
                prop_assert!(i64::from(ttl) > since - 1);
                let woken = now + left;
                let is_over = matches!(plan(&finished, woken), Plan::Delete { .. });
                prop_assert!(is_over, "not yet at {}", woken);
                prop_assert_eq!(plan(&finished, woken - Duration::from_nanos(1)), Plan::Wait { left: Duration::from_nanos(1), expires });
            }
            Plan::Delete { expired, .. } => prop_assert!(expired.timestamp() <= now && i64::from(ttl) <= since),
            Plan::Keep(reason) => prop_assert!(false, "{:?}", reason),
        }
    }
}
