//! How earlier recommendations and changes bound a new one. Rows have the names of upstream's.
//!
//! Upstream: `TestConvertDesiredReplicasWithRules`, `TestScalingWithRules`, `TestStoreScaleEvents`,
//! `TestNormalizeDesiredReplicas` and `TestNormalizeDesiredReplicasWithBehavior`,
//! `pkg/controller/podautoscaler/horizontal_test.go`.

#![expect(clippy::unwrap_used, reason = "a fixture that is not read is a broken test")]

use std::sync::Arc;

use horizontal_pod_autoscaler_operator::memory::{History, Recommendation, ScaleEvent};
use horizontal_pod_autoscaler_operator::objects::{Behavior, HorizontalPodAutoscaler};
use horizontal_pod_autoscaler_operator::plan::behavior::{
    convert_with_rate, scale_down_limit, scale_up_limit, stabilize,
};
use horizontal_pod_autoscaler_operator::plan::normalize::{convert_with_rules, normalize};
use serde_json::{Value, json};
use shared::testing::{NOW, ago};

use crate::fixtures::{autoscaler, config};

/// Pods in a period, percent in a period, and a window, as upstream's tests name them.
fn rules([pods, pods_period, percent, percent_period, window]: [i32; 5]) -> Value {
    let policy =
        |type_: &str, value: i32, period: i32| json!({ "type": type_, "value": value, "periodSeconds": period });
    let mut policies = Vec::new();
    if pods != 0 {
        policies.push(policy("Pods", pods, pods_period));
    }
    if percent != 0 {
        policies.push(policy("Percent", percent, percent_period));
    }
    json!({ "stabilizationWindowSeconds": window, "selectPolicy": "Max", "policies": policies })
}

fn behavior(up: &Value, down: &Value) -> Behavior {
    let built = autoscaler(1, 1, &json!([])).set(&["spec", "behavior"], json!({ "scaleUp": up, "scaleDown": down }));
    let read: Arc<HorizontalPodAutoscaler> = built.build();
    read.behavior.clone().unwrap()
}

/// Changes by so many replicas, so many seconds ago.
fn events(changes: &[(i32, i64)]) -> Vec<ScaleEvent> {
    changes.iter().map(|(change, seconds)| ScaleEvent { change: *change, at: ago(*seconds) }).collect()
}

fn recommendations(known: &[(i32, i64)]) -> History {
    let each = known.iter().map(|(replicas, seconds)| Recommendation { replicas: *replicas, at: ago(*seconds) });
    History { recommendations: Some(each.collect()), ..History::default() }
}

#[test]
fn without_a_behavior_there_are_upstreams_bounds() {
    for (name, current, desired, min, max, expected) in [
        ("prenormalized desired replicas within range", 5, 7, 3, 8, "7 DesiredWithinRange"),
        ("prenormalized desired replicas < minReplicas", 3, 1, 2, 8, "2 TooFewReplicas"),
        ("prenormalized desired zeroed replicas within range", 1, 0, 0, 10, "0 DesiredWithinRange"),
        ("maxReplicas is the limit because maxReplicas < scaleUpLimit", 20, 1000, 1, 10, "10 TooManyReplicas"),
        ("scaleUpLimit is the limit because scaleUpLimit < maxReplicas", 3, 1000, 1, 2000, "6 ScaleUpLimit"),
        ("at least four", 1, 1000, 1, 2000, "4 ScaleUpLimit"),
    ] {
        let (replicas, word, _) = convert_with_rules(current, desired, min, max);
        assert_eq!(format!("{replicas} {word}"), expected, "{name}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn policies_bound_what_changes_in_a_time() {
    type Changes<'a> = &'a [(i32, i64)];
    #[track_caller]
    fn row(
        name: &str,
        (ups, downs): (Changes<'_>, Changes<'_>),
        (up, down): (&Value, &Value),
        bounds: (i32, i32),
        numbers: (i32, i32),
        expected: &str,
    ) {
        let history = History { ups: events(ups), downs: events(downs), ..History::default() };
        let (replicas, word, _) = convert_with_rate(&behavior(up, down), &history, numbers, bounds, NOW);
        assert_eq!(format!("{replicas} {word}"), expected, "{name}");
    }
    row(
        "prenormalized desired replicas within range",
        (&[], &[]),
        (&Value::Null, &Value::Null),
        (3, 8),
        (5, 7),
        "7 DesiredWithinRange",
    );
    row(
        "prenormalized desired replicas < minReplicas",
        (&[], &[]),
        (&Value::Null, &Value::Null),
        (2, 8),
        (3, 1),
        "2 TooFewReplicas",
    );
    row(
        "prenormalized desired replicas within range when minReplicas is 0",
        (&[], &[]),
        (&Value::Null, &Value::Null),
        (0, 10),
        (1, 0),
        "0 DesiredWithinRange",
    );
    row(
        "maxReplicas is the limit because maxReplicas < scaleUpLimit",
        (&[], &[]),
        (&Value::Null, &Value::Null),
        (1, 10),
        (20, 1000),
        "10 TooManyReplicas",
    );
    row(
        "desired replica count is more than the maximum replica count",
        (&[], &[]),
        (&Value::Null, &Value::Null),
        (100, 150),
        (100, 1000),
        "150 TooManyReplicas",
    );
    row(
        "scaleUpLimit is the limit because scaleUpLimit < maxReplicas with user policies",
        (&[], &[]),
        (&rules([0, 0, 1, 60, 0]), &Value::Null),
        (1, 2000),
        (3, 1000),
        "4 ScaleUpLimit",
    );
    row(
        "scaleDownLimit is the limit because scaleDownLimit > minReplicas with user defined policies",
        (&[], &[]),
        (&Value::Null, &rules([20, 60, 0, 0, 0])),
        (3, 2000),
        (1000, 3),
        "980 ScaleDownLimit",
    );
    row(
        "scaleUp with default behavior",
        (&[], &[]),
        (&Value::Null, &Value::Null),
        (1, 1000),
        (10, 50),
        "20 ScaleUpLimit",
    );
    row(
        "scaleUp with pods policy larger than percent policy",
        (&[], &[]),
        (&rules([100, 60, 100, 60, 0]), &Value::Null),
        (1, 1000),
        (10, 500),
        "110 ScaleUpLimit",
    );
    row(
        "scaleUp with percent policy larger than pods policy",
        (&[], &[]),
        (&rules([2, 60, 100, 60, 0]), &Value::Null),
        (1, 1000),
        (10, 500),
        "20 ScaleUpLimit",
    );
    row(
        "scaleUp with spec MaxReplicas limitation with large pod policy",
        (&[], &[]),
        (&rules([100, 60, 0, 0, 0]), &Value::Null),
        (1, 1000),
        (10, 50),
        "50 DesiredWithinRange",
    );
    row(
        "scaleUp with spec MaxReplicas limitation with large percent policy",
        (&[], &[]),
        (&rules([10000, 60, 0, 0, 0]), &Value::Null),
        (1, 1000),
        (10, 50),
        "50 DesiredWithinRange",
    );
    row(
        "scaleUp with pod policy limitation",
        (&[], &[]),
        (&rules([30, 60, 0, 0, 0]), &Value::Null),
        (1, 1000),
        (10, 50),
        "40 ScaleUpLimit",
    );
    row(
        "scaleUp with percent policy limitation",
        (&[], &[]),
        (&rules([0, 0, 200, 60, 0]), &Value::Null),
        (1, 1000),
        (10, 50),
        "30 ScaleUpLimit",
    );
    row(
        "scaleDown with percent policy larger than pod policy",
        (&[], &[]),
        (&Value::Null, &rules([20, 60, 1, 60, 300])),
        (1, 1000),
        (100, 2),
        "80 ScaleDownLimit",
    );
    row(
        "scaleDown with pod policy larger than percent policy",
        (&[], &[]),
        (&Value::Null, &rules([2, 60, 1, 60, 300])),
        (1, 1000),
        (100, 2),
        "98 ScaleDownLimit",
    );
    row(
        "scaleDown with spec MinReplicas=nil limitation with large pod policy",
        (&[], &[]),
        (&Value::Null, &rules([100, 60, 0, 0, 300])),
        (1, 1000),
        (10, 0),
        "1 TooFewReplicas",
    );
    row(
        "scaleDown with spec MinReplicas limitation with large pod policy",
        (&[], &[]),
        (&Value::Null, &rules([100, 60, 0, 0, 300])),
        (1, 1000),
        (10, 0),
        "1 TooFewReplicas",
    );
    row(
        "scaleDown with spec MinReplicas limitation with large percent policy",
        (&[], &[]),
        (&Value::Null, &rules([0, 0, 100, 60, 300])),
        (5, 1000),
        (10, 2),
        "5 TooFewReplicas",
    );
    row(
        "scaleDown with pod policy limitation",
        (&[], &[]),
        (&Value::Null, &rules([5, 60, 0, 0, 300])),
        (1, 1000),
        (10, 2),
        "5 ScaleDownLimit",
    );
    row(
        "scaleDown with percent policy limitation",
        (&[], &[]),
        (&Value::Null, &rules([0, 0, 50, 60, 300])),
        (1, 1000),
        (10, 5),
        "5 DesiredWithinRange",
    );
    row(
        "scaleUp with spec MaxReplicas limitation with large pod policy and events",
        (&[(1, 100), (5, 60), (9, 20)], &[]),
        (&rules([300, 60, 0, 0, 0]), &Value::Null),
        (1, 200),
        (100, 500),
        "200 TooManyReplicas",
    );
    row(
        "scaleUp with spec MaxReplicas limitation with large percent policy and events",
        (&[(1, 100), (5, 60), (9, 20)], &[]),
        (&rules([0, 0, 10000, 60, 0]), &Value::Null),
        (1, 200),
        (100, 500),
        "200 TooManyReplicas",
    );
    row(
        "scaleUp with currentReplicas limitation with rate.PeriodSeconds with a lot of recent scale up events",
        (&[(1, 100), (5, 60), (9, 20)], &[]),
        (&rules([5, 120, 0, 0, 0]), &Value::Null),
        (1, 1000),
        (100, 500),
        "100 ScaleUpLimit",
    );
    row(
        "scaleUp with pod policy and previous scale up events",
        (&[(1, 100), (5, 60), (9, 20)], &[]),
        (&rules([150, 120, 0, 0, 0]), &Value::Null),
        (1, 1000),
        (100, 500),
        "235 ScaleUpLimit",
    );
    row(
        "scaleUp with percent policy and previous scale up events",
        (&[(1, 100), (5, 60), (9, 20)], &[]),
        (&rules([0, 0, 200, 120, 0]), &Value::Null),
        (1, 1000),
        (100, 500),
        "255 ScaleUpLimit",
    );
    row(
        "scaleUp with percent policy and previous scale up and down events",
        (&[(4, 60)], &[(2, 60)]),
        (&rules([0, 0, 300, 300, 0]), &Value::Null),
        (1, 1000),
        (6, 24),
        "16 ScaleUpLimit",
    );
    row(
        "scaleDown with default policy and previous events",
        (&[], &[(1, 100), (5, 60), (9, 20)]),
        (&Value::Null, &Value::Null),
        (1, 1000),
        (10, 5),
        "5 DesiredWithinRange",
    );
    row(
        "scaleDown with spec MinReplicas=nil limitation with large pod policy and previous events",
        (&[], &[(1, 100), (5, 60), (9, 20)]),
        (&Value::Null, &rules([115, 120, 0, 0, 300])),
        (1, 1000),
        (100, 0),
        "1 TooFewReplicas",
    );
    row(
        "scaleDown with spec MinReplicas limitation with large pod policy and previous events",
        (&[], &[(1, 100), (5, 60), (9, 20)]),
        (&Value::Null, &rules([130, 120, 0, 0, 300])),
        (5, 1000),
        (100, 0),
        "5 TooFewReplicas",
    );
    row(
        "scaleDown with spec MinReplicas limitation with large percent policy and previous events",
        (&[], &[(1, 100), (5, 60), (9, 20)]),
        (&Value::Null, &rules([0, 0, 100, 120, 300])),
        (5, 1000),
        (100, 2),
        "5 TooFewReplicas",
    );
    row(
        "scaleDown with pod policy limitation and previous events",
        (&[], &[(1, 100), (5, 60), (9, 20)]),
        (&Value::Null, &rules([5, 120, 0, 0, 300])),
        (1, 1000),
        (100, 2),
        "100 ScaleDownLimit",
    );
    row(
        "scaleDown with percent policy limitation and previous events",
        (&[], &[(2, 100), (4, 60), (6, 20)]),
        (&Value::Null, &rules([0, 0, 50, 120, 300])),
        (1, 1000),
        (100, 0),
        "56 ScaleDownLimit",
    );
    row(
        "scaleDown with percent policy and previous scale up and down events",
        (&[(2, 60)], &[(4, 60)]),
        (&Value::Null, &rules([0, 0, 50, 180, 0])),
        (1, 1000),
        (10, 1),
        "6 ScaleDownLimit",
    );
    row(
        "scaleDown with previous events preventing further scale down",
        (&[], &[(10, 100), (10, 60), (10, 20)]),
        (&Value::Null, &rules([0, 0, 10, 120, 300])),
        (1, 1000),
        (100, 0),
        "100 ScaleDownLimit",
    );
    row(
        "scaleDown with with previous events still allowing more scale down",
        (&[], &[(10, 100), (10, 60), (10, 20)]),
        (&Value::Null, &rules([0, 0, 1000, 120, 300])),
        (1, 1000),
        (10, 5),
        "5 DesiredWithinRange",
    );
    row(
        "check 'outdated' flag for events for one behavior for up",
        (&[(8, 105), (12, 75), (9, 45), (11, 15)], &[]),
        (&rules([1000, 60, 0, 0, 0]), &Value::Null),
        (1, 1000),
        (100, 200),
        "200 DesiredWithinRange",
    );
    row(
        "check that events were not marked 'outdated' for two different policies in the behavior for up",
        (&[(8, 105), (12, 75), (9, 45), (11, 15)], &[]),
        (&rules([1000, 120, 100, 60, 0]), &Value::Null),
        (1, 1000),
        (100, 200),
        "200 DesiredWithinRange",
    );
    row(
        "check that events were marked 'outdated' for two different policies in the behavior for up",
        (&[(8, 105), (12, 75), (9, 45), (11, 15)], &[]),
        (&rules([1000, 30, 100, 60, 0]), &Value::Null),
        (1, 1000),
        (100, 200),
        "200 DesiredWithinRange",
    );
    row(
        "check 'outdated' flag for events for one behavior for down",
        (&[], &[(8, 105), (12, 75), (9, 45), (11, 15)]),
        (&Value::Null, &rules([1000, 60, 0, 0, 300])),
        (1, 1000),
        (100, 5),
        "5 DesiredWithinRange",
    );
    row(
        "check that events were not marked 'outdated' for two different policies in the behavior for down",
        (&[], &[(8, 105), (12, 75), (9, 45), (11, 15)]),
        (&Value::Null, &rules([1000, 120, 100, 60, 300])),
        (1, 1000),
        (100, 5),
        "5 DesiredWithinRange",
    );
    row(
        "check that events were marked 'outdated' for two different policies in the behavior for down",
        (&[], &[(8, 105), (12, 75), (9, 45), (11, 15)]),
        (&Value::Null, &rules([1000, 30, 100, 60, 300])),
        (1, 1000),
        (100, 5),
        "5 DesiredWithinRange",
    );
}

#[test]
fn windows_hold_back_what_recommendations_of_late_do_not_agree_on() {
    #[track_caller]
    fn row(name: &str, known: &[(i32, i64)], numbers: (i32, i32), (up, down): (i32, i32), expected: i32) {
        let behavior = behavior(&rules([1, 1, 0, 0, up]), &rules([1, 1, 0, 0, down]));
        let (stabilized, counts) = stabilize(&behavior, &recommendations(known), numbers, &config(), NOW);
        assert_eq!(stabilized, expected, "{name}");
        let window = i64::from(up.max(down));
        let within = known.iter().filter(|(_, seconds)| *seconds <= window).count();
        assert_eq!(counts.len(), within + 1, "{name}: those that are too old are forgotten");
        assert_eq!(counts.last(), Some(&Recommendation { replicas: numbers.1, at: NOW }), "{name}");
    }
    row("empty recommendations for scaling down", &[], (100, 5), (0, 0), 5);
    row("simple scale down stabilization", &[(4, 120), (5, 60)], (100, 3), (0, 180), 5);
    row("simple scale up stabilization", &[(4, 120), (5, 60)], (1, 7), (300, 0), 4);
    row("no scale down stabilization", &[(1, 120), (2, 60)], (100, 3), (300, 0), 3);
    row("no scale up stabilization", &[(4, 120), (5, 60)], (1, 3), (0, 300), 3);
    row("no scale down stabilization, reuse recommendation element", &[(10, 600), (9, 540)], (100, 3), (0, 0), 3);
    row("no scale up stabilization, reuse recommendation element", &[(10, 600), (9, 540)], (1, 100), (0, 0), 100);
    row(
        "scale down stabilization, reuse one of obsolete recommendation element",
        &[(10, 600), (4, 60), (5, 120), (9, 540)],
        (100, 3),
        (0, 180),
        5,
    );
    row(
        "scale up stabilization, reuse one of obsolete recommendation element",
        &[(10, 6000), (6, 60), (5, 120), (9, 180)],
        (1, 100),
        (300, 0),
        5,
    );
    row(
        "scale up and down stabilization, do not scale up when prenormalized rec goes down",
        &[(2, 6000), (3, 180)],
        (2, 1),
        (300, 300),
        2,
    );
    row(
        "scale up and down stabilization, do not scale down when prenormalized rec goes up",
        &[(2, 6000), (1, 180)],
        (2, 3),
        (300, 300),
        2,
    );
}

#[test]
fn without_a_behavior_the_highest_of_five_minutes_counts() {
    for (name, known, recommended, expected, left) in [
        ("empty log", &[][..], 5, 5, 1),
        ("stabilize", &[(4, 120), (5, 60)], 3, 5, 3),
        ("no stabilize", &[(1, 120), (2, 60)], 3, 3, 3),
        ("no stabilize - old recommendations", &[(10, 600), (9, 540)], 3, 3, 1),
        ("stabilize - old recommendations", &[(10, 600), (4, 60), (5, 120), (9, 540)], 3, 5, 3),
        ("at the end of the window", &[(5, 300)], 3, 5, 2),
    ] {
        let read: Arc<HorizontalPodAutoscaler> = autoscaler(1, 100, &json!([])).build();
        let normalized = normalize(&read, &recommendations(known), (10, recommended), &config(), NOW);
        assert_eq!((normalized.replicas, normalized.recommendations.len()), (expected, left), "{name}");
    }
}

#[test]
fn changes_are_remembered_for_the_longest_period_of_a_policy() {
    #[track_caller]
    fn row(name: &str, known: &[(i32, i64)], rules: &Value, expected: &[i32]) {
        let behavior = behavior(rules, rules);
        let mut history = History { ups: events(known), downs: events(known), ..History::default() };
        history.add_change(&behavior, (10, 15), NOW);
        history.add_change(&behavior, (10, 5), NOW);
        let changes = |events: &[ScaleEvent]| events.iter().map(|event| event.change).collect::<Vec<_>>();
        assert_eq!((changes(&history.ups), changes(&history.downs)), (expected.to_vec(), expected.to_vec()), "{name}");
    }
    row("empty entries with two-policy-behavior", &[], &rules([10, 60, 100, 60, 0]), &[5]);
    row("one outdated entry to be replaced with behavior", &[(7, 61)], &rules([10, 60, 100, 60, 0]), &[5]);
    row("one actual entry to be not touched with behavior", &[(7, 58)], &rules([10, 60, 100, 60, 0]), &[7, 5]);
    row("two entries, one of them to be replaced", &[(7, 61), (6, 59)], &rules([10, 60, 0, 0, 0]), &[6, 5]);
    row(
        "replace one entry, use policies with different periods",
        &[(8, 29), (6, 59), (7, 61), (9, 61)],
        &rules([10, 60, 100, 30, 0]),
        &[8, 6, 5],
    );
    row("two entries, both actual", &[(7, 58), (6, 59)], &rules([10, 120, 100, 30, 0]), &[7, 6, 5]);
}

/// Upstream: `TestCalculateScaleUpLimitWithScalingRules` and `TestCalculateScaleDownLimitWithBehaviors`.
#[test]
fn the_least_of_several_policies_counts_where_that_is_asked_for() {
    let mut least = rules([2, 60, 50, 60, 300]);
    let limits = |rules: &Value| {
        let behavior = behavior(rules, rules);
        let history = History::default();
        (scale_up_limit(&behavior.scale_up, &history, 1, NOW), scale_down_limit(&behavior.scale_down, &history, 5, NOW))
    };
    assert_eq!(limits(&least), (3, 2));
    least["selectPolicy"] = "Min".into();
    assert_eq!(limits(&least), (2, 3));
    least["selectPolicy"] = "Disabled".into();
    assert_eq!(limits(&least), (1, 5));
}

/// Upstream: `pkg/apis/autoscaling/v2/defaults.go`.
#[test]
fn what_a_behavior_does_not_say_is_the_apis_default() {
    let of = |behavior: &Behavior| format!("{:?} {:?}", behavior.scale_up, behavior.scale_down);
    let given = behavior(
        &json!({
            "stabilizationWindowSeconds": 0, "selectPolicy": "Max",
            "policies": [
                { "type": "Pods", "value": 4, "periodSeconds": 15 },
                { "type": "Percent", "value": 100, "periodSeconds": 15 },
            ],
        }),
        &json!({ "selectPolicy": "Max", "policies": [{ "type": "Percent", "value": 100, "periodSeconds": 15 }] }),
    );
    assert_eq!(of(&behavior(&Value::Null, &json!({}))), of(&given));
}
