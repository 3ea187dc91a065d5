//! What the condition of a DeviceTaintRule reports: upstream's scenarios.

use device_taint_eviction_operator::apply::Configuration;
use device_taint_eviction_operator::observe::ObservedRule;
use device_taint_eviction_operator::plan::{RulePlan, plan_rule};
use device_taint_eviction_operator::status::{RuleCondition, next_condition};
use serde_json::{Value, json};
use shared::testing::{NOW, ObjectBuilder};

use crate::fixtures::{
    KEY, Scene, after, allocated, claim_of, claim_of_group, observed_rule, of_driver, pod, pod_of, toleration,
};

fn told(observed: &ObservedRule) -> (String, Option<RuleCondition>) {
    let plan = plan_rule(observed, NOW);
    let RulePlan { step: _, reason } = &plan;
    (plan.to_string(), next_condition(observed, reason, NOW))
}

/// What is written: status, reason and message.
#[track_caller]
fn check(observed: &ObservedRule, (status, reason): (&str, &str), message: &str) {
    let Some(condition) = told(observed).1 else { panic!("{}", told(observed).0) };
    assert_eq!((condition.status, condition.reason, condition.message.as_str()), (status, reason, message));
}

/// A pod of this name and namespace, with a claim of so many devices.
fn user(namespace: &str, name: &str, devices: usize) -> Scene {
    let all = ["instance", "instance-no-schedule", "instance-no-execute"].map(|device| allocated(device, &[]));
    let claim = claim_of("claim", &all[..devices], &[name]).namespace(namespace);
    Scene { pod: pod_of(name, &["claim"]).namespace(namespace), claims: vec![claim], ..Scene::new(&[], &[]) }
}

/// With this condition, of this generation, which changed at 12:00:00.
fn with_condition(rule: ObjectBuilder, generation: i64, reason: &str, message: &str) -> ObjectBuilder {
    let status = if reason == "PodsPendingEviction" { "True" } else { "False" };
    let condition = json!({
        "type": "EvictionInProgress", "status": status, "reason": reason, "message": message,
        "observedGeneration": generation, "lastTransitionTime": "2026-01-01T12:00:00Z",
    });
    rule.set(&["status", "conditions"], json!([{ "type": "Other", "status": "True" }, condition]))
}

/// Upstream: `TestController`.
#[test]
fn an_evicting_rule_reports_how_many_pods_are_left() {
    let evict = of_driver("NoExecute");
    let none = (0, 0);
    // "rule-status", "tainted-claim-through-rule"
    check(&observed_rule(&evict, &[], none, 0), ("False", "NotStarted"), "");
    // "evict-pod-rule", "evict-pod-rule-later"
    let one = [user("default", "a", 1)];
    let pending = ("True", "PodsPendingEviction");
    check(&observed_rule(&evict, &one, none, 0), pending, "1 pod needs to be evicted in 1 namespace.");
    check(&observed_rule(&evict, &[], none, 1), ("False", "Completed"), "1 pod evicted since starting the controller.");
    // "evict-many-pods-many-namespaces"
    let two = [user("default", "a", 1), user("default-other", "a", 2)];
    check(&observed_rule(&evict, &two, none, 0), pending, "2 pods need to be evicted in 2 different namespaces.");
    check(
        &observed_rule(&evict, &[], none, 2),
        ("False", "Completed"),
        "2 pods evicted since starting the controller.",
    );
    // "evict-many-pods-same-namespace"
    let two = [user("default", "a", 1), user("default", "b", 2)];
    check(&observed_rule(&evict, &two, none, 0), pending, "2 pods need to be evicted in 1 namespace.");
    let both = "2 pods need to be evicted in 1 namespace. 3 pods evicted since starting the controller.";
    check(&observed_rule(&evict, &two, none, 3), pending, both);
    // "no-schedule" has no case upstream.
    let other = "Eviction only happens for the NoExecute effect.";
    check(&observed_rule(&of_driver("NoSchedule"), &two, none, 0), ("False", "OtherEffect"), other);
}

/// Upstream: `TestController`.
#[test]
fn a_rule_without_effect_reports_what_no_execute_would_do() {
    let no_effect = of_driver("None");
    let reason = ("False", "NoEffect");
    let message = |selected: &str| {
        format!(
            "{selected} if the effect was NoExecute. This information will not be updated again. Recreate the \
             DeviceTaintRule to trigger an update."
        )
    };
    // "none-pod-rule"
    let one = "3 published devices selected. 1 allocated device selected. 1 pod would be evicted in 1 namespace";
    check(&observed_rule(&no_effect, &[user("default", "a", 1)], (3, 1), 0), reason, &message(one));
    // "none-many-pods-many-namespaces"
    let two = [user("default", "a", 1), user("default-other", "a", 2)];
    let many = "0 published devices selected. 3 allocated devices selected. 2 pods would be evicted in 2 different \
                namespaces";
    check(&observed_rule(&no_effect, &two, (0, 3), 0), reason, &message(many));
    // "none-many-pods-same-namespace"
    let two = [user("default", "a", 1), user("default", "b", 2)];
    let same = "0 published devices selected. 3 allocated devices selected. 2 pods would be evicted in 1 namespace";
    check(&observed_rule(&no_effect, &two, (0, 3), 0), reason, &message(same));
    // "none-podgroup-rule"
    let in_group = pod().set(&["spec", "schedulingGroup"], json!({ "podGroupName": "my-podgroup" }));
    let of_group = Scene { pod: in_group, claims: vec![claim_of_group()], by_group: true, ..Scene::new(&[], &[]) };
    check(&observed_rule(&no_effect, &[of_group], (3, 1), 0), reason, &message(one));
    let nobody = "1 published device selected. 0 allocated devices selected. 0 pods would be evicted in 0 different \
                  namespaces";
    check(&observed_rule(&no_effect, &[], (1, 0), 0), reason, &message(nobody));
}

#[test]
fn pods_that_stay_or_are_being_deleted_are_not_counted() {
    let evict = of_driver("NoExecute");
    let counted = |scene: Scene| told(&observed_rule(&evict, &[scene], (0, 0), 0)).0;
    let none = "report (no pods to evict)";
    let user = || user("default", "a", 1);
    assert_eq!(counted(user()), "report (pods to evict: 1, in namespaces: 1)");
    assert_eq!(counted(Scene { pod: user().pod.terminating(), ..user() }), none);
    assert_eq!(counted(Scene { pod: user().pod.uid_of("another"), ..user() }), none);
    let tolerant = |seconds| {
        let device = allocated("instance", &[toleration(KEY, None, seconds)]);
        Scene { claims: vec![claim_of("claim", &[device], &["a"])], ..user() }
    };
    assert_eq!(counted(tolerant(None)), none);
    assert_eq!(counted(tolerant(Some(3600))), "report (pods to evict: 1, in namespaces: 1)");
    let elsewhere = claim_of("claim", &[json!({ "driver": "other", "pool": "worker", "device": "instance" })], &["a"]);
    assert_eq!(counted(Scene { claims: vec![elsewhere], ..user() }), none);
}

/// Upstream: `maybeUpdateRuleStatus`.
#[test]
fn a_condition_is_written_at_most_every_ten_seconds_unless_the_spec_changes() {
    let pods = [user("default", "a", 1)];
    let observed = |generation, reason: &str, message: &str| {
        let rule = with_condition(of_driver("NoExecute").generation(2), generation, reason, message);
        observed_rule(&rule, &pods, (0, 0), 0)
    };
    let plan_at = |observed: &ObservedRule, seconds| plan_rule(observed, after(seconds)).to_string();
    let pending = "report (pods to evict: 1, in namespaces: 1)";
    let written = observed(2, "NotStarted", "");
    assert_eq!(plan_at(&written, 3), "wait 7s (its condition was written within 10s)");
    assert_eq!(plan_at(&written, 10), pending);
    assert_eq!(plan_at(&observed(1, "NotStarted", ""), 3), pending);
    // Another process's clock is ahead.
    assert_eq!(plan_at(&written, -3600), "wait 10s (its condition was written within 10s)");
}

#[test]
fn a_condition_that_is_already_correct_is_not_written() {
    let pods = [user("default", "a", 1)];
    let message = "1 pod needs to be evicted in 1 namespace.";
    let written = |generation, message: &str| {
        let rule = with_condition(of_driver("NoExecute").generation(2), generation, "PodsPendingEviction", message);
        let observed = observed_rule(&rule, &pods, (0, 0), 0);
        let reason = plan_rule(&observed, after(60)).reason;
        next_condition(&observed, &reason, after(60))
    };
    assert_eq!(written(2, message), None);
    assert!(written(1, message).is_some());
    assert!(written(2, "2 pods need to be evicted in 1 namespace.").is_some());
}

#[test]
fn a_simulation_is_reported_once_for_each_generation() {
    let simulated = |generation, reason: &str| {
        let rule = with_condition(of_driver("None").generation(2), generation, reason, "numbers of then");
        let observed = observed_rule(&rule, &[], (3, 1), 0);
        plan_rule(&observed, after(60)).to_string()
    };
    assert_eq!(simulated(2, "NoEffect"), "keep (its condition says what NoExecute would do)");
    let tells = "report (effect None, devices published: 3, allocated: 1, pods: 0, in namespaces: 0)";
    assert_eq!(simulated(1, "NoEffect"), tells);
    assert_eq!(simulated(2, "Completed"), tells);
}

/// A takeover of rules that have done their work writes nothing.
#[test]
fn a_completed_condition_of_a_former_process_is_kept() {
    let completed = |generation, evicted| {
        let message = "2 pods evicted since starting the controller.";
        let rule = with_condition(of_driver("NoExecute").generation(2), generation, "Completed", message);
        plan_rule(&observed_rule(&rule, &[], (0, 0), evicted), after(60)).to_string()
    };
    assert_eq!(completed(2, 0), "keep (no pods to evict since this process began)");
    assert_eq!(completed(2, 1), "report (no pods to evict)");
    assert_eq!(completed(1, 0), "report (no pods to evict)");
}

#[test]
fn the_condition_is_applied_with_all_of_its_fields() {
    let observed = observed_rule(&of_driver("NoExecute").generation(3), &[], (0, 0), 0);
    let Some(condition) = told(&observed).1 else { panic!("nothing is told") };
    let body: Value = serde_json::to_value(Configuration::new("evict", condition)).unwrap_or_default();
    let condition = json!({
        "type": "EvictionInProgress", "status": "False", "reason": "NotStarted", "message": "",
        "observedGeneration": 3, "lastTransitionTime": "2026-01-01T12:00:00Z",
    });
    assert_eq!(body, json!({ "metadata": { "name": "evict" }, "status": { "conditions": [condition] } }));
}
