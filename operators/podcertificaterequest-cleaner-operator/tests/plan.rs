//! When a request goes: upstream's cases, and what holds for every age.

use std::sync::Arc;
use std::time::Duration;

use podcertificaterequest_cleaner_operator::objects::PodCertificateRequest;
use podcertificaterequest_cleaner_operator::observe::{Listed, Observed};
use podcertificaterequest_cleaner_operator::plan::{Plan, plan, plan_live_read, plan_round};
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::testing::properties::order_is_irrelevant;
use shared::testing::{NOW, ObjectBuilder, ago, object, uid};

const LIFETIME: i64 = 15 * 60;

fn request(name: &str, age: i64) -> ObjectBuilder {
    object("certificates.k8s.io/v1beta1", "PodCertificateRequest", name).created(ago(age))
}

fn read(request: &ObjectBuilder) -> Option<PodCertificateRequest> {
    Arc::into_inner(request.build())
}

fn check(request: &ObjectBuilder, expected: &str) {
    let decided = read(request).map(|request| plan(&Observed { request }, NOW).to_string());
    assert_eq!(decided.as_deref(), Some(expected));
}

/// Upstream: `TestPCRCleaner`. A request that was answered is there called a terminal one.
#[test]
fn a_request_goes_when_it_is_a_quarter_of_an_hour_old_whether_or_not_it_was_answered() {
    let denied = json!([{ "type": "Denied", "status": "True", "reason": "Foo", "message": "abc" }]);
    for conditions in [Value::Null, denied] {
        let of_age = |age| request("bar", age).set(&["status", "conditions"], conditions.clone());
        check(&of_age(LIFETIME - 1), "wait 1s (kept until 2026-01-01T12:00:01Z)");
        check(&of_age(LIFETIME + 1), "delete (kept until 2026-01-01T11:59:59Z)");
    }
}

#[test]
fn a_request_that_is_being_deleted_is_kept() {
    check(&request("bar", LIFETIME).terminating(), "keep (being deleted)");
    check(&request("bar", LIFETIME), "delete (kept until 2026-01-01T12:00:00Z)");
    check(
        &request("bar", 0).set(&["metadata", "creationTimestamp"], Value::Null),
        "delete (kept until 1970-01-01T00:15:00Z)",
    );
}

#[test]
fn only_the_request_that_was_read_is_deleted() {
    let decided = read(&request("bar", LIFETIME)).map(|request| plan(&Observed { request }, NOW));
    let Some(Plan::Delete { uid: of, .. }) = decided else { unreachable!("its time is over") };
    assert_eq!(of, uid("bar"));
    assert_eq!(plan_live_read().to_string(), "read the request (not cached)");
}

#[test]
fn a_round_has_a_reason_for_doing_nothing() {
    let row = |listed: Listed, expected: &str| assert_eq!(plan_round(&listed, NOW).to_string(), expected);
    row(Listed::NotServed, "nothing (the apiserver does not serve them)");
    row(Listed::Requests(Vec::new()), "nothing (0 exist)");
    let being_deleted = read(&request("a", 60).terminating());
    row(Listed::Requests(being_deleted.into_iter().collect()), "nothing (1 exist)");
    let some = [request("a", 60), request("b", LIFETIME), request("c", 60).terminating()];
    let some: Vec<_> = some.iter().filter_map(read).collect();
    row(Listed::Requests(some), "sync 2 at their end (3 exist)");
}

proptest! {
    #[test]
    fn a_request_is_deleted_when_what_was_left_has_passed_and_not_before(age in -100..3 * LIFETIME) {
        let observed = Observed { request: read(&request("a", age)).unwrap() };
        match plan(&observed, NOW) {
            Plan::Wait { left, until } => {
                let woken = NOW + left;
                prop_assert!(age < LIFETIME && until.timestamp() == woken);
                let is_over = matches!(plan(&observed, woken), Plan::Delete { .. });
                prop_assert!(is_over, "not yet at {}", woken);
                let before = plan(&observed, woken - Duration::from_nanos(1));
                prop_assert_eq!(before, Plan::Wait { left: Duration::from_nanos(1), until });
            }
            Plan::Delete { since, uid: _ } => prop_assert!(age >= LIFETIME && since.timestamp() <= NOW),
            Plan::Keep => prop_assert!(false, "it is not being deleted"),
        }
    }

    #[test]
    fn a_round_looks_at_each_request_when_its_own_plan_would(
        ages in proptest::collection::vec(-100..3 * LIFETIME, 0..5),
    ) {
        let all: Vec<ObjectBuilder> =
            ages.iter().enumerate().map(|(n, age)| request(&format!("a-{n}"), *age)).collect();
        let listed = |all: &[ObjectBuilder]| Listed::Requests(all.iter().filter_map(read).collect());
        let looks = plan_round(&listed(&all), NOW).looks;
        prop_assert_eq!(looks.len(), all.len());
        for (look, request) in looks.iter().zip(&all) {
            let left = match plan(&Observed { request: read(request).unwrap() }, NOW) {
                Plan::Wait { left, until: _ } => left,
                Plan::Keep | Plan::Delete { .. } => Duration::ZERO,
            };
            prop_assert_eq!(look.left, left);
        }
        order_is_irrelevant(&all, |all| {
            let looks = plan_round(&listed(all), NOW).looks.into_iter();
            let mut looks: Vec<_> = looks.map(|look| (look.key, look.left)).collect();
            looks.sort();
            looks
        });
    }
}
