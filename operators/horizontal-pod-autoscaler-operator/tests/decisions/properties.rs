//! Rules for any metrics, any history and any behavior.

#![expect(clippy::unwrap_used, reason = "a fixture that is not read is a broken test")]

use std::time::Duration;

use horizontal_pod_autoscaler_operator::memory::{History, Recommendation, ScaleEvent};
use horizontal_pod_autoscaler_operator::plan::{Action, Plan};
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::testing::NOW;
use shared::testing::properties::{comes_to_rest, order_is_irrelevant};

use crate::fixtures::{AT, Scene, autoscaler, before, cpu_metric, replicas_after};

fn policies() -> impl Strategy<Value = Value> {
    let policy = (prop_oneof![Just("Pods"), Just("Percent")], 1..200_i32, 1..600_i32);
    proptest::collection::vec(policy, 1..4).prop_map(|policies| {
        let of = |(type_, value, period): &(&str, i32, i32)| {
            json!({ "type": type_, "value": value, "periodSeconds": period })
        };
        policies.iter().map(of).collect::<Vec<_>>().into()
    })
}

fn rules() -> impl Strategy<Value = Value> {
    let select = prop_oneof![Just("Max"), Just("Min"), Just("Disabled")];
    (0..600_i32, select, policies()).prop_map(|(window, select, policies)| {
        json!({ "stabilizationWindowSeconds": window, "selectPolicy": select, "policies": policies })
    })
}

fn behaviors() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        (rules(), rules()).prop_map(|(up, down)| json!({ "scaleUp": up, "scaleDown": down })),
    ]
}

fn histories() -> impl Strategy<Value = History> {
    let recommendations = proptest::collection::vec((0..40_i32, 0..700_i64), 0..6);
    let events = || proptest::collection::vec((1..20_i32, 0..700_i64), 0..4);
    (proptest::option::of(recommendations), events(), events()).prop_map(|(recommendations, ups, downs)| {
        let events = |events: Vec<(i32, i64)>| {
            events.into_iter().map(|(change, seconds)| ScaleEvent { change, at: before(seconds) }).collect()
        };
        let of = |(replicas, seconds)| Recommendation { replicas, at: before(seconds) };
        let recommendations = recommendations.map(|each| each.into_iter().map(of).collect());
        History { recommendations, ups: events(ups), downs: events(downs) }
    })
}

/// Bounds, a number of replicas, what each pod takes of a CPU, and how the pods are.
fn scenes() -> impl Strategy<Value = Scene> {
    let numbers = (0..10_i32, 0..20_i32, 0..30_i32, 1..150_i32);
    let levels = proptest::collection::vec(0..3000_i64, 0..30);
    (numbers, levels, behaviors(), histories(), any::<bool>()).prop_map(
        |((min, more, replicas, target), levels, behavior, history, ignores_surge)| {
            let built = autoscaler(min, min + more.max(1), &json!([cpu_metric(target)]));
            let mut scene = Scene::new(built.set(&["spec", "behavior"], behavior), replicas).cpu(&levels);
            scene.config.ignores_surge = ignores_surge;
            scene.history = history;
            scene
        },
    )
}

fn bounds(scene: &Scene) -> (i32, i32) {
    let spec = &scene.autoscaler.json()["spec"];
    let number = |field: &str| i32::try_from(spec[field].as_i64().unwrap()).unwrap();
    (number("minReplicas"), number("maxReplicas"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_is_scaled_stays_within_its_bounds(scene in scenes()) {
        let (min, max) = bounds(&scene);
        let plan = scene.plan();
        if let Action::Scale(rescale) = &plan.action {
            prop_assert!((min..=max).contains(&rescale.to), "{} of {}..{}: {}", rescale.to, min, max, plan);
            prop_assert_ne!(rescale.from, rescale.to);
        }
    }

    #[test]
    fn a_direction_that_is_disabled_is_not_taken(scene in scenes(), is_up in any::<bool>()) {
        let (min, max) = bounds(&scene);
        // Beyond its bounds a target is brought back whatever the rules say.
        prop_assume!((min..=max).contains(&scene.replicas));
        let disabled = json!({ "selectPolicy": "Disabled" });
        let behavior = if is_up { json!({ "scaleUp": disabled }) } else { json!({ "scaleDown": disabled }) };
        let autoscaler = scene.autoscaler.clone().set(&["spec", "behavior"], behavior);
        let replicas = scene.replicas;
        let after = replicas_after(&Scene { autoscaler, ..scene }.plan(), replicas);
        prop_assert!(if is_up { after <= replicas } else { after >= replicas }, "{} to {}", replicas, after);
    }

    #[test]
    fn the_order_of_pods_and_of_metrics_is_irrelevant(
        levels in proptest::collection::vec(0..3000_i64, 1..8),
        values in proptest::collection::vec(0..100_000_i64, 1..4),
    ) {
        let count = i32::try_from(levels.len()).unwrap();
        let pods = Scene::new(autoscaler(1, 50, &json!([])), count).pods;
        let target = json!({ "type": "AverageValue", "averageValue": "10" });
        let external = json!({ "type": "External", "external": { "metric": { "name": "qps" }, "target": target } });
        order_is_irrelevant(&pods, |pods| {
            let mut scene = Scene::new(autoscaler(1, 50, &json!([cpu_metric(50)])), count).cpu(&levels);
            scene.pods = pods.to_vec();
            scene.plan()
        });
        order_is_irrelevant(&values, |values| {
            let metrics: Vec<&Value> = values.iter().map(|_| &external).collect();
            let scene = Scene::new(autoscaler(1, 50, &json!(metrics)), count);
            let scene = values.iter().fold(scene, |scene, value| scene.external(&[*value]));
            replicas_after(&scene.plan(), count)
        });
    }

    /// With as much load as there is, more replicas share it, until each has its part of it.
    #[test]
    fn it_comes_to_rest(load in 0..40_000_i64, replicas in 1..20_i32, behavior in behaviors()) {
        let mut passed = Duration::ZERO;
        let mut replicas = replicas;
        let mut history = History { recommendations: Some(Vec::new()), ..History::default() };
        let built = autoscaler(1, 30, &json!([cpu_metric(50)])).set(&["spec", "behavior"], behavior);
        comes_to_rest(400, || {
            let share = load / i64::from(replicas);
            let levels = vec![share; usize::try_from(replicas).unwrap()];
            let mut scene = Scene::new(built.clone(), replicas).cpu(&levels);
            scene.history = history.clone();
            // Longer than any window and any period.
            passed += Duration::from_secs(601);
            let (now, at) = (NOW + passed, *AT + passed);
            let plan: Plan = scene.plan_at(now, at);
            let after = replicas_after(&plan, replicas);
            history.recommendations = plan.recommendations.clone();
            if let Some(behavior) = scene.observed().autoscaler.behavior.as_ref().filter(|_| after != replicas) {
                history.add_change(behavior, (replicas, after), at);
            }
            let is_busy = after != replicas;
            replicas = after;
            is_busy
        });
    }
}
