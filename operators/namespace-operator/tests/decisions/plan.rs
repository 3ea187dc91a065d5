//! Whether, of what and in which order a namespace is emptied, and what follows.

use std::collections::BTreeMap;
use std::time::Duration;

use namespace_operator::objects::{Namespace, Round};
use namespace_operator::observe::{Observed, Served as AllServed};
use namespace_operator::plan::{KindToEmpty, Next, Plan, judge, next_step, pass, plan, plan_content, remaining_grace};
use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::api::resource::{DEPLOYMENTS, EVENTS, JOBS, PODS, Resource};
use shared::api::time::Time;
use shared::testing::{NOW, ago};
use shared::transport::discovery::{Discovery, Served};
use shared::working::decisions::stage;

use crate::fixtures::{deleted, deployments_held, emptied, failed, pods_remain, round, with};

#[track_caller]
fn check(observed: &Observed, expected: &str) {
    assert_eq!(plan(observed).to_string(), expected);
}

#[test]
fn only_what_is_deleted_and_has_finalizers_is_emptied() {
    check(&deleted(&["kubernetes"]), "empty (is being deleted)");
    check(&deleted(&["other"]), "empty (is being deleted)");
    check(&deleted(&[]), "nothing (has no finalizers)");
    let active = with(deleted(&["kubernetes"]), "/metadata/deletionTimestamp", Value::Null);
    check(&active, "nothing (is not being deleted)");
}

#[test]
fn a_missing_phase_is_written_and_nothing_else_changes() {
    let active = with(deleted(&["kubernetes"]), "/status/phase", json!("Active"));
    check(&active, "set phase, empty (is being deleted)");
    let Plan::Empty { phase: Some(body), .. } = plan(&active) else { panic!("no body") };
    assert_eq!(body, deleted(&["kubernetes"]).namespace.0);
}

fn served(resource: Resource, verbs: &str) -> Served {
    Served { resource, verbs: verbs.split(' ').map(Text::new).collect(), is_preferred: true }
}

#[test]
fn pods_go_first_and_each_kind_as_it_allows() {
    let all = "create delete deletecollection list";
    let node = Resource::cluster_scoped("", "v1", "Node", "nodes");
    let discovery = Discovery {
        served: vec![
            served(DEPLOYMENTS, all),
            served(PODS, all),
            served(node, all),
            served(EVENTS, "delete list"),
            served(JOBS, "create list"),
        ],
        failed: BTreeMap::new(),
    };
    let served = |failure| AllServed { discovery: discovery.clone(), failure };
    let content = plan_content(served(None), Time::of(NOW));
    assert_eq!(content.to_string(), "delete pods, then 2 kinds (all served kinds)");
    let unknown = plan_content(served(Some("no answer".to_owned())), Time::of(NOW));
    assert_eq!(unknown.to_string(), "delete pods, then 2 kinds (known kinds only; no answer)");
    assert_eq!(content.pods.unwrap().resource, PODS);
    let others: Vec<_> =
        content.others.iter().map(|kind| (kind.resource.to_string(), kind.can_delete_collection)).collect();
    assert_eq!(others, [("events".to_owned(), false), ("deployments.apps".to_owned(), true)]);
}

/// Gives the estimate and the error.
#[track_caller]
fn check_judged(grace: i64, remaining: usize, finalizers: &[(&str, usize)], expected: (i64, Option<&str>)) {
    let kind = KindToEmpty { resource: DEPLOYMENTS, can_delete_collection: true, can_list: true };
    let finalizers = finalizers.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    let judged = judge(&kind, "ns", grace, remaining, finalizers);
    assert_eq!((judged.estimate_seconds, judged.error.as_deref()), expected);
    assert_eq!(judged.remaining, remaining);
}

#[test]
fn what_remains_has_a_reason_or_is_an_error() {
    let unexpected = "unexpected items still remain in namespace: ns for gvr: apps/v1, Resource=deployments";
    check_judged(0, 0, &[], (0, None));
    check_judged(30, 0, &[], (0, None));
    check_judged(30, 2, &[], (30, None));
    check_judged(30, 2, &[("f", 2)], (30, None));
    check_judged(0, 2, &[("f", 1)], (15, None));
    check_judged(0, 2, &[], (0, Some(unexpected)));
}

#[test]
fn grace_counts_from_the_deletion_of_the_namespace() {
    assert_eq!(remaining_grace(30, Time::of(ago(0)), NOW), 30);
    assert_eq!(remaining_grace(30, Time::of(ago(29)), NOW), 30);
    assert_eq!(remaining_grace(30, Time::of(ago(30)), NOW), 0);
    assert_eq!(remaining_grace(0, Time::of(ago(0)), NOW), 0);
}

#[test]
fn what_the_cache_has_is_looked_at_if_it_is_being_deleted() {
    let namespace = |deletion: &str| -> Namespace {
        serde_json::from_str(&format!(r#"{{"metadata":{{"name":"ns"{deletion}}}}}"#)).unwrap()
    };
    let due = pass(&namespace(r#","deletionTimestamp":"2026-01-01T12:00:00Z""#));
    let expected = "read live, then delete all content (being deleted since 2026-01-01T12:00:00Z)";
    assert_eq!((due.is_due(), due.to_string().as_str()), (true, expected));
    let active = pass(&namespace(""));
    assert_eq!((active.is_due(), active.to_string().as_str()), (false, "nothing (is not being deleted)"));
}

#[test]
fn a_reason_says_which_kinds_and_finalizers_remain_and_what_failed() {
    let reason = |outcome: &Round| {
        let next = next_step(&deleted(&["kubernetes", "a"]), outcome, FIVE_MINUTES);
        stage(&next).reason
    };
    let of_deployments = json!({ "deployments.apps": 1 });
    let remains = json!({
        "waitsForPods": false, "objects": of_deployments, "finalizers": { "custom.io/finalizer": 1 }, "more": 0,
    });
    assert_eq!(reason(&deployments_held()), json!({ "notEmpty": remains }));
    let pods = json!({ "waitsForPods": true, "objects": { "pods": 3 }, "finalizers": {}, "more": 0 });
    assert_eq!(reason(&pods_remain(30)), json!({ "notEmpty": pods }));
    let failed = Round { undiscovered: Some("down".to_owned()), ..round(vec![failed(JOBS, "no")]) };
    let nothing = json!({ "waitsForPods": false, "objects": {}, "finalizers": {}, "more": 0 });
    let expected = json!({ "undiscovered": "down", "kinds": { "jobs.batch": "no" }, "more": 0, "remains": nothing });
    assert_eq!(reason(&failed), json!({ "failed": expected }));
    assert_eq!(reason(&round(Vec::new())), json!({ "empty": { "kept": ["a"] } }));
}

/// `--namespace-sync-period` if it is not given.
const FIVE_MINUTES: Duration = Duration::from_secs(300);

#[track_caller]
fn check_next(outcome: &Round, expected: &str) {
    assert_eq!(next_step(&deleted(&["kubernetes"]), outcome, FIVE_MINUTES).to_string(), expected);
}

#[test]
fn only_an_empty_namespace_is_let_go() {
    check_next(&round(vec![emptied(DEPLOYMENTS)]), "finalize (is empty)");
    check_next(&deployments_held(), "again after 8s (1 deployments.apps remain; finalizer custom.io/finalizer in 1)");
    check_next(&pods_remain(30), "again after 16s (3 pods remain; other kinds wait for them)");
    check_next(&pods_remain(1), "again after 1s (3 pods remain; other kinds wait for them)");
    check_next(
        &round(vec![failed(DEPLOYMENTS, "no")]),
        "again (cannot delete deployments.apps: no; no known objects remain)",
    );
    let unknown = Round { undiscovered: Some("down".to_owned()), ..round(vec![emptied(DEPLOYMENTS)]) };
    check_next(&unknown, "again (not all kinds are known: down; no known objects remain)");
    let mut pods = round(Vec::new());
    pods.pods = Some(failed(PODS, "no"));
    check_next(&pods, "again (cannot delete pods: no; no known objects remain)");
}

#[test]
fn pods_with_a_long_grace_are_looked_at_before_it_ends() {
    check_next(&pods_remain(598), "again after 300s (3 pods remain; other kinds wait for them)");
    check_next(&pods_remain(3600), "again after 300s (3 pods remain; other kinds wait for them)");
    check_next(&pods_remain(i64::MAX), "again after 300s (3 pods remain; other kinds wait for them)");
    let unlimited = next_step(&deleted(&["kubernetes"]), &pods_remain(3600), Duration::ZERO);
    assert!(matches!(unlimited, Next::After(delay, _) if delay == Duration::from_secs(1801)), "{unlimited}");
}

#[test]
fn other_finalizers_stay_sorted_and_unknown_fields_as_they_are() {
    let observed = deleted(&["z", "kubernetes", "a", "a"]);
    let next = next_step(&observed, &round(Vec::new()), FIVE_MINUTES);
    assert_eq!(next.to_string(), "finalize (is empty; kept by finalizers a, z)");
    let Next::Finalize { body, kept: _ } = next else { panic!("not finalized") };
    assert_eq!(body["spec"], json!({ "finalizers": ["a", "z"], "unknown": 2 }));
    assert_eq!(body["metadata"], observed.namespace.0["metadata"]);
    assert_eq!(body.get("status"), None);
}
