//! The disruptions that budgets of every kind allow: upstream's cases under their Go names, and the texts of events.

use std::time::Duration;

use disruption_operator::memory::outages::Outages;
use disruption_operator::objects::Failure;
use disruption_operator::observe::Observed;
use disruption_operator::plan::{next_stage, plan};
use serde_json::{Value, json};
use shared::testing::{NOW, ObjectBuilder, ago, uid};
use shared::working::decisions::stage;

use crate::fixtures::{
    alone, budget, check, early_stage, failing, names, observed, of_set, owned, pod, scales, synced, told, unready,
    with_status,
};

#[track_caller]
fn text(observed: &Observed, expected: &str) {
    assert_eq!(plan(observed, NOW).to_string(), expected);
}

fn message(observed: &Observed, reason: &str) -> String {
    let notices = plan(observed, NOW).notices;
    notices.into_iter().find(|notice| notice.reason == reason).unwrap().message
}

/// Upstream: `TestNoSelector`.
#[test]
fn an_empty_selector_selects_all_and_no_selector_none() {
    let all = budget("minAvailable", 3).set(&["spec", "selector"], json!({}));
    check(&alone(&all, &[]), (0, 0, 3, 0));
    check(&alone(&all, &[pod("yo-yo-yo")]), (0, 1, 3, 1));
    let view: std::sync::Arc<disruption_operator::objects::PodDisruptionBudget> = all.build();
    let unlabelled = shared::api::labels::Labels::default();
    assert!(view.selects.as_ref().unwrap().matches(&unlabelled));
    let none: std::sync::Arc<disruption_operator::objects::PodDisruptionBudget> =
        budget("minAvailable", 3).set(&["spec", "selector"], Value::Null).build();
    assert!(!none.selects.as_ref().unwrap().matches(&unlabelled));
}

/// Upstream: `TestUnavailable`.
#[test]
fn a_number_of_healthy_pods_needs_no_owner() {
    let three = budget("minAvailable", 3);
    let mut pods: Vec<ObjectBuilder> = names("yo", 4).iter().map(|name| pod(name)).collect();
    for (count, allowed) in [(0, 0), (1, 0), (2, 0), (3, 0), (4, 1)] {
        let healthy = i32::try_from(count).unwrap();
        check(&alone(&three, &pods[..count]), (allowed, healthy, 3, healthy));
    }
    pods[0] = unready("yo-0");
    check(&alone(&three, &pods), (0, 3, 3, 4));
    assert_eq!(early_stage(&alone(&three, &[of_set("a", "set")])), None);
}

/// Upstream: `TestIntegerMaxUnavailable`, `TestNakedPod`, `TestStatusForUnmanagedPod`, `TestTotalUnmanagedPods`.
#[test]
fn a_pod_without_an_owner_allows_no_share() {
    for share in [budget("maxUnavailable", 1), budget("minAvailable", "28%")] {
        check(&alone(&share, &[]), (0, 0, 0, 0));
        assert_eq!(told(&alone(&share, &[])), ["NoPods"]);
        let naked = alone(&share, &[pod("naked")]);
        check(&naked, (0, 1, 0, 0));
        assert_eq!(told(&naked), ["UnmanagedPods"]);
        text(&naked, "record UnmanagedPods; allow 0 (1 of 0 pods are healthy, 0 required; 1 without a controller)");
        let expected = "Pods selected by this PodDisruptionBudget (selector: \
            &LabelSelector{MatchLabels:map[string]string{foo: bar,},MatchExpressions:[]LabelSelectorRequirement{},}) \
            were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may \
            result in undefined behavior. To account for these pods please set \".spec.minAvailable\" field of the PDB \
            to an integer value.";
        assert_eq!(message(&naked, "UnmanagedPods"), expected);
    }
}

#[test]
fn a_selector_is_told_as_upstream_prints_it() {
    let expression = json!({ "key": "tier", "operator": "In", "values": ["a", "b"] });
    let selector = json!({ "matchLabels": { "b": "2", "a": "1" }, "matchExpressions": [expression] });
    let share = budget("maxUnavailable", 1).set(&["spec", "selector"], selector);
    let expected = "(selector: &LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},\
        MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:tier,Operator:In,Values:[a b],},},})";
    assert!(message(&alone(&share, &[pod("naked")]), "UnmanagedPods").contains(expected));
}

/// Upstream: `TestIntegerMaxUnavailableWithScaling`, `TestPercentageMaxUnavailableWithScaling`.
#[test]
fn a_share_of_missing_pods_follows_the_scale() {
    let of = |limit: Value, replicas| {
        observed(&budget("maxUnavailable", limit), &[of_set("pod", "set")], scales(&[("set", "set", replicas)]))
    };
    check(&of(json!(2), 7), (0, 1, 5, 7));
    check(&of(json!(2), 5), (0, 1, 3, 5));
    check(&of(json!("30%"), 7), (0, 1, 4, 7));
    check(&of(json!("30%"), 3), (0, 1, 2, 3));
    check(&of(json!(10), 5), (1, 1, 0, 5));
    check(&of(json!("100%"), 5), (1, 1, 0, 5));
    check(&of(json!(0), 0), (0, 1, 0, 0));
}

/// Upstream: `TestReplicaSet`, `TestMultipleControllers`, `TestReplicationController`, `TestStatefulSetController`.
#[test]
fn a_share_of_healthy_pods_is_rounded_up() {
    let of = |share: &str, pods: &[ObjectBuilder], replicas| {
        observed(&budget("minAvailable", share), pods, scales(&[("set", "set", replicas)]))
    };
    check(&of("20%", &[of_set("a", "set")], 10), (0, 1, 2, 10));
    check(&of("1%", &[of_set("a", "set"), of_set("b", "set")], 1), (1, 2, 1, 1));
    let pods: Vec<ObjectBuilder> = names("foobar", 3).iter().map(|name| of_set(name, "set")).collect();
    for (count, allowed) in [(1, 0), (2, 0), (3, 1)] {
        check(&of("34%", &pods[..count], 3), (allowed, i32::try_from(count).unwrap(), 2, 3));
    }
    let rogue: Vec<ObjectBuilder> = pods.iter().cloned().chain([pod("rogue")]).collect();
    check(&of("34%", &rogue, 3), (2, 4, 2, 3));
}

/// Upstream: `TestTwoControllers`.
#[test]
fn the_scales_of_two_owners_are_one_sum_and_a_deployment_counts_once() {
    let pods = |set: &str, ready: i32| -> Vec<ObjectBuilder> {
        let built = |(at, name): (i32, String)| {
            owned(if at < ready { pod(&name) } else { unready(&name) }, "apps/v1", "ReplicaSet", set)
        };
        (0..).zip(names(set, 11)).map(built).collect()
    };
    let share = budget("minAvailable", "28%");
    check(&observed(&share, &pods("old", 5), scales(&[("old", "old", 11)])), (1, 5, 4, 11));
    let both: Vec<ObjectBuilder> = pods("old", 5).into_iter().chain(pods("new", 4)).collect();
    check(&observed(&share, &both, scales(&[("old", "old", 11), ("new", "new", 11)])), (2, 9, 7, 22));
    check(&observed(&share, &both, scales(&[("old", "web", 11), ("new", "web", 11)])), (5, 9, 4, 11));
}

/// Upstream: `TestScaleResource`.
#[test]
fn owners_of_any_kind_say_how_many_pods_there_should_be() {
    let pods: Vec<ObjectBuilder> =
        names("pod", 4).iter().map(|name| owned(pod(name), "custom.k8s.io/v1", "customresource", "own")).collect();
    check(&observed(&budget("maxUnavailable", 5), &pods, scales(&[("own", "own", 10)])), (0, 4, 5, 10));
    check(&observed(&budget("maxUnavailable", 8), &pods, scales(&[("own", "own", 10)])), (2, 4, 2, 10));
    let (text, reason) = early_stage(&alone(&budget("maxUnavailable", 5), &pods)).unwrap();
    assert_eq!(text, "read the scales of the owners (the budget depends on the scale of customresource own)");
    assert_eq!(reason, json!({ "scale": { "owners": ["customresource own"], "more": 0 } }));
}

/// Upstream: `TestUnsupportedControllerPod`.
#[test]
fn an_owner_without_a_scale_allows_nothing_and_is_told() {
    let failure = Failure::lasting("jobs.batch does not implement the scale subresource".to_owned());
    let failed = observed(&budget("minAvailable", "28%"), &[of_set("a", "set")], failing(scales(&[]), "set", failure));
    assert_eq!(told(&failed), ["CalculateExpectedPodCountFailed"]);
    let error = "jobs.batch does not implement the scale subresource";
    let expected = format!("Failed to calculate the number of expected pods: {error}");
    assert_eq!(message(&failed, "CalculateExpectedPodCountFailed"), expected);
    let expected = format!("record CalculateExpectedPodCountFailed; allow 0 (cannot count pods: {error})");
    text(&failed, &expected);
    assert_eq!(stage(&next_stage(&failed, NOW)).reason, json!({ "notCounted": { "error": error } }));
}

/// kubernetes/kubernetes#129625
#[test]
fn a_pod_that_has_ended_counts_only_through_the_scale_of_its_owner() {
    let no_scale = || Failure::lasting("jobs.batch does not implement the scale subresource".to_owned());
    let of_job = |name: &str| owned(pod(name), "batch/v1", "Job", "migrate");
    let ended = |pod: ObjectBuilder| pod.phase("Succeeded");
    let state = |job: &[ObjectBuilder], owners: &[(&str, &str, i32)]| {
        let web = ["a", "b", "c"].map(|name| of_set(name, "set"));
        let pods: Vec<ObjectBuilder> = web.into_iter().chain(job.iter().cloned()).collect();
        observed(&budget("maxUnavailable", 1), &pods, failing(scales(owners), "migrate", no_scale()))
    };
    let set = [("set", "set", 3)];
    check(&state(&[ended(of_job("done"))], &set), (1, 3, 2, 3));
    check(&state(&[ended(of_job("done")), of_job("failed").phase("Failed")], &set), (1, 3, 2, 3));
    assert!(plan(&state(&[ended(of_job("done")), of_job("running")], &set), NOW).counts.is_err());
    // Its owner replaces it.
    check(
        &state(&[ended(owned(pod("d"), "apps/v1", "ReplicaSet", "other"))], &[set[0], ("other", "other", 1)]),
        (0, 3, 3, 4),
    );
    let alone = state(&[ended(pod("naked"))], &set);
    check(&alone, (1, 3, 2, 3));
    assert_eq!(told(&alone), [""; 0]);
    // An owner that cannot be asked may have a scale.
    let unknown = failing(scales(&set), "migrate", Failure::passing(&"not now"));
    let unknown = Observed { scales: unknown, ..state(&[ended(of_job("done"))], &set) };
    assert!(plan(&unknown, NOW).counts.is_err());
}

#[test]
fn an_owner_that_cannot_be_read_for_a_moment_leaves_the_numbers_as_they_were_or_lower() {
    let share = budget("maxUnavailable", 1).generation(7);
    let four = ["a", "b", "c", "d"].map(|name| of_set(name, "set"));
    let counted = observed(&share, &four[..3], scales(&[("set", "set", 3)]));
    let status = synced(&counted);
    let state = |pods: &[ObjectBuilder], seconds| {
        let unread = failing(scales(&[]), "set", Failure::passing(&"not now"));
        let state = with_status(&observed(&share, pods, unread), &share, &status);
        Observed { failing_since: Some(ago(seconds)), ..state }
    };
    check(&state(&four[..3], 0), (1, 3, 2, 3));
    text(&state(&four[..3], 29), "allow 1 (3 of 3 pods are healthy, 2 required; cannot read owners: not now); retry");
    check(&state(&four[..2], 29), (0, 2, 2, 3));
    check(&state(&four, 29), (1, 3, 2, 3));
    let failed = "record CalculateExpectedPodCountFailed; allow 0 (cannot count pods: not now)";
    text(&state(&four[..3], 30), failed);
    let edited = share.clone().generation(8);
    text(&with_status(&state(&four[..3], 0), &edited, &status), failed);
    let mut failing_before = status.clone();
    failing_before.conditions[0].reason = "SyncFailed".into();
    text(&with_status(&state(&four[..3], 0), &share, &failing_before), failed);
}

#[test]
fn the_scale_of_a_moment_ago_is_read_again() {
    let share = budget("maxUnavailable", 1);
    let state = observed(&share, &[of_set("a", "set")], scales(&[("set", "set", 1)]));
    let state = Observed { reread: Some(Duration::from_millis(300)), ..state };
    text(&state, "allow 1 (1 of 1 pods are healthy, 0 required); recheck in 300ms");
}

/// A budget that is deleted and comes again has failed for no time yet.
#[test]
fn failures_belong_to_one_budget() {
    let (outages, [one, other]) = (Outages::default(), ["one", "other"].map(uid));
    assert_eq!([ago(9), ago(5)].map(|now| outages.since(one, now, true)), [ago(9), ago(9)]);
    assert_eq!([ago(5), ago(4)].map(|now| outages.since(other, now, false)), [ago(5), ago(4)], "it is gone");
    outages.forget(one);
    assert_eq!(outages.since(one, ago(3), true), ago(3));
}

/// Upstream: `TestInvalidSelectors`.
#[test]
fn a_selector_that_cannot_be_read_allows_nothing_and_is_told() {
    let slashes = json!({ "matchLabels": { "k8s.io/too/many/slashes": "value" } });
    let operator = json!({ "matchExpressions": [{ "key": "foo", "operator": "illegal", "values": ["bar"] }] });
    for selector in [slashes, operator] {
        let invalid = alone(&budget("minAvailable", 3).set(&["spec", "selector"], selector), &[]);
        assert_eq!(told(&invalid), ["NoPods"]);
        assert!(message(&invalid, "NoPods").starts_with("Failed to get pods: "));
        assert!(plan(&invalid, NOW).counts.is_err_and(|failure| failure.is_lasting));
    }
}

fn evicted(budget: ObjectBuilder, pods: &[(&str, i64)]) -> ObjectBuilder {
    let entry = |(name, seconds): &(&str, i64)| ((*name).to_owned(), Value::from(ago(*seconds).to_string()));
    budget.set(&["status", "disruptedPods"], pods.iter().map(entry).collect::<Value>())
}

/// Upstream: `TestUpdateDisruptedPods`.
#[test]
fn an_eviction_counts_until_its_pod_is_being_deleted_or_two_minutes_have_passed() {
    let one = evicted(budget("minAvailable", 1), &[("p1", 0), ("p2", 180), ("p3", 60), ("notthere", 0)]);
    let state = alone(&one, &[pod("p1").terminating(), pod("p2"), pod("p3")]);
    check(&state, (0, 1, 1, 3));
    let decided = plan(&state, NOW);
    let kept: Vec<&str> = decided.counts.as_ref().unwrap().disrupted_pods.keys().map(|name| &**name).collect();
    assert_eq!(kept, ["p3"]);
    assert_eq!(message(&state, "NotDeleted"), "Pod was expected by PDB default/default to be deleted but it wasn't");
    assert_eq!(decided.notices[0].about.key.to_string(), "default/p2");
    let expected = "record NotDeleted; allow 0 (1 of 3 pods are healthy, 1 required; 1 being evicted); recheck in 1m0s";
    text(&state, expected);
}

#[test]
fn the_first_eviction_to_take_too_long_says_when_to_look_again() {
    let one = evicted(budget("minAvailable", 0), &[("a", 30), ("b", 100), ("c", 0)]);
    let state = alone(&one, &[pod("a"), pod("b"), pod("c")]);
    text(&state, "allow 0 (0 of 3 pods are healthy, 0 required; 3 being evicted); recheck in 20s");
    // At its last instant it is over.
    let over = alone(&evicted(budget("minAvailable", 0), &[("a", 120)]), &[pod("a")]);
    text(&over, "record NotDeleted; allow 1 (1 of 1 pods are healthy, 0 required)");
}

#[test]
fn an_evicted_pod_that_is_not_known_is_waited_for() {
    let one = evicted(budget("minAvailable", 1), &[("a", 0), ("b", 0)]);
    assert_eq!(early_stage(&alone(&one, &[pod("a"), pod("b").terminating()])), None);
    let state = alone(&one, &[pod("a")]);
    let (text, reason) = early_stage(&state).unwrap();
    assert_eq!(text, "wait until the pods are as new as the evictions (evicted, and gone or not seen yet: b)");
    assert_eq!(reason, json!({ "evicted": { "pods": ["b"], "more": 0 } }));
    assert_eq!(early_stage(&Observed { has_seen_evictions: true, ..state }), None);
}

#[test]
fn the_stages_follow_one_another_and_each_is_taken_once() {
    let one = evicted(budget("maxUnavailable", 1), &[("gone", 0)]);
    let mut state = alone(&one, &[of_set("a", "set")]);
    assert!(early_stage(&state).unwrap().0.starts_with("wait until the pods are as new as the evictions"));
    state.has_seen_evictions = true;
    assert!(early_stage(&state).unwrap().0.starts_with("read the scales of the owners"));
    for scales in [scales(&[("set", "set", 1)]), failing(scales(&[]), "set", Failure::lasting("no".to_owned()))] {
        assert_eq!(early_stage(&Observed { scales, ..state.clone() }), None);
    }
}

#[test]
fn a_budget_that_asks_for_nothing_and_one_that_asks_for_too_much_allow_nothing() {
    let nothing = budget("other", 1);
    check(&alone(&nothing, &[pod("a")]), (0, 1, 0, 0));
    check(&alone(&budget("minAvailable", i32::MAX), &[pod("a")]), (0, 1, i32::MAX, 1));
    let odd = alone(&budget("minAvailable", "half"), &[pod("a")]);
    assert_eq!(told(&odd), ["CalculateExpectedPodCountFailed"]);
    let both = budget("minAvailable", 5).set(&["spec", "maxUnavailable"], 1);
    check(&observed(&both, &[of_set("a", "set")], scales(&[("set", "set", 1)])), (1, 1, 0, 1));
}

#[test]
fn a_reason_has_all_the_numbers() {
    let state = observed(&budget("maxUnavailable", 1), &[of_set("a", "set")], scales(&[("set", "set", 1)]));
    let counted = json!({
        "disruptionsAllowed": 1, "currentHealthy": 1, "desiredHealthy": 0, "expectedPods": 1, "disrupted": 0,
        "unmanaged": 0,
    });
    assert_eq!(stage(&next_stage(&state, NOW)).reason, json!({ "counted": counted }));
}
