//! When a pod is evicted: upstream's scenarios. The permutations of their events are `any_order_of_events_leads_to_the_same`.

use device_taint_eviction_operator::memory::Pending;
use device_taint_eviction_operator::observe::Observed;
use device_taint_eviction_operator::plan::plan;
use serde_json::{Value, json};
use shared::testing::{NOW, ObjectBuilder};
use shared::working::decisions::stage;

use crate::fixtures::{
    KEY, Scene, after, allocated, claim, claim_of, claim_of_group, in_status, key, of_driver, owner, pending, pod,
    pod_of, pod_with_template, rule, slice, something, taint, toleration,
};

const DUE: &str = "evict (taint example.com/taint=something of device some-driver/worker/instance in ResourceSlice slice, \
                   due 2026-01-01T12:00:00Z)";
const STAYS: &str = "keep (claims: 1, without NoExecute taints or tolerating them forever)";

#[track_caller]
fn check(scene: &Scene, expected: &str) {
    assert_eq!(plan(&scene.observed(), NOW).to_string(), expected);
}

fn tainted(tolerations: &[Value]) -> Scene {
    Scene::new(&[something()], tolerations)
}

fn with_pod(pod: ObjectBuilder) -> Scene {
    Scene { pod, ..tainted(&[]) }
}

fn with_claim(claim: ObjectBuilder) -> Scene {
    Scene { claims: vec![claim], ..tainted(&[]) }
}

/// Upstream: `TestController`.
#[test]
fn a_pod_is_evicted_if_a_device_of_its_claim_is_tainted() {
    // "evict-pod-resourceclaim", "evict-pod-after-scheduling", "evict-wrong-pod-replaced"
    check(&tainted(&[]), DUE);
    // "evict-pod-resourceclaimtemplate", "evict-wrong-resourceclaim-replaced"
    check(&with_pod(pod_with_template(&in_status())), DUE);
    // "evict-pod-rule"
    let of_rule = Scene { slices: Vec::new(), rules: vec![of_driver("NoExecute")], ..tainted(&[]) };
    check(&of_rule, "evict (DeviceTaintRule evict, due 2026-01-01T12:00:00Z)");
    // "evict-pod-resourceclaim-podgroup"
    let in_group = pod().set(&["spec", "schedulingGroup"], json!({ "podGroupName": "my-podgroup" }));
    let of_group = Scene { pod: in_group.clone(), claims: vec![claim_of_group()], by_group: true, ..tainted(&[]) };
    check(&of_group, DUE);
    check(&Scene { by_group: false, ..of_group.clone() }, STAYS);
    // "no-evict-pod-in-podgroup-without-claim"
    let without = in_group.set(&["spec", "resourceClaims"], json!([]));
    check(&Scene { pod: without, ..of_group }, "keep (uses no claims)");
    // A pod that has ended is no exception.
    check(&with_pod(pod().phase("Succeeded")), DUE);
}

/// Upstream: `TestController`. Its pod without a node is in `sync.rs`: such pods are not watched.
#[test]
fn a_pod_stays_if_it_does_not_use_the_claim() {
    // "no-evict-pod-resourceclaimtemplate-no-status"
    check(&with_pod(pod_with_template(&json!([]))), "keep (uses no claims)");
    // "no-evict-pod-resourceclaimtemplate-no-claim"
    check(&with_pod(pod_with_template(&json!([{ "name": "my-resource" }]))), "keep (uses no claims)");
    // "no-evict-wrong-pod"
    check(&with_pod(pod().uid_of("another")), STAYS);
    // "no-evict-wrong-resourceclaim"
    let of_another = claim(&[]).set(&["metadata", "ownerReferences"], owner("another"));
    let from_template = pod_with_template(&in_status());
    check(&Scene { pod: from_template.clone(), ..with_claim(of_another.clone()) }, STAYS);
    // A claim that the pod names itself needs no owner.
    check(&with_claim(of_another), DUE);
    // "no-evict-resourceclaim-deallocated"
    check(&with_claim(claim(&[]).set(&["status"], json!({}))), STAYS);
    // "no-evict-resourceclaim-deleted"
    check(&Scene { claims: Vec::new(), ..tainted(&[]) }, "keep (uses no claims)");
}

/// Upstream: `TestController`.
#[test]
fn only_no_execute_taints_of_its_own_devices_evict_a_pod() {
    // "no-evict-no-taint"
    check(&Scene::new(&[], &[]), STAYS);
    // "no-evict-other-device"
    check(
        &Scene { claims: vec![claim_of("my-claim", &[allocated("other", &[])], &["my-pod"])], ..tainted(&[]) },
        STAYS,
    );
    // "ignore-none-effect", "ignore-unknown-effect", "cancel-eviction-reduce-taint"
    for effect in ["None", "unknown-effect", "NoSchedule"] {
        check(&Scene::new(&[taint(KEY, "something", effect)], &[]), STAYS);
        check(&Scene { slices: Vec::new(), rules: vec![of_driver(effect)], ..tainted(&[]) }, STAYS);
    }
    // A pool of the same name belongs to another driver.
    let other = slice(&[something()]).set(&["spec", "driver"], "other-driver");
    check(&Scene { slices: vec![other], ..tainted(&[]) }, STAYS);
}

/// Upstream: `ruleMatchesDevice`.
#[test]
fn a_rule_taints_the_devices_that_match_all_of_its_selector() {
    for (selector, selects) in [
        (json!(null), false),
        (json!({}), true),
        (json!({ "driver": "some-driver" }), true),
        (json!({ "driver": "some-driver", "pool": "worker", "device": "instance" }), true),
        (json!({ "device": "instance" }), true),
        (json!({ "driver": "other" }), false),
        (json!({ "driver": "some-driver", "pool": "worker-2" }), false),
        (json!({ "driver": "some-driver", "device": "instance-no-execute" }), false),
    ] {
        let rules = vec![rule("evict", selector.clone(), "NoExecute")];
        let planned = plan(&Scene { slices: Vec::new(), rules, ..tainted(&[]) }.observed(), NOW).to_string();
        assert_eq!(planned.starts_with("evict"), selects, "{selector}: {planned}");
    }
}

fn due_after(seconds: i64, scene: &Scene) {
    let planned = plan(&scene.observed(), NOW).to_string();
    let left = format!(
        "evict after {}",
        shared::process::flags::GoDuration(std::time::Duration::from_secs(seconds.unsigned_abs()))
    );
    assert!(planned.starts_with(&left), "{planned}");
    let planned = plan(&scene.observed(), after(seconds)).to_string();
    assert!(planned.starts_with("evict ("), "{planned}");
}

/// Upstream: `TestController`.
#[test]
fn tolerations_delay_a_deletion_by_the_shortest_of_their_times() {
    let exists = |seconds| toleration("", None, seconds);
    // "evict-pod-later"
    due_after(3600, &tainted(&[toleration(KEY, Some("something"), Some(3600))]));
    // "evict-pod-rule-later"
    let of_rule = Scene { slices: Vec::new(), rules: vec![of_driver("NoExecute")], ..tainted(&[exists(Some(3600))]) };
    due_after(3600, &of_rule);
    // "evict-pod-later-many"
    let other = toleration("example.com/taint-other", Some("something"), Some(20));
    due_after(30, &tainted(&[other.clone(), exists(Some(60)), exists(Some(30))]));
    // "evict-pod-toleration-mismatch"
    check(&tainted(&[other]), DUE);
    // "no-evict-pod-toleration-forever", "no-evict-pod-toleration-forever-many"
    check(&tainted(&[exists(None)]), STAYS);
    check(&tainted(&[exists(Some(60)), exists(None)]), STAYS);
    // A time that is none.
    check(&tainted(&[exists(Some(-5))]), DUE);
    // A toleration without an effect does not count.
    let mut without_effect = exists(None);
    without_effect["effect"] = "".into();
    check(&tainted(&[without_effect]), DUE);
    // A time that no clock counts.
    let planned = plan(&tainted(&[exists(Some(i64::MAX))]).observed(), NOW);
    assert!(planned.to_string().starts_with("evict after "), "{planned}");
}

/// Upstream: `TestController`.
#[test]
fn of_several_taints_the_earliest_time_counts_and_all_are_named() {
    let [first, second] = [taint(KEY, "", "NoExecute"), taint("example.com/taint-other", "", "NoExecute")];
    let two = [first, second];
    // "evict-pod-partial-toleration"
    check(
        &Scene::new(&two, &[toleration(KEY, None, None)]),
        "evict (taint example.com/taint-other of device some-driver/worker/instance in ResourceSlice slice, due \
         2026-01-01T12:00:00Z)",
    );
    // "evict-pod-many-taints"
    let tolerations = [toleration(KEY, None, Some(60)), toleration("example.com/taint-other", None, Some(30))];
    let rules = vec![of_driver("NoExecute"), rule("evict-other", json!({ "device": "instance" }), "NoExecute")];
    let many = Scene { rules, ..Scene::new(&two, &tolerations) };
    due_after(30, &many);
    assert_eq!(plan(&many.observed(), NOW).report, [key("evict"), key("evict-other")]);
    check(
        &many,
        "evict after 30s (DeviceTaintRule evict, DeviceTaintRule evict-other, taint example.com/taint of device \
         some-driver/worker/instance in ResourceSlice slice, taint example.com/taint-other of device \
         some-driver/worker/instance in ResourceSlice slice, due 2026-01-01T12:00:30Z)",
    );
}

/// Upstream: `TestController`.
#[test]
fn of_several_claims_the_earliest_time_counts() {
    let claims = vec![
        claim(&[]),
        claim_of(
            "other",
            &[allocated("instance-no-schedule", &[]), allocated("instance-no-execute", &[])],
            &["my-pod"],
        ),
    ];
    let two = Scene { pod: pod_of("my-pod", &["my-claim", "other"]), claims, slices: Vec::new(), ..tainted(&[]) };
    // "multiple-claims-same-rule"
    let one_rule = Scene { rules: vec![of_driver("NoExecute")], ..two.clone() };
    check(&one_rule, "evict (DeviceTaintRule evict, due 2026-01-01T12:00:00Z)");
    // "multiple-claims-different-rules-order-1" and "-order-2"
    let now = rule("evict-instance", json!({ "device": "instance" }), "NoExecute");
    let later = rule("evict-instance-no-execute", json!({ "device": "instance-no-execute" }), "NoExecute")
        .set(&["spec", "taint", "timeAdded"], "2026-01-01T12:00:40Z");
    let both = "evict (DeviceTaintRule evict-instance, DeviceTaintRule evict-instance-no-execute, due \
                2026-01-01T12:00:00Z)";
    check(&Scene { rules: vec![now.clone(), later.clone()], ..two.clone() }, both);
    check(&Scene { rules: vec![later, now], ..two }, both);
}

#[track_caller]
fn check_pending(scene: &Scene, pending: Pending, expected: &str) {
    let observed = Observed { pending: Some(pending), ..scene.observed() };
    assert_eq!(plan(&observed, NOW).to_string(), expected);
}

/// Upstream: `TestController`, and `TestCancelEviction`.
#[test]
fn a_pending_deletion_is_canceled_with_the_last_taint_and_moves_with_the_others() {
    // "cancel-eviction-remove-taint", "-remove-taint-in-new-slice", "-remove-slice", "slice-deleted"
    check_pending(&Scene::new(&[], &[]), pending("my-pod", 60, false), &format!("cancel, {STAYS}"));
    check_pending(
        &Scene { slices: Vec::new(), ..tainted(&[]) },
        pending("my-pod", 60, false),
        &format!("cancel, {STAYS}"),
    );
    // "no-evict-resourceclaim-deallocated", "no-evict-resourceclaim-deleted"
    check_pending(
        &with_claim(claim(&[]).set(&["status"], json!({}))),
        pending("my-pod", 0, false),
        &format!("cancel, {STAYS}"),
    );
    let gone = Scene { claims: Vec::new(), ..tainted(&[]) };
    check_pending(&gone, pending("my-pod", 0, false), "cancel, keep (uses no claims)");
    // "eviction-change-taint"
    let tolerations = [toleration(KEY, Some("something"), Some(3600))];
    let other = Scene::new(&[taint(KEY, "something-other", "NoExecute")], &tolerations);
    let at_once = "evict (taint example.com/taint=something-other of device some-driver/worker/instance in ResourceSlice \
                   slice, due 2026-01-01T12:00:00Z)";
    check_pending(&other, pending("my-pod", 3600, false), at_once);
    // "evict-pod-resourceclaim-unrelated-changes"
    let waits = "wait 1h0m0s (taint example.com/taint=something of device some-driver/worker/instance in ResourceSlice \
                 slice, due 2026-01-01T13:00:00Z)";
    check_pending(&tainted(&tolerations), pending("my-pod", 3600, false), waits);
    check_pending(&tainted(&tolerations), pending("my-pod", 60, false), &waits.replace("wait", "evict after"));
}

/// Upstream: "cancel-eviction-pod-deletion" and "pod-deleted": no event is about a deleted pod.
#[test]
fn the_pending_deletion_of_a_deleted_pod_is_dropped_and_its_rules_are_reported() {
    let rules = vec![key("evict")];
    let pending = Pending { rules: rules.clone(), ..pending("my-pod", 60, false) };
    let gone = Observed { pod: None, claims: Vec::new(), pending: Some(pending.clone()), ..tainted(&[]).observed() };
    let planned = plan(&gone, NOW);
    assert_eq!((planned.to_string().as_str(), &planned.report), ("keep (the pod is gone)", &rules));
    let ending = Observed { pending: Some(pending), ..with_pod(pod().terminating()).observed() };
    let planned = plan(&ending, NOW);
    assert_eq!((planned.to_string().as_str(), &planned.report), ("keep (being deleted)", &rules));
}

#[test]
fn an_announced_deletion_is_retried() {
    check_pending(&tainted(&[]), pending("my-pod", 0, true), &DUE.replace("evict (", "evict again ("));
    check_pending(&Scene::new(&[], &[]), pending("my-pod", 0, true), &format!("cancel, {STAYS}"));
}

#[test]
fn the_pending_deletion_of_a_former_pod_is_not_about_its_successor() {
    check_pending(&Scene::new(&[], &[]), pending("another", 5, false), STAYS);
    check_pending(&tainted(&[]), pending("another", -5, true), DUE);
    let tolerations = [toleration(KEY, None, Some(60))];
    let planned =
        plan(&Observed { pending: Some(pending("another", 60, false)), ..tainted(&tolerations).observed() }, NOW);
    assert!(planned.to_string().starts_with("evict after 1m0s"), "{planned}");
}

/// Programs read these.
#[test]
fn reasons_name_taints_and_times() {
    let reason = |scene: &Scene| -> Value { stage(&plan(&scene.observed(), NOW)).reason };
    let slice = json!({ "slice": { "device": "some-driver/worker/instance", "taint": "example.com/taint=something",
                                   "resourceSlice": "slice" } });
    let both = Scene { rules: vec![of_driver("NoExecute")], ..tainted(&[]) };
    let causes = json!([{ "rule": { "name": "evict" } }, slice]);
    assert_eq!(reason(&both), json!({ "tainted": { "causes": causes, "due": "2026-01-01T12:00:00Z" } }));
    assert_eq!(reason(&Scene::new(&[], &[])), json!({ "notTainted": { "claims": 1 } }));
}
