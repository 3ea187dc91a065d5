//! A ReplicaSet passes the suite of all that keep a number of pods; the rest is its own.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

#[path = "../../../shared/tests/replicas/suite.rs"]
mod suite;

use replicaset_operator::controller::ReplicaSetOperator as Operator;
use replicaset_operator::facts::QUEUE;
use replicaset_operator::metrics::{ReplicaSetMetrics, deletion_age_ratios};
use replicaset_operator::objects::ReplicaSet as Owner;
use replicaset_operator::plan::plan;
use replicaset_operator::status::next_status;
use serde_json::json;
use shared::api::explain::Explanation;
use shared::process::metrics::Metrics;
use shared::testing::replicas::ReplicaKind;
use shared::testing::running::Running;
use shared::testing::{NOW, ObjectBuilder, ago, object};

use suite::fixtures::{observed, orphan, pod, web};
use suite::plan::check;
use suite::status::outcome;

const KIND: ReplicaKind = ReplicaKind { resource: "replicasets", pods: "pods", object: replica_set };

/// Selects `app=web`; its template has a label more.
fn replica_set(name: &str, replicas: i32) -> ObjectBuilder {
    let labels = json!({ "app": "web", "tier": "front" });
    let template = json!({ "metadata": { "labels": labels }, "spec": { "containers": [] } });
    let spec = json!({ "replicas": replicas, "selector": { "matchLabels": { "app": "web" } }, "template": template });
    object("apps/v1", "ReplicaSet", name).set(&["spec"], spec)
}

fn why(running: &Running, name: &str) -> Explanation {
    running.why(&format!("/apis/apps/v1/namespaces/default/replicasets/{name}"))
}

#[test]
fn an_invalid_selector_does_nothing() {
    let expressions = json!([{ "key": "app", "operator": "Like", "values": ["web"] }]);
    let web = web(3).set(&["spec", "selector"], json!({ "matchExpressions": expressions }));
    check(&web, &[pod("a")], "nothing (invalid selector: \"Like\" is not a valid label selector operator)");
}

#[test]
fn no_selector_selects_nothing_and_an_empty_one_everything() {
    check(&web(1).set(&["spec", "selector"], json!(null)), &[orphan("a")], "create 1 (0 of 1 active)");
    check(
        &web(1).set(&["spec", "selector"], json!({})),
        &[orphan("a").label("app", "db")],
        "adopt a (selected, and nobody's)",
    );
}

#[test]
fn no_count_of_terminating_pods_is_not_a_count_of_none() {
    let observed = observed(&web(0).generation(0), &[]);
    assert_eq!(observed.owner.status.terminating_replicas, None);
    assert_ne!(next_status(&observed, &outcome(&[], None), NOW).unwrap(), observed.owner.status);
}

#[track_caller]
fn check_ratios(replicas: i32, pods: &[ObjectBuilder], ratios: &[f64]) {
    assert_eq!(deletion_age_ratios(&plan(&observed(&web(replicas), pods), NOW), NOW), ratios);
}

#[test]
fn ready_pods_are_compared_with_the_youngest_ready_one() {
    let aged = |name: &str, seconds: i64| pod(name).created(ago(seconds)).ready_since(ago(seconds));
    let chosen = |pod: ObjectBuilder| pod.deletion_cost("-1");
    check_ratios(1, &[aged("a", 100), chosen(aged("b", 150))], &[1.5]);
    check_ratios(1, &[aged("a", 100), pod("young").created(ago(1))], &[]);
    check_ratios(0, &[aged("a", 100), aged("b", 150)], &[]);
    check_ratios(1, &[aged("a", 0), chosen(aged("b", 150))], &[]);
}

#[test]
fn upstreams_names_are_shown() {
    let metrics = Metrics::new("replicaset-operator");
    ReplicaSetMetrics::register(&metrics);
    let text = metrics.to_text();
    for line in [
        r#"replicaset_controller_sorting_deletion_age_ratio_bucket{le="0.25"} 0"#,
        r#"replicaset_controller_sorting_deletion_age_ratio_bucket{le="8.0"} 0"#,
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}
