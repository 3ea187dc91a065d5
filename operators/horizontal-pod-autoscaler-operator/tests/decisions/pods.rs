//! Which pods' values count. Rows have the names of upstream's, whose running pods are Succeeded.
//!
//! Upstream: `TestGroupPods`, `pkg/controller/podautoscaler/replica_calculator_test.go`.

use std::sync::Arc;
use std::time::Duration;

use horizontal_pod_autoscaler_operator::objects::Pod;
use horizontal_pod_autoscaler_operator::plan::pods::{Groups, group_pods};
use horizontal_pod_autoscaler_operator::plan::samples::{Sample, Samples};
use serde_json::json;
use shared::api::time::Time;
use shared::testing::{NOW, ObjectBuilder, ago, pod};

use crate::fixtures::{config, read_pod};

fn begun(name: &str, seconds_ago: i64) -> ObjectBuilder {
    pod(name).phase("Running").set(&["status", "startTime"], ago(seconds_ago).to_string())
}

fn ready(built: ObjectBuilder, status: &str, seconds_ago: i64) -> ObjectBuilder {
    let condition = json!({ "type": "Ready", "status": status, "lastTransitionTime": ago(seconds_ago).to_string() });
    built.set(&["status", "conditions"], json!([condition]))
}

/// A value of this pod, measured so many seconds ago over a window of so many.
fn sample(pod: &str, measured: Option<(i64, u64)>) -> (&str, Sample) {
    let (seconds_ago, window) = measured.unwrap_or((0, 0));
    let timestamp = measured.map(|_| Time::of(ago(seconds_ago)));
    (pod, Sample { timestamp, window: Duration::from_secs(window), value: 1 })
}

#[track_caller]
fn row(name: &str, resource: &str, pods: &[ObjectBuilder], samples: &[(&str, Sample)], expected: &str) {
    let pods: Vec<Arc<Pod>> = pods.iter().map(read_pod).collect();
    let samples: Samples = samples.iter().map(|(pod, sample)| ((*pod).into(), *sample)).collect();
    let Groups { ready, unready, missing, ignored } = group_pods(&pods, &samples, resource, &config(), NOW);
    let found = format!("{ready} ready, {unready:?} unready, {missing:?} missing, {ignored:?} ignored");
    assert_eq!(found, expected, "{name}");
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn pods_are_grouped_as_upstream_groups_them() {
    const ONE: &str = "1 ready, {} unready, {} missing, {} ignored";
    row("void", "cpu", &[], &[], "0 ready, {} unready, {} missing, {} ignored");
    row(
        "count in a ready pod - memory",
        "memory",
        &[pod("bentham").phase("Running")],
        &[sample("bentham", Some((0, 60)))],
        ONE,
    );
    row(
        "unready a pod without ready condition - CPU",
        "cpu",
        &[begun("lucretius", 0)],
        &[sample("lucretius", None)],
        "0 ready, {\"lucretius\"} unready, {} missing, {} ignored",
    );
    row(
        "count in a ready pod with fresh metrics during initialization period - CPU",
        "cpu",
        &[ready(begun("bentham", 60), "True", 30)],
        &[sample("bentham", Some((0, 30)))],
        ONE,
    );
    row(
        "unready a ready pod without fresh metrics during initialization period - CPU",
        "cpu",
        &[ready(begun("bentham", 60), "True", 30)],
        &[sample("bentham", Some((0, 60)))],
        "0 ready, {\"bentham\"} unready, {} missing, {} ignored",
    );
    row(
        "unready an unready pod during initialization period - CPU",
        "cpu",
        &[ready(begun("lucretius", 600), "False", 594)],
        &[sample("lucretius", None)],
        "0 ready, {\"lucretius\"} unready, {} missing, {} ignored",
    );
    row(
        "count in a ready pod without fresh metrics after initialization period - CPU",
        "cpu",
        &[ready(begun("bentham", 180), "True", 180)],
        &[sample("bentham", Some((120, 60)))],
        ONE,
    );
    row(
        "count in an unready pod that was ready after initialization period - CPU",
        "cpu",
        &[ready(begun("lucretius", 600), "False", 540)],
        &[sample("lucretius", None)],
        ONE,
    );
    row(
        "unready pod that has never been ready after initialization period - CPU",
        "cpu",
        &[ready(begun("lucretius", 600), "False", 590)],
        &[sample("lucretius", None)],
        ONE,
    );
    row(
        "a missing pod",
        "cpu",
        &[begun("epicurus", 180)],
        &[],
        "0 ready, {} unready, {\"epicurus\"} missing, {} ignored",
    );
    row(
        "several pods",
        "cpu",
        &[begun("lucretius", 0), ready(begun("niccolo", 180), "True", 180), begun("epicurus", 180)],
        &[sample("lucretius", None), sample("niccolo", None)],
        "1 ready, {\"lucretius\"} unready, {\"epicurus\"} missing, {} ignored",
    );
    row(
        "pending pods are unreadied",
        "cpu",
        &[pod("unscheduled").phase("Pending")],
        &[],
        "0 ready, {\"unscheduled\"} unready, {} missing, {} ignored",
    );
    row(
        "ignore pods with deletion timestamps",
        "cpu",
        &[pod("deleted").phase("Pending").terminating()],
        &[sample("deleted", None)],
        "0 ready, {} unready, {} missing, {\"deleted\"} ignored",
    );
    // Upstream counts it as missing.
    row(
        "ignore pods in a succeeded state",
        "memory",
        &[pod("batch").phase("Succeeded"), pod("bentham").phase("Running")],
        &[sample("bentham", Some((0, 60)))],
        "1 ready, {} unready, {} missing, {\"batch\"} ignored",
    );
    row(
        "ignore pods in a failed state",
        "cpu",
        &[pod("failed").phase("Failed")],
        &[sample("failed", None)],
        "0 ready, {} unready, {} missing, {\"failed\"} ignored",
    );
}
