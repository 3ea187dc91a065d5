//! The operator's own metrics.

use replicaset_operator::metrics::{ReplicaSetMetrics, deletion_age_ratios};
use replicaset_operator::plan::plan;
use shared::process::metrics::Metrics;
use shared::testing::{NOW, ObjectBuilder, ago};

use crate::fixtures::{observed, pod, web};

#[track_caller]
fn check(replicas: i32, pods: &[ObjectBuilder], ratios: &[f64]) {
    assert_eq!(deletion_age_ratios(&plan(&observed(&web(replicas), pods), NOW), NOW), ratios);
}

#[test]
fn ready_pods_are_compared_with_the_youngest_ready_one() {
    let aged = |name: &str, seconds: i64| pod(name).created(ago(seconds)).ready_since(ago(seconds));
    let chosen = |pod: ObjectBuilder| pod.deletion_cost("-1");
    check(1, &[aged("a", 100), chosen(aged("b", 150))], &[1.5]);
    check(1, &[aged("a", 100), pod("young").created(ago(1))], &[]);
    check(0, &[aged("a", 100), aged("b", 150)], &[]);
    check(1, &[aged("a", 0), chosen(aged("b", 150))], &[]);
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
