//! The plan of a quota, and its status. Upstream: `TestSyncResourceQuota`,
//! `pkg/controller/resourcequota/resource_quota_controller_test.go`.

use std::time::Duration;

use resourcequota_operator::apply::Outcome;
use resourcequota_operator::objects::{Evaluator, Pod};
use resourcequota_operator::observe::{Known, Objects, Observed};
use resourcequota_operator::plan::{Plan, plan, plan_wait};
use resourcequota_operator::status::next_status;
use serde_json::{Value, json};
use shared::api::object::ResourceVersion;
use shared::testing::{NOW, ObjectBuilder, ago, object};

use crate::fixtures::{facts, observed, quota, text};

fn evaluator(name: &str) -> Evaluator {
    Evaluator::of(name).remove(0)
}

fn number(name: &str, number: u64) -> (Evaluator, Known) {
    (evaluator(name), Known::Listed(Objects::Number(number)))
}

fn unreadable(name: &str) -> (Evaluator, Known) {
    (evaluator(name), Known::Unreadable("no".to_owned()))
}

fn pod(name: &str, phase: &str) -> ObjectBuilder {
    let requests = json!({ "cpu": "100m", "memory": "1Gi" });
    let spec = json!({ "containers": [{ "name": "c", "resources": { "requests": requests } }] });
    object("v1", "Pod", name).set(&["spec"], spec).phase(phase)
}

fn pods(pods: &[ObjectBuilder]) -> (Evaluator, Known) {
    (Evaluator::Pods, Known::Listed(Objects::Pods(pods.iter().map(facts::<Pod>).collect())))
}

fn with_status(quota: ObjectBuilder, hard: &Value, used: &Value) -> ObjectBuilder {
    quota.set(&["status", "hard"], hard.clone()).set(&["status", "used"], used.clone())
}

/// The usage of the next status; none if it is as before.
fn next(observed: &Observed) -> Option<String> {
    let Plan { counted, unreadable, behind, recount, .. } = plan(observed, NOW);
    let outcome = Outcome { counted, is_partial: !unreadable.is_empty(), is_behind: !behind.is_empty(), recount };
    let status = next_status(&observed.quota, &outcome)?;
    assert_eq!(status.hard, observed.quota.hard);
    Some(text(&status.used))
}

#[test]
fn a_quota_without_status_gets_its_limits_and_usage() {
    // "non-matching-best-effort-scoped-quota", "pods"
    let hard = json!({ "cpu": "3", "memory": "100Gi", "pods": "5" });
    let three = pods(&[pod("a", "Running"), pod("b", "Running"), pod("c", "Failed")]);
    let used = Some("cpu=200m memory=2Gi pods=2".to_owned());
    assert_eq!(next(&observed(&quota(&hard), vec![three.clone()])), used);
    let best_effort = quota(&hard).set(&["spec", "scopes"], json!(["BestEffort"]));
    assert_eq!(next(&observed(&best_effort, vec![three])), Some("cpu=0 memory=0 pods=0".to_owned()));
    // "services", "object counts"
    let secrets = quota(&json!({ "secrets": "5", "count/as.g": "9" }));
    let kinds = vec![number("secrets", 2), number("count/as.g", 3)];
    assert_eq!(next(&observed(&secrets, kinds)), Some("count/as.g=3 secrets=2".to_owned()));
}

#[test]
fn a_status_that_is_right_is_not_written() {
    let hard = json!({ "secrets": "5" });
    let right = with_status(quota(&hard), &hard, &json!({ "secrets": "2" }));
    assert_eq!(next(&observed(&right, vec![number("secrets", 2)])), None);
    assert_eq!(next(&observed(&right, vec![number("secrets", 1)])), Some("secrets=1".to_owned()));
    // Written in another way it is the same.
    let same = with_status(quota(&hard), &json!({ "secrets": "5000m" }), &json!({ "secrets": "2000m" }));
    assert_eq!(next(&observed(&same, vec![number("secrets", 2)])), None);
    assert_eq!(next(&observed(&quota(&json!({})), vec![])), None);
}

#[test]
fn usage_goes_with_its_limit() {
    // "pods-previous-ranked", and limits that were taken away
    let (old, new) = (json!({ "secrets": "5", "cpu": "3" }), json!({ "secrets": "5" }));
    let changed = with_status(quota(&new), &old, &json!({ "secrets": "2", "cpu": "1" }));
    assert_eq!(next(&observed(&changed, vec![number("secrets", 2)])), Some("secrets=2".to_owned()));
}

#[test]
fn a_kind_that_cannot_be_read_keeps_its_usage_and_the_others_are_counted() {
    // "object counts with unhealthy lister"
    let hard = json!({ "secrets": "5", "configmaps": "5", "count/configmaps": "5" });
    let known = with_status(quota(&hard), &hard, &json!({ "secrets": "1", "configmaps": "4" }));
    let kinds = vec![number("secrets", 2), unreadable("configmaps")];
    let mut observed = observed(&known, kinds);
    assert_eq!(next(&observed), Some("configmaps=4 secrets=2".to_owned()));
    let planned = plan(&observed, NOW);
    assert_eq!(
        planned.to_string(),
        "report UsageNotCounted; use secrets 2 (1 kinds are counted; configmaps cannot be counted and keep their usage: no)"
    );
    assert_eq!(planned.notices[0].message, "Cannot count configmaps; its usage stays unchanged: no");
    observed.reported.insert(evaluator("configmaps"));
    assert!(plan(&observed, NOW).notices.is_empty());
}

#[test]
fn a_kind_that_is_older_than_a_charge_keeps_its_usage_and_nobody_is_told() {
    let hard = json!({ "secrets": "5", "configmaps": "5" });
    let known = with_status(quota(&hard), &hard, &json!({ "secrets": "1", "configmaps": "4" }));
    let behind = (evaluator("configmaps"), Known::Behind(ResourceVersion(7)));
    let observed = observed(&known, vec![number("secrets", 2), behind]);
    assert_eq!(next(&observed), Some("configmaps=4 secrets=2".to_owned()));
    let expected = "use secrets 2 (1 kinds are counted; 1 lag behind a charge and keep their usage)";
    assert_eq!(plan(&observed, NOW).to_string(), expected);
}

#[test]
fn a_limit_that_nobody_counts_stays_without_usage() {
    let hard = json!({ "example.com/foo": "1", "count/gone.g": "1", "secrets": "1" });
    let kinds = vec![number("secrets", 0), (evaluator("count/gone.g"), Known::Unserved)];
    let observed = observed(&quota(&hard), kinds);
    assert_eq!(next(&observed), Some("secrets=0".to_owned()));
    let expected = "use secrets 0 (1 kinds are counted; nothing is counted for count/gone.g, example.com/foo)";
    assert_eq!(plan(&observed, NOW).to_string(), expected);
}

#[test]
fn a_sum_that_is_too_large_is_not_counted() {
    let huge = |name: &str, memory: &str| {
        let spec = json!({ "containers": [{ "name": "c", "resources": { "requests": { "memory": memory } } }] });
        object("v1", "Pod", name).set(&["spec"], spec)
    };
    let hard = json!({ "memory": "1Gi", "secrets": "1" });
    let kinds = vec![pods(&[huge("a", "1e60"), huge("b", "1")]), number("secrets", 1)];
    let observed = observed(&quota(&hard), kinds);
    assert_eq!(next(&observed), Some("secrets=1".to_owned()));
    let told = &plan(&observed, NOW).notices[0].message;
    assert!(told.ends_with("more digits than can be kept"), "{told}");
}

#[test]
fn a_quota_waits_for_the_first_lists() {
    let hard = json!({ "secrets": "5", "configmaps": "5" });
    let kinds = vec![number("secrets", 2), (evaluator("configmaps"), Known::Unlisted)];
    let wait = plan_wait(&observed(&quota(&hard), kinds)).unwrap();
    assert_eq!(wait.to_string(), "wait for the first list (configmaps not listed yet)");
    assert!(plan_wait(&observed(&quota(&hard), vec![number("secrets", 2), unreadable("configmaps")])).is_none());
}

#[test]
fn a_pod_that_is_being_deleted_is_looked_at_when_its_grace_period_is_over() {
    let deleted = |name: &str, before: i64| {
        let pod = pod(name, "Running").set(&["metadata", "deletionTimestamp"], ago(before).to_string());
        pod.set(&["metadata", "deletionGracePeriodSeconds"], 30)
    };
    let all = pods(&[deleted("a", 10), deleted("b", 20), deleted("c", 31), pod("d", "Running")]);
    let planned = plan(&observed(&quota(&json!({ "pods": "5" })), vec![all]), NOW);
    assert_eq!(planned.recount, Some(Duration::from_secs(11)));
    assert_eq!(planned.to_string(), "use pods 3 (1 kinds are counted); again in 11s");
}
