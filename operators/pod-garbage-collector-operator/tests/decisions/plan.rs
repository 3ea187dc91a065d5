//! Upstream's tables.

use std::sync::Arc;

use jiff::{Span, Timestamp};
use pod_garbage_collector_operator::objects::{DeletionReason, Pod, PodMetadata};
use pod_garbage_collector_operator::observe::{MissingNode, Observed, Unread};
use pod_garbage_collector_operator::plan::{plan, plan_bindings, plan_missing, pod_outlook};
use serde_json::json;
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::testing::{ObjectBuilder, ago};
use shared::working::decisions::stage;

use crate::fixtures::{bindings, evicted, node, not_ready, observed, pod, tainted};

const NOTHING: &str = "nothing (no stuck pods, not too many terminated ones)";

#[track_caller]
fn check(observed: &Observed, threshold: i32, expected: &str) {
    assert_eq!(plan(observed, threshold).to_string(), expected);
}

/// Pods of an existing node, each an hour younger than the one before it.
fn aged(pods: impl IntoIterator<Item = ObjectBuilder>) -> Observed {
    let hours = |hours: usize| Span::new().hours(i64::try_from(hours).unwrap());
    let begin: Timestamp = ago(1_000_000);
    let pods: Vec<_> = pods.into_iter().zip(1..).map(|(pod, at)| pod.created(begin + hours(at))).collect();
    observed(&pods, &[node("node")])
}

fn check_terminated(pods: &[(&str, &str)], threshold: i32, expected: &str) {
    let build = |(name, phase): &(&str, &str)| match *phase {
        "Evicted" => evicted(pod(name, "node", "Failed")),
        phase => pod(name, "node", phase),
    };
    check(&aged(pods.iter().map(build)), threshold, expected);
}

/// Upstream: `TestGCTerminated`.
#[test]
fn ended_pods_beyond_the_threshold_go_evicted_and_old_ones_first() {
    let three = [("a", "Failed"), ("b", "Succeeded"), ("c", "Failed")];
    let two = &three[..2];
    // "delete pod a which is PodFailed and pod b which is PodSucceeded", and the same again with "threshold = 1"
    check_terminated(&three, 1, "delete default/a default/b (terminated)");
    // "threshold = 0, disables terminated pod deletion"
    check_terminated(two, 0, NOTHING);
    check_terminated(two, -1, NOTHING);
    check_terminated(two, i32::MIN, NOTHING);
    // "threshold = 1, delete pod b which is PodSucceeded"
    let running = [("a", "Running"), ("b", "Succeeded"), ("c", "Failed")];
    check_terminated(&running, 1, "delete default/b (terminated)");
    // "threshold = 1, delete pod a which is PodFailed"
    check_terminated(two, 1, "delete default/a (terminated)");
    // "threshold = 5, don't delete pod"
    check_terminated(two, 5, NOTHING);
    check_terminated(two, i32::MAX, NOTHING);
    // The two without names.
    let one_evicted = [("a", "Failed"), ("b", "Succeeded"), ("c", "Evicted")];
    check_terminated(&one_evicted, 1, "delete default/c default/a (terminated)");
    let one_runs = [("a", "Running"), ("b", "Succeeded"), ("c", "Evicted")];
    check_terminated(&one_runs, 1, "delete default/c (terminated)");
}

#[test]
fn a_phase_that_nobody_knows_counts_as_ended() {
    let odd = [("a", ""), ("b", "Resized"), ("c", "Unknown"), ("d", "Pending"), ("e", "Running"), ("f", "Failed")];
    check_terminated(&odd, 1, "delete default/a default/b (terminated)");
}

#[test]
fn of_pods_of_the_same_age_names_decide() {
    let same_age = |name: &str, namespace: &str| {
        pod(name, "node", "Failed").namespace(namespace).uid_of(&format!("{namespace}/{name}"))
    };
    let pods = [same_age("b", "x"), same_age("a", "y"), same_age("a", "x"), same_age("c", "x")];
    check(&observed(&pods, &[node("node")]), 1, "delete x/a y/a x/b (terminated)");
    // Only a kubelet evicts, and what it has evicted has failed.
    let pods = [pod("a", "node", "Succeeded"), evicted(pod("b", "node", "Succeeded"))];
    check(&observed(&pods, &[node("node")]), 1, "delete default/a (terminated)");
}

/// The pods of a node that is missing: what a search makes of it, and what its end then is.
struct Missing {
    cached: Vec<ObjectBuilder>,
    cached_later: Vec<ObjectBuilder>,
    live_later: bool,
    pods: Vec<ObjectBuilder>,
}

impl Missing {
    fn of(pods: impl IntoIterator<Item = ObjectBuilder>) -> Self {
        Self { cached: Vec::new(), cached_later: Vec::new(), live_later: false, pods: pods.into_iter().collect() }
    }

    #[track_caller]
    fn check(&self, search: &str, name: &str, end: &str) {
        check(&observed(&self.pods, &self.cached), -1, NOTHING);
        assert_eq!(plan_bindings(&bindings(&self.pods, &self.cached)).to_string(), search);
        let pods = self.pods.iter().map(ObjectBuilder::build).filter(|pod: &Arc<Pod>| pod.node == name).collect();
        let is_cached = self.cached_later.iter().any(|node| node.json()["metadata"]["name"] == name);
        let missing = MissingNode { key: Key::new("", name), is_cached, exists: self.live_later, pods };
        assert_eq!(plan_missing(&missing).to_string(), end);
    }
}

/// Upstream: `TestGCOrphaned`. That nothing goes before the end of the quarantine ("quarantine not finished") is that a
/// round deletes none of these pods.
#[test]
fn the_pods_of_a_node_go_once_it_has_been_missing_and_is_gone() {
    // "nodes present in lister"
    let existing = |name, at, phase| pod(name, at, phase);
    let pods = [
        existing("a", "existing1", "Running"),
        existing("b", "existing2", "Failed"),
        existing("c", "existing2", "Succeeded"),
    ];
    let none_missing = |pods: &[ObjectBuilder], nodes: &[ObjectBuilder]| {
        assert_eq!(plan_bindings(&bindings(pods, nodes)).to_string(), "nothing (all nodes exist)");
    };
    none_missing(&pods, &[node("existing1"), node("existing2")]);
    // "nodes present in client"
    let in_client = Missing { live_later: true, ..Missing::of(pods) };
    in_client.check("wait for existing1 existing2 (missing)", "existing2", "keep the pods (the node exists)");
    // "no nodes"
    let ended = [pod("a", "deleted", "Failed"), pod("b", "deleted", "Succeeded")];
    let wait = "wait for deleted (missing)";
    Missing::of(ended.clone()).check(wait, "deleted", "delete default/a default/b (the node is gone)");
    // "no nodes, one running pod"
    let three = ended.into_iter().chain([pod("c", "deleted", "Running")]);
    Missing::of(three).check(wait, "deleted", "delete default/a default/b default/c (the node is gone)");
    // "wrong nodes", "node deleted from client after quarantine"
    let wrong = Missing { cached: vec![node("existing")], ..Missing::of([pod("a", "deleted", "Running")]) };
    wrong.check(wait, "deleted", "delete default/a (the node is gone)");
    // "some nodes missing"
    let some = [
        pod("a", "deleted", "Failed"),
        pod("b", "existing", "Failed"),
        pod("c", "deleted", "Succeeded"),
        pod("d", "deleted", "Running"),
    ];
    let some = Missing { cached: vec![node("existing")], ..Missing::of(some) };
    some.check(wait, "deleted", "delete default/a default/c default/d (the node is gone)");
    // "node added to client after quarantine"
    let comes = || Missing::of([pod("a", "node", "Running")]);
    let wait = "wait for node (missing)";
    Missing { live_later: true, ..comes() }.check(wait, "node", "keep the pods (the node exists)");
    // "node added to informer after quarantine"
    Missing { cached_later: vec![node("node")], ..comes() }.check(wait, "node", "keep the pods (the node is back)");
    // "node deleted from informer after quarantine": it was never missing before.
    let cached = Missing { cached: vec![node("node")], ..comes() };
    none_missing(&cached.pods, &cached.cached);
    // A pod without a node misses none.
    none_missing(&[pod("a", "", "Pending")], &[]);
    // Its pods may go meanwhile.
    let without_pods = MissingNode { key: Key::new("", "node"), is_cached: false, exists: true, pods: Vec::new() };
    assert_eq!(plan_missing(&without_pods).to_string(), "nothing (no pods)");
}

/// Upstream: `TestGCUnscheduledTerminating`.
#[test]
fn a_pod_being_deleted_that_no_node_has_goes() {
    // "Unscheduled pod in any phase must be deleted"
    let unscheduled = [("a", "Failed"), ("b", "Succeeded"), ("c", "Running")];
    let unscheduled = unscheduled.map(|(name, phase)| pod(name, "", phase).terminating());
    check(&observed(&unscheduled, &[]), -1, "delete default/a default/b default/c (unscheduled)");
    // "Scheduled pod in any phase must not be deleted"
    let others = [pod("a", "", "Failed"), pod("b", "node", "Succeeded"), pod("c", "node", "Running").terminating()];
    check(&observed(&others, &[node("node")]), -1, NOTHING);
}

/// Upstream: `TestGCTerminating`.
#[test]
fn a_pod_being_deleted_on_a_node_out_of_service_goes() {
    let being_deleted = |name, at, phase| pod(name, at, phase).terminating();
    // "pods have deletion timestamp set and the corresponding nodes are not ready"
    let pods = [being_deleted("a", "worker-0", ""), being_deleted("b", "worker-1", "")];
    check(&observed(&pods, &[not_ready(node("worker-0")), not_ready(node("worker-1"))]), -1, NOTHING);
    // "some pods have deletion timestamp and/or phase set and some of the corresponding nodes have an outofservice taint
    // that are not ready"
    let nodes = [
        tainted(not_ready(node("worker-0")), "NoExecute"),
        not_ready(node("worker-1")),
        node("worker-2"),
        tainted(not_ready(node("worker-3")), "NoSchedule"),
        tainted(not_ready(node("worker-4")), "PreferNoSchedule"),
        tainted(not_ready(node("worker-5")), "NoExecute"),
    ];
    let mut pods = Vec::new();
    for (index, at) in ["worker-0", "worker-1", "worker-2", "worker-3", "worker-4", "worker-5"].into_iter().enumerate()
    {
        let name = |letter: &str| format!("{letter}{}", index + 1);
        pods.push(pod(&name("a"), at, ""));
        pods.push(pod(&name("b"), at, "").terminating());
        for (letter, phase) in [("c", "Pending"), ("d", "Running"), ("e", "Unknown")] {
            pods.push(pod(&name(letter), at, phase));
        }
    }
    check(&observed(&pods, &nodes), -1, "delete default/b1 default/b4 default/b5 default/b6 (out-of-service)");
    // "pods deleted from node tainted out-of-service"
    let all = [("a", "Running"), ("b", "Failed"), ("c", "Succeeded")];
    let all = all.map(|(name, phase)| being_deleted(name, "worker", phase));
    let worker = tainted(not_ready(node("worker")), "NoExecute");
    check(&observed(&all, std::slice::from_ref(&worker)), -1, "delete default/a default/b default/c (out-of-service)");
    // A ready node can still end its pods itself, and one that has lost its condition cannot.
    check(&observed(&all, &[tainted(node("worker"), "NoExecute")]), -1, NOTHING);
    let silent = worker.clone().set(&["status", "conditions"], serde_json::Value::Null);
    check(&observed(&all, &[silent]), -1, "delete default/a default/b default/c (out-of-service)");
    // Back in service, as just read, though the cache does not know yet.
    let back = Observed { out_of_service: std::collections::BTreeSet::new(), ..observed(&all, &[worker]) };
    check(&back, -1, NOTHING);
}

#[test]
fn a_pod_goes_once_whatever_its_reasons() {
    let pods = [
        pod("a", "worker", "Failed").terminating(),
        pod("b", "", "Failed").terminating(),
        pod("c", "gone", "Failed"),
        pod("d", "worker", "Running").terminating(),
        pod("e", "", "Pending").terminating(),
    ];
    let nodes = [tainted(not_ready(node("worker")), "NoExecute")];
    check(
        &observed(&pods, &nodes),
        1,
        "delete default/a default/b (terminated), delete default/d (out-of-service), delete default/e (unscheduled)",
    );
}

#[test]
fn what_could_not_be_read_is_left_out_and_said() {
    let pods = [pod("a", "node", "Failed"), pod("b", "node", "Failed"), pod("c", "", "Pending").terminating()];
    let unread = vec![Unread { reason: DeletionReason::Terminated, error: "list pods: no".to_owned() }];
    let partly = Observed { unsuccessful: None, unread, ..observed(&pods, &[]) };
    check(&partly, 1, "delete default/c (unscheduled), skip terminated (list pods: no)");
}

#[test]
fn what_the_cache_alone_says_of_a_pod_comes_from_the_ended_ones() {
    let check = |is_ended, threshold, expected: &str| {
        assert_eq!(pod_outlook(is_ended, 3, threshold).to_string(), expected);
    };
    check(true, 3, "keep (terminated pods: 3, threshold: 3)");
    check(true, 2, "the next round deletes the oldest, evicted ones first (terminated pods: 3, threshold: 2)");
    check(false, 2, "each round reads the stuck pods (not in the cache of terminated ones)");
    check(true, 0, "each round reads the stuck pods (no threshold for terminated ones)");
}

/// Reasons as programs read them.
#[test]
fn reasons_count_pods_and_name_nodes() {
    let pods = [pod("a", "node", "Failed"), pod("b", "gone", "Failed"), pod("c", "", "Pending").terminating()];
    let seen = observed(&pods, &[]);
    let found = json!({ "terminated": 1, "outOfService": 0, "unscheduled": 1 });
    assert_eq!(stage(&plan(&seen, 1)).reason, json!({ "found": found }));
    let unread = vec![Unread { reason: DeletionReason::OutOfService, error: "no".to_owned() }];
    let partly = Observed { unread, ..seen };
    assert_eq!(stage(&plan(&partly, 1)).reason, json!({ "unread": { "reasons": ["outOfService"] } }));
    let search = stage(&plan_bindings(&bindings(&pods, &[node("node")]))).reason;
    assert_eq!(search, json!({ "missing": { "nodes": 1, "first": ["gone"] } }));
    let missing = |pods: &[ObjectBuilder], exists| {
        let pods = pods.iter().map(ObjectBuilder::build).collect();
        stage(&plan_missing(&MissingNode { key: Key::new("", "gone"), is_cached: false, exists, pods })).reason
    };
    assert_eq!(missing(&pods[1..2], false), json!({ "gone": { "pods": 1 } }));
    assert_eq!((missing(&pods[1..2], true), missing(&[], false)), (json!("exists"), json!("noPods")));
}

#[test]
fn of_a_pod_that_has_succeeded_the_metadata_is_enough() {
    let planned = plan(&observed(&[pod("a", "node", "Succeeded"), pod("b", "node", "Failed")], &[]), 1);
    let phases: Vec<bool> = planned.delete.iter().map(|deletion| deletion.pod.phase.is_terminal()).collect();
    assert_eq!((planned.to_string().as_str(), phases), ("delete default/a (terminated)", vec![true]));
}

#[test]
fn a_pod_stays_small_in_the_cache() {
    assert!(size_of::<PodMetadata>() <= 120, "{} bytes", size_of::<PodMetadata>());
}

#[test]
fn a_node_existed_if_a_pod_has_run_on_it() {
    let acknowledged = pod("b", "lost", "Pending").set(&["status", "startTime"], "2026-01-01T12:00:00Z");
    let pods =
        [pod("a", "invented", "Pending"), acknowledged, pod("c", "gone", "Running"), pod("d", "node", "Running")];
    let existed = plan_bindings(&bindings(&pods, &[node("node")])).existed;
    assert_eq!(existed, ["gone", "lost"].map(Text::new).into());
}

#[test]
fn the_brake_keeps_only_pods_that_have_run() {
    let missing = |pods: &[ObjectBuilder]| {
        let pods = pods.iter().map(ObjectBuilder::build).collect();
        plan_missing(&MissingNode { key: Key::new("", "gone"), is_cached: false, exists: false, pods })
    };
    let (never, runs) = (pod("never", "gone", "Pending"), pod("runs", "gone", "Running"));
    assert!(!missing(std::slice::from_ref(&never)).deletes_what_ran());
    let both = missing(&[never, runs]);
    assert!(both.deletes_what_ran());
    assert_eq!(both.without_what_ran().to_string(), "delete default/never (the node is gone)");
}
