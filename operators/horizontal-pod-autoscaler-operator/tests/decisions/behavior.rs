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
use shared::testing::{NOW, ObjectBuilder, ago};

use crate::fixtures::{AT, Scene, autoscaler, before, config, cpu_metric, replicas_after};

/// The rules for one direction.
#[derive(Default)]
struct Rules {
    policies: Vec<Value>,
    window: i32,
}

fn rules() -> Rules {
    Rules::default()
}

impl Rules {
    fn pods(self, value: i32, period: i32) -> Self {
        self.policy("Pods", value, period)
    }

    fn percent(self, value: i32, period: i32) -> Self {
        self.policy("Percent", value, period)
    }

    fn policy(mut self, type_: &str, value: i32, period: i32) -> Self {
        self.policies.push(json!({ "type": type_, "value": value, "periodSeconds": period }));
        self
    }

    fn window(self, seconds: i32) -> Self {
        Self { window: seconds, ..self }
    }

    fn json(&self) -> Value {
        json!({ "stabilizationWindowSeconds": self.window, "selectPolicy": "Max", "policies": self.policies })
    }
}

fn behavior(up: &Value, down: &Value) -> Behavior {
    let built = autoscaler(1, 1, &json!([])).set(&["spec", "behavior"], json!({ "scaleUp": up, "scaleDown": down }));
    let read: Arc<HorizontalPodAutoscaler> = built.build();
    read.behavior.clone().unwrap()
}

/// One of upstream's cases: a change of replicas, what bounds it, and what was before. The API's rules are the default.
struct Case {
    name: &'static str,
    from: i32,
    to: i32,
    min: i32,
    max: i32,
    up: Value,
    down: Value,
    history: History,
}

/// Between 1 and 1000 replicas.
fn case(name: &'static str) -> Case {
    let (up, down, history) = (Value::Null, Value::Null, History::default());
    Case { name, from: 0, to: 0, min: 1, max: 1000, up, down, history }
}

impl Case {
    fn from(self, replicas: i32) -> Self {
        Self { from: replicas, ..self }
    }

    fn to(self, replicas: i32) -> Self {
        Self { to: replicas, ..self }
    }

    fn min(self, min: i32) -> Self {
        Self { min, ..self }
    }

    fn max(self, max: i32) -> Self {
        Self { max, ..self }
    }

    fn up(self, rules: &Rules) -> Self {
        Self { up: rules.json(), ..self }
    }

    fn down(self, rules: &Rules) -> Self {
        Self { down: rules.json(), ..self }
    }

    /// Earlier additions: by how many replicas, how many seconds ago.
    fn ups(mut self, changes: &[(i32, i64)]) -> Self {
        self.history.ups = events(changes);
        self
    }

    /// Earlier removals.
    fn downs(mut self, changes: &[(i32, i64)]) -> Self {
        self.history.downs = events(changes);
        self
    }

    /// Earlier recommendations: how many replicas, how many seconds ago.
    fn recommended(self, known: &[(i32, i64)]) -> Self {
        Self { history: recommendations(known), ..self }
    }

    #[track_caller]
    fn without_behavior(self, expected: &str) {
        let (replicas, word, _) = convert_with_rules(self.from, self.to, self.min, self.max);
        assert_eq!(format!("{replicas} {word}"), expected, "{}", self.name);
    }

    #[track_caller]
    fn by_policies(self, expected: &str) {
        let behavior = behavior(&self.up, &self.down);
        let (numbers, bounds) = ((self.from, self.to), (self.min, self.max));
        let (replicas, word, _) = convert_with_rate(&behavior, &self.history, numbers, bounds, *AT);
        assert_eq!(format!("{replicas} {word}"), expected, "{}", self.name);
    }

    /// In windows of so many seconds.
    #[track_caller]
    fn by_windows(self, up: i32, down: i32, expected: i32) {
        let Self { name, from, to, history, .. } = self;
        let rules = |window: i32| rules().pods(1, 1).window(window).json();
        let (stabilized, counts) = stabilize(&behavior(&rules(up), &rules(down)), &history, (from, to), &config(), *AT);
        assert_eq!(stabilized, expected, "{name}");
        let window = up.max(down).into();
        let known = history.recommendations.unwrap();
        let within = known.iter().filter(|earlier| earlier.at >= before(window)).count();
        assert_eq!(counts.len(), within + 1, "{name}: those that are too old are forgotten");
        assert_eq!(counts.last(), Some(&Recommendation { replicas: to, at: *AT }), "{name}");
    }
}

/// By how many replicas, how many seconds ago.
fn events(changes: &[(i32, i64)]) -> Vec<ScaleEvent> {
    changes.iter().map(|(change, seconds)| ScaleEvent { change: *change, at: before(*seconds) }).collect()
}

fn recommendations(known: &[(i32, i64)]) -> History {
    let each = known.iter().map(|(replicas, seconds)| Recommendation { replicas: *replicas, at: before(*seconds) });
    History { recommendations: Some(each.collect()), ..History::default() }
}

#[test]
fn without_a_behavior_there_are_upstreams_bounds() {
    case("prenormalized desired replicas within range")
        .from(5)
        .to(7)
        .min(3)
        .max(8)
        .without_behavior("7 DesiredWithinRange");
    case("prenormalized desired replicas < minReplicas")
        .from(3)
        .to(1)
        .min(2)
        .max(8)
        .without_behavior("2 TooFewReplicas");
    case("prenormalized desired zeroed replicas within range")
        .from(1)
        .to(0)
        .min(0)
        .max(10)
        .without_behavior("0 DesiredWithinRange");
    case("maxReplicas is the limit because maxReplicas < scaleUpLimit")
        .from(20)
        .to(1000)
        .max(10)
        .without_behavior("10 TooManyReplicas");
    case("scaleUpLimit is the limit because scaleUpLimit < maxReplicas")
        .from(3)
        .to(1000)
        .max(2000)
        .without_behavior("6 ScaleUpLimit");
    case("at least four").from(1).to(1000).max(2000).without_behavior("4 ScaleUpLimit");
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn policies_bound_what_changes_in_a_time() {
    case("prenormalized desired replicas within range").from(5).to(7).min(3).max(8).by_policies("7 DesiredWithinRange");
    case("prenormalized desired replicas < minReplicas").from(3).to(1).min(2).max(8).by_policies("2 TooFewReplicas");
    case("prenormalized desired replicas within range when minReplicas is 0")
        .from(1)
        .to(0)
        .min(0)
        .max(10)
        .by_policies("0 DesiredWithinRange");
    case("maxReplicas is the limit because maxReplicas < scaleUpLimit")
        .from(20)
        .to(1000)
        .max(10)
        .by_policies("10 TooManyReplicas");
    case("desired replica count is more than the maximum replica count")
        .from(100)
        .to(1000)
        .min(100)
        .max(150)
        .by_policies("150 TooManyReplicas");
    case("scaleUpLimit is the limit because scaleUpLimit < maxReplicas with user policies")
        .from(3)
        .to(1000)
        .max(2000)
        .up(&rules().percent(1, 60))
        .by_policies("4 ScaleUpLimit");
    case("scaleDownLimit is the limit because scaleDownLimit > minReplicas with user defined policies")
        .from(1000)
        .to(3)
        .min(3)
        .max(2000)
        .down(&rules().pods(20, 60))
        .by_policies("980 ScaleDownLimit");
    case("scaleUp with default behavior").from(10).to(50).by_policies("20 ScaleUpLimit");
    case("scaleUp with pods policy larger than percent policy")
        .from(10)
        .to(500)
        .up(&rules().pods(100, 60).percent(100, 60))
        .by_policies("110 ScaleUpLimit");
    case("scaleUp with percent policy larger than pods policy")
        .from(10)
        .to(500)
        .up(&rules().pods(2, 60).percent(100, 60))
        .by_policies("20 ScaleUpLimit");
    case("scaleUp with spec MaxReplicas limitation with large pod policy")
        .from(10)
        .to(50)
        .up(&rules().pods(100, 60))
        .by_policies("50 DesiredWithinRange");
    case("scaleUp with spec MaxReplicas limitation with large percent policy")
        .from(10)
        .to(50)
        .up(&rules().pods(10000, 60))
        .by_policies("50 DesiredWithinRange");
    case("scaleUp with pod policy limitation").from(10).to(50).up(&rules().pods(30, 60)).by_policies("40 ScaleUpLimit");
    case("scaleUp with percent policy limitation")
        .from(10)
        .to(50)
        .up(&rules().percent(200, 60))
        .by_policies("30 ScaleUpLimit");
    case("scaleDown with percent policy larger than pod policy")
        .from(100)
        .to(2)
        .down(&rules().pods(20, 60).percent(1, 60).window(300))
        .by_policies("80 ScaleDownLimit");
    case("scaleDown with pod policy larger than percent policy")
        .from(100)
        .to(2)
        .down(&rules().pods(2, 60).percent(1, 60).window(300))
        .by_policies("98 ScaleDownLimit");
    case("scaleDown with spec MinReplicas=nil limitation with large pod policy")
        .from(10)
        .to(0)
        .down(&rules().pods(100, 60).window(300))
        .by_policies("1 TooFewReplicas");
    case("scaleDown with spec MinReplicas limitation with large pod policy")
        .from(10)
        .to(0)
        .down(&rules().pods(100, 60).window(300))
        .by_policies("1 TooFewReplicas");
    case("scaleDown with spec MinReplicas limitation with large percent policy")
        .from(10)
        .to(2)
        .min(5)
        .down(&rules().percent(100, 60).window(300))
        .by_policies("5 TooFewReplicas");
    case("scaleDown with pod policy limitation")
        .from(10)
        .to(2)
        .down(&rules().pods(5, 60).window(300))
        .by_policies("5 ScaleDownLimit");
    case("scaleDown with percent policy limitation")
        .from(10)
        .to(5)
        .down(&rules().percent(50, 60).window(300))
        .by_policies("5 DesiredWithinRange");
    case("scaleUp with spec MaxReplicas limitation with large pod policy and events")
        .from(100)
        .to(500)
        .max(200)
        .up(&rules().pods(300, 60))
        .ups(&[(1, 100), (5, 60), (9, 20)])
        .by_policies("200 TooManyReplicas");
    case("scaleUp with spec MaxReplicas limitation with large percent policy and events")
        .from(100)
        .to(500)
        .max(200)
        .up(&rules().percent(10000, 60))
        .ups(&[(1, 100), (5, 60), (9, 20)])
        .by_policies("200 TooManyReplicas");
    case("scaleUp with currentReplicas limitation with rate.PeriodSeconds with a lot of recent scale up events")
        .from(100)
        .to(500)
        .up(&rules().pods(5, 120))
        .ups(&[(1, 100), (5, 60), (9, 20)])
        .by_policies("100 ScaleUpLimit");
    case("scaleUp with pod policy and previous scale up events")
        .from(100)
        .to(500)
        .up(&rules().pods(150, 120))
        .ups(&[(1, 100), (5, 60), (9, 20)])
        .by_policies("235 ScaleUpLimit");
    case("scaleUp with percent policy and previous scale up events")
        .from(100)
        .to(500)
        .up(&rules().percent(200, 120))
        .ups(&[(1, 100), (5, 60), (9, 20)])
        .by_policies("255 ScaleUpLimit");
    case("scaleUp with percent policy and previous scale up and down events")
        .from(6)
        .to(24)
        .up(&rules().percent(300, 300))
        .ups(&[(4, 60)])
        .downs(&[(2, 60)])
        .by_policies("16 ScaleUpLimit");
    case("scaleDown with default policy and previous events")
        .from(10)
        .to(5)
        .downs(&[(1, 100), (5, 60), (9, 20)])
        .by_policies("5 DesiredWithinRange");
    case("scaleDown with spec MinReplicas=nil limitation with large pod policy and previous events")
        .from(100)
        .to(0)
        .down(&rules().pods(115, 120).window(300))
        .downs(&[(1, 100), (5, 60), (9, 20)])
        .by_policies("1 TooFewReplicas");
    case("scaleDown with spec MinReplicas limitation with large pod policy and previous events")
        .from(100)
        .to(0)
        .min(5)
        .down(&rules().pods(130, 120).window(300))
        .downs(&[(1, 100), (5, 60), (9, 20)])
        .by_policies("5 TooFewReplicas");
    case("scaleDown with spec MinReplicas limitation with large percent policy and previous events")
        .from(100)
        .to(2)
        .min(5)
        .down(&rules().percent(100, 120).window(300))
        .downs(&[(1, 100), (5, 60), (9, 20)])
        .by_policies("5 TooFewReplicas");
    case("scaleDown with pod policy limitation and previous events")
        .from(100)
        .to(2)
        .down(&rules().pods(5, 120).window(300))
        .downs(&[(1, 100), (5, 60), (9, 20)])
        .by_policies("100 ScaleDownLimit");
    case("scaleDown with percent policy limitation and previous events")
        .from(100)
        .to(0)
        .down(&rules().percent(50, 120).window(300))
        .downs(&[(2, 100), (4, 60), (6, 20)])
        .by_policies("56 ScaleDownLimit");
    case("scaleDown with percent policy and previous scale up and down events")
        .from(10)
        .to(1)
        .down(&rules().percent(50, 180))
        .ups(&[(2, 60)])
        .downs(&[(4, 60)])
        .by_policies("6 ScaleDownLimit");
    case("scaleDown with previous events preventing further scale down")
        .from(100)
        .to(0)
        .down(&rules().percent(10, 120).window(300))
        .downs(&[(10, 100), (10, 60), (10, 20)])
        .by_policies("100 ScaleDownLimit");
    case("scaleDown with with previous events still allowing more scale down")
        .from(10)
        .to(5)
        .down(&rules().percent(1000, 120).window(300))
        .downs(&[(10, 100), (10, 60), (10, 20)])
        .by_policies("5 DesiredWithinRange");
    case("check 'outdated' flag for events for one behavior for up")
        .from(100)
        .to(200)
        .up(&rules().pods(1000, 60))
        .ups(&[(8, 105), (12, 75), (9, 45), (11, 15)])
        .by_policies("200 DesiredWithinRange");
    case("check that events were not marked 'outdated' for two different policies in the behavior for up")
        .from(100)
        .to(200)
        .up(&rules().pods(1000, 120).percent(100, 60))
        .ups(&[(8, 105), (12, 75), (9, 45), (11, 15)])
        .by_policies("200 DesiredWithinRange");
    case("check that events were marked 'outdated' for two different policies in the behavior for up")
        .from(100)
        .to(200)
        .up(&rules().pods(1000, 30).percent(100, 60))
        .ups(&[(8, 105), (12, 75), (9, 45), (11, 15)])
        .by_policies("200 DesiredWithinRange");
    case("check 'outdated' flag for events for one behavior for down")
        .from(100)
        .to(5)
        .down(&rules().pods(1000, 60).window(300))
        .downs(&[(8, 105), (12, 75), (9, 45), (11, 15)])
        .by_policies("5 DesiredWithinRange");
    case("check that events were not marked 'outdated' for two different policies in the behavior for down")
        .from(100)
        .to(5)
        .down(&rules().pods(1000, 120).percent(100, 60).window(300))
        .downs(&[(8, 105), (12, 75), (9, 45), (11, 15)])
        .by_policies("5 DesiredWithinRange");
    case("check that events were marked 'outdated' for two different policies in the behavior for down")
        .from(100)
        .to(5)
        .down(&rules().pods(1000, 30).percent(100, 60).window(300))
        .downs(&[(8, 105), (12, 75), (9, 45), (11, 15)])
        .by_policies("5 DesiredWithinRange");
}

#[test]
fn windows_hold_back_a_change_that_recent_recommendations_contradict() {
    case("empty recommendations for scaling down").from(100).to(5).recommended(&[]).by_windows(0, 0, 5);
    case("simple scale down stabilization").from(100).to(3).recommended(&[(4, 120), (5, 60)]).by_windows(0, 180, 5);
    case("simple scale up stabilization").from(1).to(7).recommended(&[(4, 120), (5, 60)]).by_windows(300, 0, 4);
    case("no scale down stabilization").from(100).to(3).recommended(&[(1, 120), (2, 60)]).by_windows(300, 0, 3);
    case("no scale up stabilization").from(1).to(3).recommended(&[(4, 120), (5, 60)]).by_windows(0, 300, 3);
    case("no scale down stabilization, reuse recommendation element")
        .from(100)
        .to(3)
        .recommended(&[(10, 600), (9, 540)])
        .by_windows(0, 0, 3);
    case("no scale up stabilization, reuse recommendation element")
        .from(1)
        .to(100)
        .recommended(&[(10, 600), (9, 540)])
        .by_windows(0, 0, 100);
    case("scale down stabilization, reuse one of obsolete recommendation element")
        .from(100)
        .to(3)
        .recommended(&[(10, 600), (4, 60), (5, 120), (9, 540)])
        .by_windows(0, 180, 5);
    case("scale up stabilization, reuse one of obsolete recommendation element")
        .from(1)
        .to(100)
        .recommended(&[(10, 6000), (6, 60), (5, 120), (9, 180)])
        .by_windows(300, 0, 5);
    case("scale up and down stabilization, do not scale up when prenormalized rec goes down")
        .from(2)
        .to(1)
        .recommended(&[(2, 6000), (3, 180)])
        .by_windows(300, 300, 2);
    case("scale up and down stabilization, do not scale down when prenormalized rec goes up")
        .from(2)
        .to(3)
        .recommended(&[(2, 6000), (1, 180)])
        .by_windows(300, 300, 2);
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
        let normalized = normalize(&read, &recommendations(known), (10, recommended), &config(), *AT);
        assert_eq!((normalized.replicas, normalized.recommendations.len()), (expected, left), "{name}");
    }
}

/// A step forward would end the window, and a step back would make it longer.
#[test]
fn a_clock_that_is_set_leaves_windows_and_periods_as_they_are() {
    let down =
        json!({ "stabilizationWindowSeconds": 0, "policies": [{ "type": "Pods", "value": 4, "periodSeconds": 60 }] });
    let by_window = autoscaler(1, 20, &json!([cpu_metric(50)]));
    let by_period = by_window.clone().set(&["spec", "behavior"], json!({ "scaleDown": down }));
    for now in [NOW, ago(8 * 3600), ago(-8 * 3600)] {
        let after = |autoscaler: &ObjectBuilder, history: History, seconds: i64| {
            let scene = Scene { history, ..Scene::new(autoscaler.clone(), 10).cpu(&[50; 10]) };
            replicas_after(&scene.plan_at(now, before(-seconds)), 10)
        };
        let window = |seconds| after(&by_window, recommendations(&[(10, 0)]), seconds);
        assert_eq!((window(300), window(301)), (10, 1), "{now}");
        let removed = || History { downs: events(&[(3, 0)]), ..recommendations(&[]) };
        let period = |seconds| after(&by_period, removed(), seconds);
        assert_eq!((period(59), period(60)), (9, 6), "{now}");
    }
}

#[test]
fn changes_are_remembered_for_the_longest_period_of_a_policy() {
    #[track_caller]
    fn row(name: &str, known: &[(i32, i64)], rules: &Rules, expected: &[i32]) {
        let behavior = behavior(&rules.json(), &rules.json());
        let mut history = History { ups: events(known), downs: events(known), ..History::default() };
        history.add_change(&behavior, (10, 15), *AT);
        history.add_change(&behavior, (10, 5), *AT);
        let changes = |events: &[ScaleEvent]| events.iter().map(|event| event.change).collect::<Vec<_>>();
        assert_eq!((changes(&history.ups), changes(&history.downs)), (expected.to_vec(), expected.to_vec()), "{name}");
    }
    row("empty entries with two-policy-behavior", &[], &rules().pods(10, 60).percent(100, 60), &[5]);
    row("one outdated entry to be replaced with behavior", &[(7, 61)], &rules().pods(10, 60).percent(100, 60), &[5]);
    row(
        "one actual entry to be not touched with behavior",
        &[(7, 58)],
        &rules().pods(10, 60).percent(100, 60),
        &[7, 5],
    );
    row("two entries, one of them to be replaced", &[(7, 61), (6, 59)], &rules().pods(10, 60), &[6, 5]);
    row(
        "replace one entry, use policies with different periods",
        &[(8, 29), (6, 59), (7, 61), (9, 61)],
        &rules().pods(10, 60).percent(100, 30),
        &[8, 6, 5],
    );
    row("two entries, both actual", &[(7, 58), (6, 59)], &rules().pods(10, 120).percent(100, 30), &[7, 6, 5]);
}

/// Upstream: `TestCalculateScaleUpLimitWithScalingRules` and `TestCalculateScaleDownLimitWithBehaviors`.
#[test]
fn the_least_of_several_policies_counts_where_that_is_asked_for() {
    let mut least = rules().pods(2, 60).percent(50, 60).window(300).json();
    let limits = |rules: &Value| {
        let behavior = behavior(rules, rules);
        let history = History::default();
        (scale_up_limit(&behavior.scale_up, &history, 1, *AT), scale_down_limit(&behavior.scale_down, &history, 5, *AT))
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
