//! One node: upstream's cases.

use node_lifecycle_operator::memory::{Known, Look, Turn};
use node_lifecycle_operator::observe::Observed;
use node_lifecycle_operator::plan::{Config, Next, next, plan};
use serde_json::json;
use shared::testing::{NOW, ObjectBuilder, ago, uid};
use shared::working::decisions::stage;

use crate::fixtures::{CONFIG, after, in_turn, node, of, silent_for, tainted, with};

/// The steps for a node that was heard of so many seconds ago.
fn steps(observed: &Observed) -> String {
    let planned = plan(observed, &CONFIG, NOW).to_string();
    planned.split(" (").next().unwrap_or_default().to_owned()
}

#[track_caller]
fn check(node: &ObjectBuilder, seconds: i64, expected: &str) {
    assert_eq!(steps(&silent_for(node, seconds)), expected);
}

/// Upstream: `TestMonitorNodeHealthUpdateStatus` and `TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease`, with the
/// time since the last sign in place of the times of conditions and Leases.
#[test]
fn a_node_that_is_silent_for_its_grace_period_becomes_unknown() {
    let all = "set Unknown Ready, MemoryPressure, DiskPressure, PIDPressure";
    // Without a status the grace period is that of a start.
    check(&of(""), 60, "keep");
    check(&of(""), 61, all);
    check(&of("True"), 50, "keep");
    check(&of("True"), 51, all);
    check(&of("False"), 51, all);
    // The status that a kubelet has left which is gone.
    let some = with(node("a"), &[("Ready", "True"), ("MemoryPressure", "Unknown"), ("DiskPressure", "False")]);
    check(&some, 51, "set Unknown Ready, DiskPressure, PIDPressure");
    // Only Ready decides.
    let unknown = tainted(of("Unknown"), &["unreachable:NoSchedule", "unreachable:NoExecute"]);
    check(&unknown, 1000, "keep");
    let config = Config { grace: CONFIG.grace * 2, ..CONFIG };
    assert!(!plan(&silent_for(&of("True"), 51), &config, NOW).is_news());
}

#[test]
fn nobody_is_judged_by_a_first_look_or_by_a_cache_alone() {
    let first = Observed { known: None, ..silent_for(&of("True"), 5000) };
    assert!(
        plan(&first, &CONFIG, NOW).to_string().starts_with("register (ready, last heard from at 2026-01-01T12:00:00Z")
    );
    let former = Known { uid: uid("former"), heard: ago(5000), is_registered: true, turn: Turn::Now };
    let renamed = Observed { known: Some(former), ..silent_for(&of("False"), 0) };
    assert_eq!(steps(&renamed), "register, taint node.kubernetes.io/not-ready:NoSchedule");

    let read = |observed: &Observed| match next(observed, &CONFIG, NOW) {
        Next::Ask(live_read) => Some(live_read.to_string()),
        Next::Execute(_) => None,
    };
    let silent = silent_for(&of("True"), 51);
    assert_eq!(read(&silent).as_deref(), Some("read its lease (not heard from since 2026-01-01T11:59:09Z)"));
    let not_followed = Observed { is_followed: false, ..silent };
    assert_eq!((read(&not_followed), steps(&not_followed).as_str()), (None, "keep"));
    assert_eq!(read(&silent_for(&of("Unknown"), 51)), None);
}

#[test]
fn nobody_is_judged_after_a_gap_that_no_look_has_found_yet() {
    let looked = Some(Look { at: NOW, is_followed: true });
    let observed = Observed { looked, ..silent_for(&of("True"), 0) };
    let planned = |seconds| plan(&observed, &CONFIG, after(seconds)).to_string();
    assert_eq!(planned(20), "keep (ready, last heard from at 2026-01-01T12:00:00Z)");
    assert_eq!(planned(600), "keep (ready, last heard from at 2026-01-01T12:10:00Z)");
}

/// Upstream: `TestTaintsNodeByCondition`.
#[test]
fn conditions_and_a_cordon_keep_pods_away() {
    let row = |conditions: &[(&str, &str)], expected: &str| check(&with(node("a"), conditions), 0, expected);
    let network = "taint node.kubernetes.io/network-unavailable:NoSchedule";
    row(&[("Ready", "True"), ("NetworkUnavailable", "True")], network);
    row(
        &[("NetworkUnavailable", "True"), ("MemoryPressure", "True"), ("Ready", "True")],
        "taint node.kubernetes.io/memory-pressure:NoSchedule, node.kubernetes.io/network-unavailable:NoSchedule",
    );
    row(&[("Ready", "True"), ("DiskPressure", "True")], "taint node.kubernetes.io/disk-pressure:NoSchedule");
    row(&[("Ready", "True"), ("PIDPressure", "True")], "taint node.kubernetes.io/pid-pressure:NoSchedule");
    row(&[("Ready", "False")], "taint node.kubernetes.io/not-ready:NoSchedule");
    row(&[("Ready", "Unknown")], "taint node.kubernetes.io/unreachable:NoSchedule");
    row(&[("Ready", "True"), ("MemoryPressure", "False"), ("Other", "True")], "keep");
    // "NetworkUnavailable and DiskPressure", of which one went.
    let both = with(node("a"), &[("Ready", "True"), ("DiskPressure", "True")]);
    let both = tainted(both, &["network-unavailable:NoSchedule", "e2e.example/own:NoSchedule"]);
    let expected = "taint node.kubernetes.io/disk-pressure:NoSchedule, \
                    untaint node.kubernetes.io/network-unavailable:NoSchedule";
    check(&both, 0, expected);

    let cordoned = of("True").set(&["spec", "unschedulable"], true);
    check(&cordoned, 0, "taint node.kubernetes.io/unschedulable:NoSchedule");
    check(&tainted(cordoned, &["unschedulable:NoSchedule"]), 0, "keep");
    let uncordoned = tainted(of("True"), &["unschedulable:NoSchedule"]);
    check(&uncordoned, 0, "untaint node.kubernetes.io/unschedulable:NoSchedule");
    // The taint that admission adds goes with the first look.
    check(&tainted(of(""), &["not-ready:NoSchedule"]), 0, "untaint node.kubernetes.io/not-ready:NoSchedule");
}

/// Upstream: `TestApplyNoExecuteTaints` and `TestApplyNoExecuteTaintsToNodesEnqueueTwice`.
#[test]
fn pods_have_to_leave_when_it_is_their_nodes_turn() {
    for (ready, key) in [("False", "not-ready"), ("Unknown", "unreachable")] {
        let node = tainted(of(ready), &[&format!("{key}:NoSchedule")]);
        let waits = silent_for(&node, 0);
        assert_eq!(steps(&in_turn(waits.clone(), Turn::Waits { since: NOW })), "keep");
        let taint = format!("taint node.kubernetes.io/{key}:NoExecute");
        assert_eq!(steps(&in_turn(waits.clone(), Turn::Now)), taint);
        // Where no zone has a ready node, it is nobody's turn.
        let disrupted = Observed { is_all_disrupted: true, ..in_turn(waits, Turn::Now) };
        assert_eq!(steps(&disrupted), "keep");
        let tainted = tainted(of(ready), &[&format!("{key}:NoSchedule"), &format!("{key}:NoExecute")]);
        check(&tainted, 0, "keep");
        let disrupted = Observed { is_all_disrupted: true, ..silent_for(&tainted, 0) };
        assert_eq!(steps(&disrupted), format!("untaint node.kubernetes.io/{key}:NoExecute"));
    }
    let well = tainted(of("True"), &["unreachable:NoExecute", "not-ready:NoExecute"]);
    check(&well, 0, "untaint node.kubernetes.io/not-ready:NoExecute, node.kubernetes.io/unreachable:NoExecute");
    check(&of(""), 0, "keep");
}

/// Upstream: `TestSwapUnreachableNotReadyTaints`.
#[test]
fn one_of_the_two_taints_replaces_the_other_at_once() {
    let swap = |ready: &str, new: &str, old: &str| {
        let node = tainted(of(ready), &[&format!("{new}:NoSchedule"), &format!("{old}:NoExecute")]);
        let key = "node.kubernetes.io";
        check(&node, 0, &format!("taint {key}/{new}:NoExecute, untaint {key}/{old}:NoExecute"));
    };
    swap("Unknown", "unreachable", "not-ready");
    swap("False", "not-ready", "unreachable");
}

/// Upstream: `TestReconcileNodeLabels`.
#[test]
fn older_labels_say_the_same_as_newer_ones() {
    let (os, arch) = ("kubernetes.io/os", "kubernetes.io/arch");
    let (old_os, old_arch) = ("beta.kubernetes.io/os", "beta.kubernetes.io/arch");
    let well = || of("True");
    check(&well(), 0, "keep");
    check(&well().label(os, "linux").label(old_os, "linux").label(arch, "amd64").label(old_arch, "amd64"), 0, "keep");
    let both = "label beta.kubernetes.io/os=linux, beta.kubernetes.io/arch=amd64";
    check(&well().label(os, "linux").label(arch, "amd64"), 0, both);
    check(&well().label(os, "linux").label(arch, "amd64").label(old_os, "wrong").label(old_arch, "wrong"), 0, both);
    check(&well().label(old_os, "linux").label(old_arch, "amd64"), 0, "keep");
}

/// Upstream: `TestNodeEventGeneration`.
#[test]
fn the_removal_of_a_node_is_reported_once() {
    let gone = Observed { node: None, ..silent_for(&of("True"), 0) };
    assert_eq!(plan(&gone, &CONFIG, NOW).to_string(), "report its removal (the node is gone)");
    let unknown = gone.known.map(|known| Known { is_registered: false, ..known });
    let never_reported = Observed { known: unknown, ..gone.clone() };
    assert_eq!(plan(&never_reported, &CONFIG, NOW).to_string(), "keep (the node is gone)");
    assert!(plan(&never_reported, &CONFIG, NOW).is_news(), "it has to be forgotten");
    assert!(!plan(&Observed { known: None, ..gone }, &CONFIG, NOW).is_news());
}

/// Programs read these.
#[test]
fn reasons_say_when_a_node_was_heard_of() {
    let reason = |observed: &Observed| stage(&plan(observed, &CONFIG, NOW)).reason;
    let waits = json!({ "ready": "false", "heard": "2026-01-01T11:59:53Z", "leaving": "waits" });
    assert_eq!(reason(&silent_for(&of("False"), 7)), json!({ "heard": waits }));
    let silent = json!({ "ready": "true", "heard": "2026-01-01T11:59:00Z", "leaving": "no" });
    assert_eq!(reason(&silent_for(&of("True"), 60)), json!({ "silent": silent }));
}
