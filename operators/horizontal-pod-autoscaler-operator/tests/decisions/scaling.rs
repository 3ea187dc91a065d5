//! What an autoscaler does beyond metrics that are well: faults and their words, zero replicas, tolerances of its own,
//! pods of several autoscalers, and the status that follows.
//!
//! Rows have the names of upstream's tests where there are some.
//! Upstream: `pkg/controller/podautoscaler/horizontal_test.go`.

use std::sync::Arc;
use std::time::Duration;

use horizontal_pod_autoscaler_operator::apply::{Outcome, Scaled};
use horizontal_pod_autoscaler_operator::memory::History;
use horizontal_pod_autoscaler_operator::objects::{AutoscalerStatus, HorizontalPodAutoscaler, MetricStatus};
use horizontal_pod_autoscaler_operator::observe::{Known, ScaleFailure};
use horizontal_pod_autoscaler_operator::plan::{Action, Config, Plan, Rescale, plan, plan_metrics, plan_scale};
use horizontal_pod_autoscaler_operator::status::next_status;
use serde_json::{Value, json};
use shared::testing::{NOW, ObjectBuilder, ago};

use crate::fixtures::{AT, Scene, autoscaler, config, cpu_metric, read_pod, web, words};

fn of_object(value: &str) -> Value {
    let object = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "some-deployment" });
    let target = json!({ "type": "Value", "value": value });
    json!({ "type": "Object", "object": { "describedObject": object, "metric": { "name": "qps" }, "target": target } })
}

fn external(value: &str) -> Value {
    let target = json!({ "type": "Value", "value": value });
    json!({ "type": "External", "external": { "metric": { "name": "qps", "selector": {} }, "target": target } })
}

fn to_zero() -> Config {
    Config { has_scale_to_zero: true, ..config() }
}

fn scaled_to_zero(built: ObjectBuilder) -> ObjectBuilder {
    let condition = json!({ "type": "ScaledToZero", "status": "True", "reason": "ScaledToZero" });
    built.set(&["status", "conditions"], json!([condition]))
}

/// The outcome when everything that was planned has succeeded.
fn succeeded(plan: Plan) -> Outcome {
    let result = match plan.action {
        Action::None => Scaled::Unknown,
        Action::Leave { current, metrics } => Scaled::Left { current, metrics },
        Action::Keep { current, metrics } => Scaled::Kept { current, metrics },
        Action::Scale(Rescale { from, to, cause: _, metrics, scaled_to_zero }) => {
            Scaled::Done { from, to, metrics, scaled_to_zero }
        }
    };
    let (conditions, drops_scaled_to_zero) = (plan.conditions, plan.drops_scaled_to_zero);
    let (tallies, failure) = (plan.tallies, plan.failure);
    Outcome { conditions, drops_scaled_to_zero, result, tallies, failure, error: None }
}

fn status_after(scene: &Scene, outcome: &Outcome) -> AutoscalerStatus {
    let read: Arc<HorizontalPodAutoscaler> = scene.autoscaler.build();
    next_status(&read, outcome, NOW).unwrap_or_else(|| read.status.clone())
}

fn conditions_after(scene: &Scene) -> String {
    let status = status_after(scene, &succeeded(scene.plan()));
    let each = status.conditions.iter().map(|it| format!("{}={} {}", it.type_, it.status, it.reason));
    each.collect::<Vec<_>>().join(", ")
}

/// `TestScaleUpFromZeroCMObject`, `TestScaleUpFromZeroIgnoresToleranceCMObject`, `TestScaleUpFromZeroWithoutCondition`,
/// `TestScaleUpFromZeroWhenMinReplicasIncreased`, `TestManualScaleToZeroDisablesHPA`,
/// `TestScaleUpFromZeroOneMetricInvalid` and `TestZeroReplicas`.
#[test]
fn only_an_autoscaler_that_scaled_to_zero_scales_up_again() {
    const DISABLED: &str = "keep 0 (not scaled to zero by this autoscaler)";
    let at_zero = |min, metric: &Value, levels: &[i64], config| {
        let scene = Scene::new(scaled_to_zero(autoscaler(min, 6, &json!([metric]))), 0).objects(levels);
        Scene { config, ..scene }
    };
    for (config, value, expected) in [
        (to_zero(), 20_000, "scale 0 to 2 (2 by Deployment metric qps; ReadyForNewScale, DesiredWithinRange)"),
        // Below the target, which is within any tolerance of nothing.
        (to_zero(), 15_000, "scale 0 to 1 (1 by Deployment metric qps; ReadyForNewScale, DesiredWithinRange)"),
        (config(), 20_000, DISABLED),
    ] {
        assert_eq!(at_zero(0, &of_object("15"), &[value], config).plan().to_string(), expected);
    }
    let raised = at_zero(2, &of_object("15"), &[10_000], to_zero());
    assert_eq!(
        raised.plan().to_string(),
        "scale 0 to 2 (1 by Deployment metric qps; ReadyForNewScale, TooFewReplicas)"
    );
    let by_hand = Scene { config: to_zero(), ..Scene::new(autoscaler(0, 6, &json!([of_object("15")])), 0) };
    assert_eq!(by_hand.plan().to_string(), DISABLED);
    assert_eq!(conditions_after(&by_hand), "AbleToScale=True SucceededGetScale, ScalingActive=False ScalingDisabled");
    // Metrics of pods say nothing while there are none.
    let no_way = Scene::new(scaled_to_zero(autoscaler(0, 6, &json!([cpu_metric(50)]))), 0);
    assert_eq!(Scene { config: to_zero(), ..no_way }.plan().to_string(), DISABLED);
    // Without the gate the condition goes.
    let gated = at_zero(0, &of_object("15"), &[20_000], config());
    assert!(!conditions_after(&gated).contains("ScaledToZero"));
}

/// `TestScaleDownToZeroCMObject`, `TestScaleDownToZeroCMExternal` and `TestScaledToZeroConditionHandledOnNormalRescale`.
#[test]
fn an_autoscaler_that_scales_to_zero_says_so() {
    let idle = |config| {
        let history = History { recommendations: Some(Vec::new()), ..History::default() };
        let scene = Scene::new(autoscaler(0, 6, &json!([external("14400m")])), 5).external(&[0]);
        Scene { history, config, ..scene }
    };
    let scaled = "AbleToScale=True SucceededRescale, ScalingActive=True ValidMetricFound, \
                  ScalingLimited=False DesiredWithinRange";
    assert_eq!(conditions_after(&idle(to_zero())), format!("{scaled}, ScaledToZero=True ScaledToZero"));
    assert_eq!(conditions_after(&idle(config())), scaled);
    let busy = |config| {
        let built = scaled_to_zero(autoscaler(1, 6, &json!([cpu_metric(30)])));
        Scene { config, ..Scene::new(built, 3).cpu(&[300, 500, 700]) }
    };
    assert_eq!(conditions_after(&busy(to_zero())), format!("ScaledToZero=False NotScaledToZero, {scaled}"));
    assert_eq!(conditions_after(&busy(config())), scaled);
}

/// `TestConfigurableTolerance`.
#[test]
fn an_autoscaler_may_have_tolerances_of_its_own() {
    let with = |rules: &Value, levels: &[i64], has_gate| {
        let built = autoscaler(1, 5, &json!([cpu_metric(100)])).set(&["spec", "behavior"], rules.clone());
        let history = History { recommendations: Some(Vec::new()), ..History::default() };
        let config = Config { has_configurable_tolerance: has_gate, ..config() };
        let scene = Scene { history, config, ..Scene::new(built, 3).cpu(levels) };
        scene.plan().to_string().split(" (").next().unwrap().to_owned()
    };
    let up = json!({ "scaleUp": { "tolerance": "0.01" } });
    let down = json!({ "scaleDown": { "tolerance": "900m" } });
    for (name, rules, levels, has_gate, expected) in [
        ("Scaling up because of a 1% configurable tolerance", &up, [1010, 1030, 1020], true, "scale 3 to 4"),
        ("No scale-down because of a 90% configurable tolerance", &down, [300, 300, 300], true, "keep 3"),
        ("No scaling because of the large default tolerance", &json!({}), [1010, 1030, 1020], true, "keep 3"),
        ("No scaling because the configurable tolerance is ignored", &up, [1010, 1030, 1020], false, "keep 3"),
        ("Scaling down, for the tolerance is ignored", &down, [300, 300, 300], false, "scale 3 to 1"),
    ] {
        assert_eq!(with(rules, &levels, has_gate), expected, "{name}");
    }
}

/// `TestUpscaleCap`, `TestUpscaleCapGreaterThanMaxReplicas` and `TestScaleDownWithScalingRules`.
#[test]
fn a_policy_bounds_what_metrics_ask_for() {
    let percent = |value: i32, period: i32| {
        let policies = json!([{ "type": "Percent", "value": value, "periodSeconds": period }]);
        json!({ "scaleUp": { "stabilizationWindowSeconds": 0, "policies": policies } })
    };
    let wanting = |max| {
        let built = autoscaler(1, max, &json!([cpu_metric(10)])).set(&["spec", "behavior"], percent(700, 60));
        Scene::new(built, 3).cpu(&[1000, 2000, 3000]).plan().to_string()
    };
    let metric = "60 by cpu resource utilization (percentage of request); ReadyForNewScale";
    assert_eq!(wanting(100), format!("scale 3 to 24 ({metric}, ScaleUpLimit)"));
    assert_eq!(wanting(20), format!("scale 3 to 20 ({metric}, TooManyReplicas)"));
}

/// `TestConditionInvalidSelectorMissing`, `TestConditionInvalidSelectorUnparsable` and the tests of ambiguous selectors.
#[test]
fn a_selector_must_say_whose_the_pods_are() {
    let with = |selector, others: &[(&'static str, &'static str)], label: bool| {
        let mut scene = Scene::new(autoscaler(2, 6, &json!([cpu_metric(30)])), 3).cpu(&[300, 500, 700]);
        (scene.selector, scene.others) = (selector, others.to_vec());
        if label {
            scene.pods = (0..3).map(|at| read_pod(&web(&format!("web-{at}")).label("cheddar", "cheese"))).collect();
        }
        let plan = scene.plan();
        let told: Vec<String> =
            plan.notices.iter().map(|notice| format!("{}: {}", notice.reason, notice.message)).collect();
        let told_of_condition = plan.conditions.iter().find(|condition| condition.type_ == "ScalingActive").unwrap();
        (words(&plan), told, told_of_condition.message.to_string())
    };
    let (found, told, message) = with("", &[], false);
    assert_eq!(found, "SucceededGetScale InvalidSelector");
    assert_eq!(told, ["SelectorRequired: selector is required", "FailedComputeMetricsReplicas: selector is required"]);
    assert_eq!(message, "the HPA target's scale is missing a selector");
    let (found, told, message) = with("cheddar cheese", &[], false);
    assert_eq!(found, "SucceededGetScale InvalidSelector");
    let error = "couldn't convert selector into a corresponding internal selector object: unable to parse requirement: \
                 found 'cheese', expected: in, notin, =, ==, !=, gt, lt";
    assert_eq!((told[0].as_str(), message.as_str()), (&*format!("InvalidSelector: {error}"), error));
    // Another autoscaler's selector that no pod of ours matches is no matter.
    assert_eq!(
        with("app=web", &[("other", "cheddar=cheese")], false).0,
        "ReadyForNewScale ValidMetricFound DesiredWithinRange"
    );
    for (other, label) in [("app=web", false), ("cheddar=cheese", true)] {
        let (found, told, message) = with("app=web", &[("other", other)], label);
        assert_eq!(found, "SucceededGetScale AmbiguousSelector");
        let error = "pods by selector app=web are controlled by multiple HPAs: [default/other default/web]";
        assert_eq!((told[0].as_str(), message.as_str()), (&*format!("AmbiguousSelector: {error}"), error));
    }
}

/// `TestConditionFailedGetMetrics` and `TestReplicaCalcEmptyMetrics`.
#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn faults_of_metrics_are_told_in_upstreams_words() {
    let average = json!({ "type": "AverageValue", "averageValue": "15" });
    let of_pods = json!({ "type": "Pods", "pods": { "metric": { "name": "qps" }, "target": average } });
    let container = json!({ "type": "ContainerResource", "containerResource": {
        "name": "cpu", "container": "main", "target": { "type": "Utilization", "averageUtilization": 10 },
    } });
    let mut per_pod = external("1");
    per_pod["external"]["target"] = average;
    let scene = |metric: &Value| Scene::new(autoscaler(1, 100, &json!([metric])), 3);
    let prefix = "the HPA was unable to compute the replica count: ";
    for (scene, word, message, step) in [
        (
            scene(&cpu_metric(10)).cpu_fails("something went wrong"),
            "FailedGetResourceMetric",
            "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from \
             resource metrics API: something went wrong",
            "failed to get cpu resource metric value: ",
        ),
        (
            scene(&cpu_metric(10)).cpu(&[]),
            "FailedGetResourceMetric",
            "failed to get cpu utilization: unable to get metrics for resource cpu: no metrics returned from resource \
             metrics API",
            "failed to get cpu resource metric value: ",
        ),
        (
            scene(&container).cpu_fails("something went wrong"),
            "FailedGetContainerResourceMetric",
            "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from \
             resource metrics API: something went wrong",
            "failed to get main container metric value: ",
        ),
        (
            scene(&of_pods).objects_fail("something went wrong"),
            "FailedGetPodsMetric",
            "unable to get metric qps: unable to fetch metrics from custom metrics API: something went wrong",
            "failed to get pods metric value: ",
        ),
        (
            scene(&of_pods).objects(&[]),
            "FailedGetPodsMetric",
            "unable to get metric qps: no metrics returned from custom metrics API",
            "failed to get pods metric value: ",
        ),
        (
            scene(&of_object("15")).objects_fail("something went wrong"),
            "FailedGetObjectMetric",
            "unable to get metric qps: Deployment on default some-deployment/unable to fetch metrics from custom metrics \
             API: something went wrong",
            "failed to get object metric value: ",
        ),
        (
            scene(&of_object("15")).objects(&[1, 2]),
            "FailedGetObjectMetric",
            "unable to get metric qps: Deployment on default some-deployment/unable to fetch metrics from custom metrics \
             API: the custom metrics API server returned 2 results when we asked for exactly one",
            "failed to get object metric value: ",
        ),
        (
            scene(&external("300m")).external_fails("something went wrong"),
            "FailedGetExternalMetric",
            "unable to get external metric default/qps/&LabelSelector{MatchLabels:map[string]string{},\
             MatchExpressions:[]LabelSelectorRequirement{},}: unable to fetch metrics from external metrics API: \
             something went wrong",
            "failed to get qps external metric value: failed to get external metric qps: ",
        ),
        (
            scene(&per_pod).external(&[]),
            "FailedGetExternalMetric",
            "unable to get external metric default/qps/&LabelSelector{MatchLabels:map[string]string{},\
             MatchExpressions:[]LabelSelectorRequirement{},}: no metrics returned from external metrics API",
            "failed to get qps external metric value: failed to get qps external metric: ",
        ),
    ] {
        let plan = scene.plan();
        assert_eq!(words(&plan), format!("SucceededGetScale {word}"));
        let told: Vec<(&str, &str)> =
            plan.notices.iter().map(|notice| (notice.reason, notice.message.as_str())).collect();
        let whole = format!("invalid metrics (1 invalid out of 1), first error is: {step}{message}");
        assert_eq!(told, [(word, message), ("FailedComputeMetricsReplicas", &*whole)]);
        assert_eq!(plan.conditions[1].message, format!("{prefix}{message}"));
        let failure = plan.failure.unwrap();
        assert_eq!(
            failure.message,
            format!(
                "failed to compute desired number of replicas based on listed metrics for Deployment/default/web: {whole}"
            )
        );
    }
}

/// `TestConditionFailedGetScale`.
#[test]
fn a_scale_that_cannot_be_read_is_told() {
    let scene = Scene::new(autoscaler(1, 100, &json!([cpu_metric(10)])), 3);
    let mut observed = scene.observed();
    let failure = |is_spec| ScaleFailure { message: "no".to_owned(), step: "step: no".to_owned(), is_spec };
    observed.scale = Err(failure(true));
    let plan = plan(&observed, &config(), (NOW, *AT));
    assert_eq!(plan.to_string(), "event FailedGetScale; do nothing (cannot read the scale: no)");
    let condition = &plan.conditions[0];
    assert_eq!(
        (condition.type_, condition.holds, condition.word, &*condition.message),
        ("AbleToScale", false, "FailedGetScale", "the HPA controller was unable to get the target's current scale: no")
    );
    assert!(plan.failure.unwrap().is_spec);
    assert_eq!(plan_metrics(&observed, &config()), None);
}

/// `TestConditionFailedUpdateScale`.
#[test]
fn a_scale_that_cannot_be_written_leaves_the_number_that_was_wanted_before() {
    let scene = Scene::new(autoscaler(1, 5, &json!([cpu_metric(100)])), 3).cpu(&[1500, 1500, 1500]);
    let plan = scene.plan();
    assert_eq!(
        plan.to_string(),
        "scale 3 to 5 (5 by cpu resource utilization (percentage of request); ReadyForNewScale, DesiredWithinRange)"
    );
    let metrics = vec![MetricStatus::default()];
    let result = Scaled::Failed { current: 3, metrics, error: "something went wrong".to_owned() };
    let status = status_after(&scene, &Outcome { result, ..succeeded(plan) });
    let condition = status.condition("AbleToScale").unwrap();
    assert_eq!((&*condition.status, &*condition.reason), ("False", "FailedUpdateScale"));
    assert_eq!(&*condition.message, "the HPA controller was unable to update the target scale: something went wrong");
    assert_eq!((status.current_replicas, status.desired_replicas, status.last_scale_time), (3, 0, None));
}

/// `TestAvoidUnnecessaryUpdates`.
#[test]
fn a_status_that_is_right_is_not_written() {
    let scene = Scene::new(autoscaler(2, 6, &json!([cpu_metric(50)])), 2).cpu(&[500, 500]);
    let status = status_after(&scene, &succeeded(scene.plan()));
    let json = serde_json::to_value(&status).unwrap();
    assert_eq!(
        json["currentMetrics"][0]["resource"]["current"],
        json!({
            "averageUtilization": 50, "averageValue": "500m",
        })
    );
    assert_eq!((json["lastScaleTime"].clone(), json["observedGeneration"].clone()), (Value::Null, Value::Null));
    let autoscaler = scene.autoscaler.clone().set(&["status"], json);
    let again = Scene { autoscaler, ..scene };
    let read: Arc<HorizontalPodAutoscaler> = again.autoscaler.build();
    assert_eq!(next_status(&read, &succeeded(again.plan()), NOW), None);
    // Somebody's observed generation goes, as it does upstream.
    let observed = again.autoscaler.clone().set(&["status", "observedGeneration"], 1);
    let read: Arc<HorizontalPodAutoscaler> = observed.build();
    assert!(next_status(&read, &succeeded(again.plan()), NOW).is_some());
}

/// `TestBuildQuantity`.
#[test]
fn memory_is_told_in_binary_units() {
    let target = json!({ "type": "AverageValue", "averageValue": "100Mi" });
    let metric = json!({ "type": "Resource", "resource": { "name": "memory", "target": target } });
    let scene = Scene::new(autoscaler(1, 6, &json!([metric])), 2).cpu(&[150, 50]);
    let plan = scene.plan();
    assert_eq!(plan.to_string(), "keep 2 (2 by memory resource; ReadyForNewScale, DesiredWithinRange)");
    let status = status_after(&scene, &succeeded(plan));
    let current = serde_json::to_value(&status.current_metrics[0]).unwrap()["resource"]["current"].clone();
    assert_eq!(current, json!({ "averageValue": "100Mi" }));
}

#[test]
fn values_that_are_too_old_scale_nothing() {
    let old = |levels: &[i64], metric: &Value| {
        let config = Config { metrics_max_age: Duration::from_secs(300), ..config() };
        let scene = Scene::new(autoscaler(1, 10, &json!([metric])), 2);
        Scene { config, ..scene.usage(levels, Some(ago(301))) }
    };
    assert_eq!(
        old(&[900, 900], &cpu_metric(10)).plan().to_string(),
        "event FailedGetResourceMetric; event FailedComputeMetricsReplicas; leave 2 (cannot compute replicas: invalid \
         metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: failed to get cpu \
         utilization: unable to get metrics for resource cpu: the metrics are too old: 5m1s)"
    );
    let config = Config { metrics_max_age: Duration::from_secs(300), ..config() };
    let built = autoscaler(1, 10, &json!([external("1")]));
    let mut scene = Scene { config, ..Scene::new(built, 2).external(&[9000]) };
    scene.answers = vec![horizontal_pod_autoscaler_operator::observe::Answer::External(Ok(crate::fixtures::read(
        json!([{ "value": "9", "timestamp": ago(301).to_string() }]),
    )))];
    assert!(scene.plan().to_string().contains("the metrics are too old: 5m1s"), "{}", scene.plan());
}

#[test]
fn it_says_what_it_asks_before_it_decides() {
    let scene = Scene::new(autoscaler(1, 10, &json!([cpu_metric(10)])), 2);
    let observed = scene.observed();
    let known = Known { autoscaler: Arc::clone(&observed.autoscaler), history: History::default() };
    assert_eq!(plan_scale(&known).to_string(), "read the scale (the scale of Deployment web is not cached)");
    assert_eq!(
        plan_metrics(&observed, &config()).unwrap().to_string(),
        "read the metrics and the pods (2 is within bounds; 1 metric to evaluate)"
    );
    let beyond = Scene::new(autoscaler(1, 10, &json!([cpu_metric(10)])), 12);
    assert_eq!(plan_metrics(&beyond.observed(), &config()), None);
    assert_eq!(beyond.plan().to_string(), "scale 12 to 10 (12 is out of bounds; the limit is 10)");
}
