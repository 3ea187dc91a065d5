//! Rules for all pods, claims, slices, rules and pending deletions.

use std::sync::Arc;

use device_taint_eviction_operator::memory::Pending;
use device_taint_eviction_operator::objects::Pod;
use device_taint_eviction_operator::observe::Observed;
use device_taint_eviction_operator::plan::{Eviction, Plan, Step, due, plan};
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::api::pod::disruption::Disruption;
use shared::api::time::Time;
use shared::testing::{NOW, properties};

use crate::fixtures::{
    KEY, Scene, after, allocated, claim_of, in_status, pending, pod_of, pod_with_template, rule, slice, taint,
    toleration,
};

fn any_tolerations() -> impl Strategy<Value = Vec<Value>> {
    let key = prop::sample::select(vec!["", KEY, "other"]);
    let value = prop::sample::select(vec![None, Some("a")]);
    let one = (key, value, prop::option::of(-3..100_i64));
    prop::collection::vec(one.prop_map(|(key, value, seconds)| toleration(key, value, seconds)), 0..3)
}

fn any_taints() -> impl Strategy<Value = Vec<Value>> {
    let key = prop::sample::select(vec![KEY, "other"]);
    let value = prop::sample::select(vec!["", "a"]);
    let effect = prop::sample::select(vec!["NoExecute", "NoExecute", "None", "NoSchedule"]);
    let one = (key, value, effect, -50..50_i64).prop_map(|(key, value, effect, seconds)| {
        let mut taint = taint(key, value, effect);
        taint["timeAdded"] = json!(Time::of(after(seconds)));
        taint
    });
    prop::collection::vec(one, 0..3)
}

fn any_scene() -> impl Strategy<Value = Scene> {
    let pod = prop::sample::select(vec![
        pod_of("my-pod", &["my-claim", "other"]),
        pod_of("my-pod", &["my-claim"]),
        pod_of("my-pod", &["my-claim"]).node(""),
        pod_of("my-pod", &["my-claim"]).terminating(),
        pod_with_template(&in_status()),
    ]);
    let selectors = prop::sample::subsequence(
        vec![json!({}), json!({ "device": "instance" }), json!({ "driver": "another" })],
        0..=3,
    );
    let rules = (selectors, any_taints()).prop_map(|(selectors, taints)| {
        let taints = taints.into_iter().cycle();
        let rules = selectors.into_iter().zip(taints).enumerate().map(|(at, (selector, taint))| {
            rule(&format!("rule-{at}"), selector, "NoExecute").set(&["spec", "taint"], taint)
        });
        rules.collect()
    });
    (pod, any_tolerations(), any_tolerations(), any_taints(), rules).prop_map(|(pod, first, second, taints, rules)| {
        let claims = vec![
            claim_of("my-claim", &[allocated("instance", &first)], &["my-pod"]),
            claim_of(
                "other",
                &[allocated("instance-no-execute", &second), allocated("instance", &second)],
                &["my-pod"],
            ),
        ];
        Scene { pod, claims, slices: vec![slice(&taints)], rules, by_group: false }
    })
}

fn any_pending() -> impl Strategy<Value = Option<Pending>> {
    let one = (prop::sample::select(vec!["my-pod", "another"]), -50..50_i64, any::<bool>());
    prop::option::of(one).prop_map(|one| one.map(|(name, seconds, is_announced)| pending(name, seconds, is_announced)))
}

fn any_observed() -> impl Strategy<Value = Observed> {
    (any_scene(), any_pending()).prop_map(|(scene, pending)| Observed { pending, ..scene.observed() })
}

/// The observation after the plan was executed, while the pod still ends.
fn applied(observed: &Observed, plan: &Plan) -> Observed {
    match &plan.step {
        Step::Keep => Observed { pending: None, ..observed.clone() },
        Step::Start { pending, left: _ } => Observed { pending: Some(pending.clone()), ..observed.clone() },
        Step::Wait { left: _ } => observed.clone(),
        Step::Evict(Eviction { pod, due: _, rules: _, announce: _, suspect: _ }) => {
            let mut metadata = pod.metadata.clone();
            metadata.deletion = Some(Time::of(NOW));
            let (claims, group) = (pod.claims.clone(), pod.group.clone());
            let ends = Pod { metadata, claims, group, disruption: Disruption::Marked };
            Observed { pod: Some(Arc::new(ends)), pending: None, ..observed.clone() }
        }
    }
}

fn is_news(plan: &Plan) -> bool {
    plan.cancel || matches!(plan.step, Step::Start { .. } | Step::Evict(_))
}

proptest! {
    #[test]
    fn after_applying_there_is_nothing_new_to_decide(observed in any_observed()) {
        let then = plan(&applied(&observed, &plan(&observed, NOW)), NOW);
        prop_assert!(!is_news(&then), "{}", then);
    }

    #[test]
    fn a_pod_is_evicted_when_the_earliest_of_its_causes_is_due_and_not_before(observed in any_observed(), seconds in -100..200_i64) {
        let planned = plan(&observed, after(seconds));
        let ends = observed.pod.as_ref().is_none_or(|pod| pod.metadata.is_being_deleted());
        let due = due(&observed).filter(|_| !ends);
        let goes = due.as_ref().is_some_and(|due| due.at.timestamp() <= after(seconds));
        prop_assert_eq!(matches!(planned.step, Step::Evict(_)), goes, "{}", planned);
        if let Some(due) = due {
            prop_assert!(!due.causes.is_empty());
            let by_driver = due.by_driver.as_ref().map(|(at, _)| *at);
            prop_assert_eq!(Some(due.at), due.by_rules.into_iter().chain(by_driver).min());
        }
    }

    #[test]
    fn the_order_of_claims_slices_and_rules_is_irrelevant(observed in any_observed()) {
        properties::order_is_irrelevant(&observed.claims, |claims| {
            plan(&Observed { claims: claims.to_vec(), ..observed.clone() }, NOW)
        });
        properties::order_is_irrelevant(&observed.rules, |rules| {
            plan(&Observed { rules: rules.to_vec(), ..observed.clone() }, NOW)
        });
    }

    #[test]
    fn only_the_deletion_of_the_same_pod_is_canceled(observed in any_observed()) {
        let uid = observed.pod.as_ref().map(|pod| pod.metadata.uid);
        let is_own = observed.pending.as_ref().is_some_and(|pending| Some(pending.uid) == uid);
        prop_assert!(!plan(&observed, NOW).cancel || is_own);
    }
}
