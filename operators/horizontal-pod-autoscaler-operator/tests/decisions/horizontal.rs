//! What a sync decides. Rows have the names of upstream's tests.
//!
//! Upstream: `pkg/controller/podautoscaler/horizontal_test.go`. There a row whose target is scaled ends with the
//! condition of that; here it is what the plan says before anything is written.

use horizontal_pod_autoscaler_operator::memory::{History, Recommendation};
use horizontal_pod_autoscaler_operator::objects::Pod;
use horizontal_pod_autoscaler_operator::plan::{Action, Rescale};
use serde_json::{Value, json};
use shared::testing::{NOW, ago, pod};
use std::sync::Arc;

use crate::fixtures::{Scene, autoscaler, before, cpu_metric, read_pod};

/// An autoscaler, its metrics and their values.
struct Case {
    bounds: (i32, i32),
    replicas: i32,
    has: i32,
    requests: &'static str,
    ready: &'static str,
    starts: &'static str,
    phases: &'static str,
    deleted: &'static str,
    metrics: Vec<(Value, &'static str)>,
    recommended: Option<Vec<Recommendation>>,
}

fn case(min: i32, max: i32, replicas: i32) -> Case {
    let (bounds, metrics) = ((min, max), Vec::new());
    let (requests, ready, starts, phases, deleted) = ("", "", "", "", "");
    Case { bounds, replicas, has: replicas, requests, ready, starts, phases, deleted, metrics, recommended: None }
}

impl Case {
    /// So many replicas in the scale's status.
    fn has(self, has: i32) -> Self {
        Self { has, ..self }
    }

    /// What each pod requests.
    fn pods(self, requests: &'static str) -> Self {
        Self { requests, ..self }
    }

    fn ready(self, ready: &'static str) -> Self {
        Self { ready, ..self }
    }

    fn starts(self, starts: &'static str) -> Self {
        Self { starts, ..self }
    }

    fn phases(self, phases: &'static str) -> Self {
        Self { phases, ..self }
    }

    fn deleted(self, deleted: &'static str) -> Self {
        Self { deleted, ..self }
    }

    fn metric(mut self, metric: Value, levels: &'static str) -> Self {
        self.metrics.push((metric, levels));
        self
    }

    fn cpu(self, target: i32, levels: &'static str) -> Self {
        self.metric(cpu_metric(target), levels)
    }

    fn container(self, target: i32, levels: &'static str) -> Self {
        let target = json!({ "type": "Utilization", "averageUtilization": target });
        let metric = json!({
            "type": "ContainerResource",
            "containerResource": { "name": "cpu", "container": "main", "target": target },
        });
        self.metric(metric, levels)
    }

    fn of_pods(self, target: &str, levels: &'static str) -> Self {
        let target = json!({ "type": "AverageValue", "averageValue": target });
        self.metric(json!({ "type": "Pods", "pods": { "metric": { "name": "qps" }, "target": target } }), levels)
    }

    fn of_object(self, type_: &str, target: &str, levels: &'static str) -> Self {
        let object = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "some-deployment" });
        let source = json!({ "describedObject": object, "metric": { "name": "qps" }, "target": of(type_, target) });
        self.metric(json!({ "type": "Object", "object": source }), levels)
    }

    fn external(self, type_: &str, target: &str, levels: &'static str) -> Self {
        let source = json!({ "metric": { "name": "qps", "selector": {} }, "target": of(type_, target) });
        self.metric(json!({ "type": "External", "external": source }), levels)
    }

    /// A metric of no type that there is.
    fn cheese(self) -> Self {
        self.metric(json!({ "type": "CheddarCheese" }), "")
    }

    /// Earlier recommendations, so many seconds ago.
    fn recommended(self, known: &[(i32, i64)]) -> Self {
        let of = |(replicas, seconds): &(i32, i64)| Recommendation { replicas: *replicas, at: before(*seconds) };
        Self { recommended: Some(known.iter().map(of).collect()), ..self }
    }

    fn pod(&self, at: usize, cpu: &str) -> Arc<Pod> {
        let letter = |letters: &str| letters.chars().nth(at);
        let phase = match letter(self.phases) {
            Some('P') => "Pending",
            Some('F') => "Failed",
            _ => "Running",
        };
        let status = if letter(self.ready) == Some('F') { "False" } else { "True" };
        let start = match letter(self.starts) {
            Some('h') => NOW.to_string(),
            Some('c') => ago(180).to_string(),
            _ => "0001-01-01T00:00:00Z".to_owned(),
        };
        let requests = if cpu.is_empty() { json!({}) } else { json!({ "cpu": cpu }) };
        let built = pod(&format!("web-{at}"))
            .label("app", "web")
            .phase(phase)
            .set(&["status", "startTime"], start)
            .set(&["status", "conditions"], json!([{ "type": "Ready", "status": status }]))
            .set(&["spec", "containers"], json!([{ "name": "main", "resources": { "requests": requests } }]));
        read_pod(&if letter(self.deleted) == Some('T') { built.terminating() } else { built })
    }

    fn scene(&self) -> Scene {
        let metrics: Vec<Value> = self.metrics.iter().map(|(metric, _)| metric.clone()).collect();
        let built = autoscaler(self.bounds.0, self.bounds.1, &json!(metrics));
        let mut scene = Scene::new(built, self.replicas);
        scene.has = self.has;
        scene.pods = if self.requests.is_empty() {
            vec![self.pod(0, "")]
        } else {
            self.requests.split_whitespace().enumerate().map(|(at, cpu)| self.pod(at, cpu)).collect()
        };
        scene.history = History { recommendations: self.recommended.clone(), ..History::default() };
        for (metric, levels) in &self.metrics {
            let levels: Vec<i64> = levels.split_whitespace().filter_map(|level| level.parse().ok()).collect();
            scene = match metric["type"].as_str() {
                Some("Resource" | "ContainerResource") => scene.usage(&levels, None),
                Some("Pods" | "Object") => scene.objects(&levels),
                Some("External") => scene.external(&levels),
                _ => scene.nobody(),
            };
        }
        scene
    }
}

fn of(type_: &str, target: &str) -> Value {
    if type_ == "Value" {
        json!({ "type": type_, "value": target })
    } else {
        json!({ "type": type_, "averageValue": target })
    }
}

/// What is done, and the words of the conditions.
#[track_caller]
fn row(name: &str, case: &Case, expected: &str) {
    let plan = case.scene().plan();
    let action = match &plan.action {
        Action::None => "do nothing".to_owned(),
        Action::Leave { current, .. } => format!("leave {current}"),
        Action::Keep { current, .. } => format!("keep {current}"),
        Action::Scale(Rescale { from, to, .. }) => format!("scale {from} to {to}"),
    };
    let words = crate::fixtures::words(&plan);
    assert_eq!(format!("{action}: {words}"), expected, "{name}: {plan}");
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn syncs_decide_as_in_upstreams_tests() {
    row(
        "TestScaleUp",
        &case(2, 6, 3).pods("1.0 1.0 1.0").cpu(30, "300 500 700"),
        "scale 3 to 5: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleUpContainer",
        &case(2, 6, 3).pods("1.0 1.0 1.0").container(30, "300 500 700"),
        "scale 3 to 5: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleUpUnreadyLessScale",
        &case(2, 6, 3).pods("1.0 1.0 1.0").ready("FTT").cpu(30, "300 500 700"),
        "scale 3 to 4: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleUpHotCpuLessScale",
        &case(2, 6, 3).pods("1.0 1.0 1.0").starts("hcc").cpu(30, "300 500 700"),
        "scale 3 to 4: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleUpUnreadyNoScale",
        &case(2, 6, 3).pods("1.0 1.0 1.0").ready("TFF").cpu(30, "400 500 700"),
        "keep 3: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleUpHotCpuNoScale",
        &case(2, 6, 3).pods("1.0 1.0 1.0").ready("TFF").starts("chh").cpu(30, "400 500 700"),
        "keep 3: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleUpIgnoresFailedPods",
        &case(2, 6, 2).pods("1.0 1.0 1.0 1.0").ready("TTFF").phases("RRFF").cpu(30, "500 700"),
        "scale 2 to 4: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleUpIgnoresDeletionPods",
        &case(2, 6, 2).pods("1.0 1.0 1.0 1.0").ready("TTFF").phases("RRRR").deleted("FFTT").cpu(30, "500 700"),
        "scale 2 to 4: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleUpDeployment",
        &case(2, 6, 3).pods("1.0 1.0 1.0").cpu(30, "300 500 700"),
        "scale 3 to 5: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleUpReplicaSet",
        &case(2, 6, 3).pods("1.0 1.0 1.0").cpu(30, "300 500 700"),
        "scale 3 to 5: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleUpCM",
        &case(2, 6, 3).pods("1.0 1.0 1.0").of_pods("15.0", "20000 10000 30000"),
        "scale 3 to 4: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleUpCMUnreadyAndHotCpuNoLessScale",
        &case(2, 6, 3).pods("1.0 1.0 1.0").ready("TTF").starts("cch").of_pods("15.0", "50000 10000 30000"),
        "scale 3 to 6: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleUpCMUnreadyandCpuHot",
        &case(2, 6, 3).pods("1.0 1.0 1.0").ready("FTF").starts("hch").of_pods("15.0", "50000 15000 30000"),
        "scale 3 to 6: ReadyForNewScale ValidMetricFound TooManyReplicas",
    );
    row(
        "TestScaleUpHotCpuNoScaleWouldScaleDown",
        &case(2, 6, 3).pods("1.0 1.0 1.0").starts("hch").of_pods("15.0", "50000 15000 30000"),
        "scale 3 to 6: ReadyForNewScale ValidMetricFound TooManyReplicas",
    );
    row(
        "TestScaleUpCMObject",
        &case(2, 6, 3).pods("1.0 1.0 1.0").of_object("Value", "15.0", "20000"),
        "scale 3 to 4: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleUpPerPodCMObject",
        &case(2, 6, 3).pods("1.0 1.0 1.0").of_object("AverageValue", "10.0", "40000"),
        "scale 3 to 4: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleUpCMExternal",
        &case(2, 6, 3).pods("1.0 1.0 1.0").external("Value", "6666m", "8600"),
        "scale 3 to 4: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleUpPerPodCMExternal",
        &case(2, 6, 3).pods("1.0 1.0 1.0").external("AverageValue", "2222m", "8600"),
        "scale 3 to 4: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleDown",
        &case(2, 6, 5).pods("1.0 1.0 1.0 1.0 1.0").cpu(50, "100 300 500 250 250").recommended(&[]),
        "scale 5 to 3: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleDownContainerResource",
        &case(2, 6, 5).pods("1.0 1.0 1.0 1.0 1.0").container(50, "100 300 500 250 250").recommended(&[]),
        "scale 5 to 3: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleUpOneMetricInvalid",
        &case(2, 6, 3).pods("1.0 1.0 1.0").cpu(30, "300 400 500").cheese(),
        "scale 3 to 4: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleUpBothMetricsEmpty",
        &case(2, 6, 3).pods("1.0 1.0 1.0").cheese(),
        "leave 3: SucceededGetScale InvalidMetricSourceType",
    );
    row(
        "TestScaleDownStabilizeInitialSize",
        &case(2, 6, 5).pods("1.0 1.0 1.0 1.0 1.0").cpu(50, "100 300 500 250 250"),
        "keep 5: ScaleDownStabilized ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleDownCM",
        &case(2, 6, 5).pods("1.0 1.0 1.0 1.0 1.0").of_pods("20.0", "12000 12000 12000 12000 12000").recommended(&[]),
        "scale 5 to 3: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleDownCMObject",
        &case(2, 6, 5).pods("1.0 1.0 1.0 1.0 1.0").of_object("Value", "20.0", "12000").recommended(&[]),
        "scale 5 to 3: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleDownPerPodCMObject",
        &case(2, 6, 5).pods("1.0 1.0 1.0 1.0 1.0").of_object("AverageValue", "20.0", "60000").recommended(&[]),
        "scale 5 to 3: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleDownCMExternal",
        &case(2, 6, 5).pods("1.0 1.0 1.0 1.0 1.0").external("Value", "14400m", "8600").recommended(&[]),
        "scale 5 to 3: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleDownPerPodCMExternal",
        &case(2, 6, 5).pods("1.0 1.0 1.0 1.0 1.0").external("AverageValue", "3000m", "8600").recommended(&[]),
        "scale 5 to 3: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleDownIncludeUnreadyPods",
        &case(2, 6, 5).pods("1.0 1.0 1.0 1.0 1.0").ready("TTTFF").cpu(50, "100 300 500 250 250").recommended(&[]),
        "scale 5 to 2: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleDownIgnoreHotCpuPods",
        &case(2, 6, 5).pods("1.0 1.0 1.0 1.0 1.0").starts("ccchh").cpu(50, "100 300 500 250 250").recommended(&[]),
        "scale 5 to 2: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleDownIgnoresFailedPods",
        &case(2, 6, 5)
            .pods("1.0 1.0 1.0 1.0 1.0 1.0 1.0")
            .ready("TTTTTFF")
            .phases("RRRRRFF")
            .cpu(50, "100 300 500 250 250")
            .recommended(&[]),
        "scale 5 to 3: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestScaleDownIgnoresDeletionPods",
        &case(2, 6, 5)
            .pods("1.0 1.0 1.0 1.0 1.0 1.0 1.0")
            .ready("TTTTTFF")
            .phases("RRRRRRR")
            .deleted("FFFFFTT")
            .cpu(50, "100 300 500 250 250")
            .recommended(&[]),
        "scale 5 to 3: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestTolerance",
        &case(1, 5, 3).pods("0.9 1.0 1.1").cpu(100, "1010 1030 1020"),
        "keep 3: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestToleranceCM",
        &case(1, 5, 3).pods("0.9 1.0 1.1").of_pods("20.0", "20000 20001 21000"),
        "keep 3: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestToleranceCMObject",
        &case(1, 5, 3).pods("0.9 1.0 1.1").of_object("Value", "20.0", "20050"),
        "keep 3: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestToleranceCMExternal",
        &case(2, 6, 4).pods("1.0 1.0 1.0 1.0").external("Value", "8666m", "8600"),
        "keep 4: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestTolerancePerPodCMObject",
        &case(2, 6, 4).pods("1.0 1.0 1.0 1.0").of_object("AverageValue", "2200m", "8600"),
        "keep 4: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestTolerancePerPodCMExternal",
        &case(2, 6, 4).pods("1.0 1.0 1.0 1.0").external("AverageValue", "2200m", "8600"),
        "keep 4: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestMinReplicas",
        &case(2, 5, 3).pods("0.9 1.0 1.1").cpu(90, "10 95 10").recommended(&[]),
        "scale 3 to 2: ReadyForNewScale ValidMetricFound TooFewReplicas",
    );
    row(
        "TestZeroMinReplicasDesiredZero",
        &case(0, 5, 3).pods("0.9 1.0 1.1").cpu(90, "0 0 0").recommended(&[]),
        "scale 3 to 0: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestMinReplicasDesiredZero",
        &case(2, 5, 3).pods("0.9 1.0 1.1").cpu(90, "0 0 0").recommended(&[]),
        "scale 3 to 2: ReadyForNewScale ValidMetricFound TooFewReplicas",
    );
    row("TestZeroReplicas", &case(3, 5, 0).pods("").cpu(90, ""), "keep 0: SucceededGetScale ScalingDisabled");
    row("TestTooFewReplicas", &case(3, 5, 2).pods("1.0 1.0").cpu(90, ""), "scale 2 to 3: SucceededGetScale");
    row(
        "TestTooManyReplicas",
        &case(3, 5, 10).pods("1.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0").cpu(90, ""),
        "scale 10 to 5: SucceededGetScale",
    );
    row(
        "TestMaxReplicas",
        &case(2, 5, 3).pods("0.9 1.0 1.1").cpu(90, "8000 9500 1000"),
        "scale 3 to 5: ReadyForNewScale ValidMetricFound TooManyReplicas",
    );
    row(
        "TestSuperfluousMetrics",
        &case(2, 6, 4).pods("1.0 1.0 1.0 1.0").cpu(100, "4000 9500 3000 7000 3200 2000"),
        "scale 4 to 6: ReadyForNewScale ValidMetricFound TooManyReplicas",
    );
    row(
        "TestMissingMetrics",
        &case(2, 6, 4).pods("1.0 1.0 1.0 1.0").cpu(100, "400 95").recommended(&[]),
        "scale 4 to 3: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestEmptyMetrics",
        &case(2, 6, 4).pods("1.0 1.0 1.0 1.0").cpu(100, ""),
        "leave 4: SucceededGetScale FailedGetResourceMetric",
    );
    row(
        "TestEmptyCPURequest",
        &case(1, 5, 1).pods("").cpu(100, "200"),
        "leave 1: SucceededGetScale FailedGetResourceMetric",
    );
    row(
        "TestEventCreated",
        &case(1, 5, 1).pods("0.2").cpu(50, "200"),
        "scale 1 to 2: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestEventNotCreated",
        &case(1, 5, 2).pods("0.4 0.4").cpu(50, "200 200"),
        "keep 2: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestMissingReports",
        &case(1, 5, 4).pods("0.2").cpu(50, "200").recommended(&[]),
        "scale 4 to 2: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestMoreReplicasThanSpecNoScale",
        &case(1, 8, 4).has(5).pods("1 1 1 1 1").cpu(50, "500 500 500 500 500"),
        "keep 4: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestConditionInvalidSourceType",
        &case(2, 6, 3).pods("1.0 1.0 1.0").cheese(),
        "leave 3: SucceededGetScale InvalidMetricSourceType",
    );
    row(
        "TestNoBackoffUpscaleCM",
        &case(1, 5, 3).pods("1.0 1.0 1.0").of_pods("15.0", "20000 10000 30000"),
        "scale 3 to 4: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestNoBackoffUpscaleCMNoBackoffCpu",
        &case(1, 5, 3).pods("1.0 1.0 1.0").cpu(10, "20000 10000 30000").of_pods("15.0", "20000 10000 30000"),
        "scale 3 to 5: ReadyForNewScale ValidMetricFound TooManyReplicas",
    );
    row(
        "TestStabilizeDownscale",
        &case(1, 5, 4).pods("0.1 0.1 0.1").cpu(100, "50 50 50").recommended(&[(10, 600), (4, 60)]),
        "keep 4: ScaleDownStabilized ValidMetricFound DesiredWithinRange",
    );
    row("TestScaleUpRCImmediately", &case(2, 6, 1).pods("1.0 1.0 1.0 1.0"), "scale 1 to 2: SucceededGetScale");
    row(
        "TestScaleDownRCImmediately",
        &case(2, 5, 6).pods("0.9 1.0 1.1").cpu(50, "8000 9500 1000"),
        "scale 6 to 5: SucceededGetScale",
    );
    row(
        "TestScaleUpOneMetricEmpty",
        &case(2, 6, 3).pods("1.0 1.0 1.0").cpu(30, "300 400 500").external("Value", "100m", ""),
        "scale 3 to 4: ReadyForNewScale ValidMetricFound DesiredWithinRange",
    );
    row(
        "TestNoScaleDownOneMetricInvalid",
        &case(2, 6, 5).pods("1.0 1.0 1.0 1.0 1.0").cpu(50, "100 300 500 250 250").cheese().recommended(&[]),
        "leave 5: SucceededGetScale InvalidMetricSourceType",
    );
    row(
        "TestNoScaleDownOneMetricEmpty",
        &case(2, 6, 5)
            .pods("1.0 1.0 1.0 1.0 1.0")
            .cpu(50, "100 300 500 250 250")
            .external("Value", "1000m", "")
            .recommended(&[]),
        "leave 5: SucceededGetScale FailedGetExternalMetric",
    );
}

/// The tolerance of a tenth is about the ratio, whatever the pods request.
#[test]
fn the_tolerance_is_about_the_ratio() {
    let requests = "400m 200m 310m 290m 302m 298m 301m 299m 300m 300m";
    let levels = "150 150 150 150 150 150 150 150 150 150";
    let scaled = |target| case(0, 1000, 10).pods(requests).cpu(target, levels).recommended(&[]);
    let name = "TestComputedToleranceAlgImplementation";
    row(name, &scaled(56), "scale 10 to 9: ReadyForNewScale ValidMetricFound DesiredWithinRange");
    row(name, &scaled(55), "keep 10: ReadyForNewScale ValidMetricFound DesiredWithinRange");
}
