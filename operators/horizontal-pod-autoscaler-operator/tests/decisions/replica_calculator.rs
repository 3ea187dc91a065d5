//! How many replicas a metric asks for. Rows have the names of upstream's tests; that of `TestReplicaCalcEmptyMetrics` is
//! among the faults in `scaling`.
//!
//! Upstream: `pkg/controller/podautoscaler/replica_calculator_test.go`.

#![expect(clippy::unwrap_used, reason = "a fixture that is not read is a broken test")]

use std::sync::Arc;
use std::time::Duration;

use horizontal_pod_autoscaler_operator::objects::Pod;
use horizontal_pod_autoscaler_operator::objects::values::{ObjectValue, PodUsage};
use horizontal_pod_autoscaler_operator::plan::Config;
use horizontal_pod_autoscaler_operator::plan::replica_calculator::{ReplicaCalculator, Replicas, Tolerances};
use horizontal_pod_autoscaler_operator::plan::samples::{Freshness, of_pods, of_usage};
use serde_json::{Value, json};
use shared::testing::{NOW, ago, pod};

use crate::fixtures::{config, read_pod};

/// A metric, its values, and the pods.
struct Case {
    current: i32,
    asked: Asked,
    container: &'static str,
    names: &'static str,
    tolerances: Tolerances,
    ready: &'static str,
    starts: &'static str,
    phases: &'static str,
    deleted: &'static str,
    config: Config,
}

/// What is asked for.
enum Asked {
    /// A percentage of requests; of each pod what both containers request, and what each takes.
    Cpu { target: i32, requests: &'static str, levels: &'static str },
    /// The average of the pods' values.
    Plain { target: i64, levels: Vec<i64> },
    /// One value.
    Value { target: i64, usage: i64 },
    /// One value, for each pod.
    PerPod { target: i64, usage: i64 },
}

fn case(current: i32, asked: Asked) -> Case {
    Case {
        current,
        asked,
        container: "",
        names: "",
        tolerances: Tolerances { scale_down: 0.1, scale_up: 0.1 },
        ready: "",
        starts: "",
        phases: "",
        deleted: "",
        config: config(),
    }
}

fn cpu(current: i32, target: i32, requests: &'static str, levels: &'static str) -> Case {
    case(current, Asked::Cpu { target, requests, levels })
}

fn plain(current: i32, target: i64, levels: &[i64]) -> Case {
    case(current, Asked::Plain { target, levels: levels.to_vec() })
}

fn sum(levels: &[i64]) -> i64 {
    levels.iter().fold(0, |sum, level| sum.saturating_add(*level))
}

fn value(current: i32, target: i64, levels: &[i64]) -> Case {
    case(current, Asked::Value { target, usage: sum(levels) })
}

fn per_pod(current: i32, target: i64, levels: &[i64]) -> Case {
    case(current, Asked::PerPod { target, usage: sum(levels) })
}

impl Case {
    fn container(self, container: &'static str) -> Self {
        Self { container, ..self }
    }

    /// The pods that the values are of; otherwise the first ones.
    fn called(self, names: &'static str) -> Self {
        Self { names, ..self }
    }

    fn tolerances(self, scale_down: f64, scale_up: f64) -> Self {
        Self { tolerances: Tolerances { scale_down, scale_up }, ..self }
    }

    /// `T` or `F` for each pod.
    fn ready(self, ready: &'static str) -> Self {
        Self { ready, ..self }
    }

    /// `h` for one that has just begun, `c` for one that began three minutes ago.
    fn starts(self, starts: &'static str) -> Self {
        Self { starts, ..self }
    }

    /// The first letter of each pod's phase.
    fn phases(self, phases: &'static str) -> Self {
        Self { phases, ..self }
    }

    /// `T` for one that is being deleted.
    fn deleted(self, deleted: &'static str) -> Self {
        Self { deleted, ..self }
    }

    fn ignoring_surge(self) -> Self {
        Self { config: Config { ignores_surge: true, ..self.config }, ..self }
    }

    fn pods(&self) -> Vec<Arc<Pod>> {
        let count = usize::try_from(self.current).unwrap().max(self.phases.len());
        (0..count).map(|at| self.pod(at)).collect()
    }

    fn pod(&self, at: usize) -> Arc<Pod> {
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
        let requests = match &self.asked {
            Asked::Cpu { requests, .. } => requests.split_whitespace().nth(at),
            Asked::Plain { .. } | Asked::Value { .. } | Asked::PerPod { .. } => None,
        };
        let resources = requests.map_or_else(|| json!({}), |cpu| json!({ "requests": { "cpu": cpu } }));
        let built = pod(&format!("test-pod-{at}"))
            .phase(phase)
            .set(&["status", "startTime"], start)
            .set(&["status", "conditions"], json!([{ "type": "Ready", "status": status }]))
            .set(
                &["spec", "containers"],
                json!([
                    { "name": "container1", "resources": resources }, { "name": "container2", "resources": resources },
                ]),
            );
        read_pod(&if letter(self.deleted) == Some('T') { built.terminating() } else { built })
    }

    fn named(&self, at: usize) -> String {
        self.names.split_whitespace().nth(at).map_or_else(|| format!("test-pod-{at}"), str::to_owned)
    }

    fn usage(&self, levels: &str) -> Vec<PodUsage> {
        let containers = |pod: &str| -> Vec<Value> {
            let each = pod.split('/').enumerate();
            let of = |(at, level): (usize, &str)| json!({ "name": format!("container{}", at + 1), "usage": { "cpu": format!("{level}m") } });
            // A container that is not named has no usage, as upstream's rows leave it.
            let mut all: Vec<Value> = each.map(of).collect();
            all.resize(2, json!({ "name": "", "usage": {} }));
            all
        };
        let each = levels.split_whitespace().enumerate();
        let of = |(at, pod): (usize, &str)| {
            let usage =
                json!({ "metadata": { "name": self.named(at) }, "window": "1m0s", "containers": containers(pod) });
            serde_json::from_value(usage).unwrap()
        };
        each.map(of).collect()
    }

    fn values(&self, levels: &[i64]) -> Vec<ObjectValue> {
        let of = |(at, level): (usize, &i64)| {
            let value = json!({ "describedObject": { "name": self.named(at) }, "value": format!("{level}m") });
            serde_json::from_value(value).unwrap()
        };
        levels.iter().enumerate().map(of).collect()
    }

    fn answer(&self) -> Result<Replicas, String> {
        let pods = self.pods();
        let calculator = ReplicaCalculator {
            pods: Ok(&pods),
            spec_replicas: self.current,
            status_replicas: self.current,
            tolerances: self.tolerances,
            config: &self.config,
            now: NOW,
        };
        let fresh = Freshness { max_age: Duration::ZERO, now: NOW };
        match &self.asked {
            Asked::Cpu { target, levels, .. } => {
                let samples = of_usage(&self.usage(levels), "cpu", self.container, fresh).unwrap_or_default();
                calculator.resource_replicas(*target, ("cpu", self.container), samples)
            }
            Asked::Plain { target, levels } => {
                calculator.plain_metric_replicas(*target, "", of_pods(&self.values(levels), fresh).unwrap_or_default())
            }
            Asked::Value { target, usage } => calculator.value_replicas(*target, *usage),
            Asked::PerPod { target, usage } => Ok(calculator.per_pod_replicas(*target, *usage)),
        }
    }
}

/// `5 by 50%, 1000m`, or a part of the error.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "a case is for one row")]
fn row(name: &str, case: Case, expected: &str) {
    match case.answer() {
        Ok(Replicas { replicas, utilization, usage }) => {
            let percentage = utilization.map(|percentage| format!("{percentage}%, ")).unwrap_or_default();
            assert_eq!(format!("{replicas} by {percentage}{usage}m"), expected, "{name}");
        }
        Err(error) => assert!(error.contains(expected), "{name}: {error}"),
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn metrics_ask_for_as_many_replicas_as_in_upstreams_tests() {
    row(
        "TestReplicaCalcDisjointResourcesMetrics",
        cpu(1, 100, "1.0", "100/100").called("an-older-pod-name"),
        "no metrics returned matched known pods",
    );
    row("TestReplicaCalcScaleUp", cpu(3, 30, "1.0 1.0 1.0", "300/300 500/500 700/700"), "5 by 50%, 1000m");
    row(
        "TestReplicaCalcContainerScaleUp",
        cpu(3, 30, "1.0 1.0 1.0", "1000/300 1000/500 1000/700").container("container2"),
        "5 by 50%, 500m",
    );
    row(
        "TestReplicaCalcScaleUpUnreadyLessScale",
        cpu(3, 30, "1.0 1.0 1.0", "300/300 500/500 700/700").ready("FTT"),
        "4 by 60%, 1200m",
    );
    row("TestReplicaCalcScaleUpOverflow", value(3, 1, &[i64::MAX]), "2147483647 by 9223372036854775807m");
    row(
        "TestReplicaCalcScaleUpContainerHotCpuLessScale",
        cpu(3, 30, "1.0 1.0 1.0", "0/300 0/500 0/700").container("container2").starts("hcc"),
        "4 by 60%, 600m",
    );
    row(
        "TestReplicaCalcScaleUpHotCpuLessScale",
        cpu(3, 30, "1.0 1.0 1.0", "300/300 500/500 700/700").starts("hcc"),
        "4 by 60%, 1200m",
    );
    row(
        "TestReplicaCalcScaleUpUnreadyNoScale",
        cpu(3, 30, "1.0 1.0 1.0", "400/400 500/500 700/700").ready("TFF"),
        "3 by 40%, 800m",
    );
    row("TestExternalPerPodMetricReplicaOverflow", per_pod(1, 1, &[i64::MAX]), "2147483647 by 9223372036854775807m");
    row("TestExternalPerPodMetricUsageOverflow", per_pod(1, i64::MAX, &[i64::MAX]), "1 by 9223372036854775807m");
    row(
        "TestReplicaCalcScaleHotCpuNoScale",
        cpu(3, 30, "1.0 1.0 1.0", "400/400 500/500 700/700").ready("TFF").starts("chh"),
        "3 by 40%, 800m",
    );
    row(
        "TestReplicaCalcScaleUpIgnoresFailedPods",
        cpu(2, 30, "1.0 1.0 1.0 1.0", "500/500 700/700").ready("TTFF").phases("RRFF"),
        "4 by 60%, 1200m",
    );
    row(
        "TestReplicaCalcMissingContainerMetricScaleUpIgnoresFailedPods",
        cpu(2, 30, "1.0 1.0 1.0 1.0", "1000/500 9000/700 1000 9000")
            .container("container2")
            .ready("TTFF")
            .phases("RRFF"),
        "4 by 60%, 600m",
    );
    row(
        "TestReplicaCalcScaleUpContainerIgnoresFailedPods",
        cpu(2, 30, "1.0 1.0 1.0 1.0", "1000/500 9000/700").container("container2").ready("TTFF").phases("RRFF"),
        "4 by 60%, 600m",
    );
    row(
        "TestReplicaCalcScaleUpIgnoresDeletionPods",
        cpu(2, 30, "1.0 1.0 1.0 1.0", "500/500 700/700").ready("TTFF").phases("RRRR").deleted("FFTT"),
        "4 by 60%, 1200m",
    );
    row(
        "TestReplicaCalcScaleUpContainerIgnoresDeletionPods",
        cpu(2, 30, "1.0 1.0 1.0 1.0", "500/500 700/700")
            .container("container1")
            .ready("TTFF")
            .phases("RRRR")
            .deleted("FFTT"),
        "4 by 60%, 600m",
    );
    row("TestReplicaCalcScaleUpCM", plain(3, 15000, &[20000, 10000, 30000]), "4 by 20000m");
    row(
        "TestReplicaCalcScaleUpCMUnreadyHotCpuNoLessScale",
        plain(3, 15000, &[50000, 10000, 30000]).ready("TTF").starts("cch"),
        "6 by 30000m",
    );
    row(
        "TestReplicaCalcScaleUpCMUnreadyHotCpuScaleWouldScaleDown",
        plain(3, 15000, &[50000, 15000, 30000]).ready("FTF").starts("hch"),
        "7 by 31666m",
    );
    row("TestReplicaCalcScaleUpCMObject", value(3, 15000, &[20000]), "4 by 20000m");
    row("TestReplicaCalcScaleUpCMPerPodObject", per_pod(3, 5000, &[20000]), "4 by 6667m");
    row("TestReplicaCalcScaleUpCMObjectIgnoresUnreadyPods", value(3, 10000, &[50000]).ready("FTF"), "5 by 50000m");
    row("TestReplicaCalcScaleUpCMExternal", plain(1, 4400, &[8600]), "2 by 8600m");
    row("TestReplicaCalcScaleUpCMExternalIgnoresUnreadyPods", value(3, 4400, &[8600]).ready("FTF"), "2 by 8600m");
    row("TestReplicaCalcScaleUpCMExternalNoLabels", plain(1, 4400, &[8600]), "2 by 8600m");
    row("TestReplicaCalcScaleUpPerPodCMExternal", per_pod(3, 2150, &[8600]), "4 by 2867m");
    row(
        "TestReplicaCalcScaleDown",
        cpu(5, 50, "1.0 1.0 1.0 1.0 1.0", "100/100 300/300 500/500 250/250 250/250"),
        "3 by 28%, 560m",
    );
    row(
        "TestReplicaCalcContainerScaleDown",
        cpu(5, 50, "1.0 1.0 1.0 1.0 1.0", "1000/100 1000/300 1000/500 1000/250 1000/250").container("container2"),
        "3 by 28%, 280m",
    );
    row("TestReplicaCalcScaleDownCM", plain(5, 20000, &[12000, 12000, 12000, 12000, 12000]), "3 by 12000m");
    row("TestReplicaCalcScaleDownPerPodCMObject", per_pod(5, 2000, &[6000]), "3 by 1200m");
    row("TestReplicaCalcScaleDownCMObject", value(5, 20000, &[12000]), "3 by 12000m");
    row("TestReplicaCalcScaleDownCMExternal", value(5, 14334, &[8600]), "3 by 8600m");
    row("TestReplicaCalcScaleDownPerPodCMExternal", per_pod(5, 2867, &[8600]), "3 by 1720m");
    row(
        "TestReplicaCalcScaleDownExcludeUnreadyPods",
        cpu(5, 50, "1.0 1.0 1.0 1.0 1.0", "100/100 300/300 500/500 250/250 250/250").ready("TTTFF"),
        "2 by 30%, 600m",
    );
    row(
        "TestReplicaCalcScaleDownContainerExcludeUnreadyPods",
        cpu(5, 50, "1.0 1.0 1.0 1.0 1.0", "1000/100 1000/300 1000/500 1000/250 1000/250")
            .container("container2")
            .ready("TTTFF"),
        "2 by 30%, 300m",
    );
    row(
        "TestReplicaCalcScaleDownExcludeUnscheduledPods",
        cpu(5, 50, "1.0 1.0 1.0 1.0 1.0", "100/100").ready("TFFFF").phases("RPPPP"),
        "1 by 10%, 200m",
    );
    row(
        "TestReplicaCalcScaleDownContainerExcludeUnscheduledPods",
        cpu(5, 50, "1.0 1.0 1.0 1.0 1.0", "1000/100 1000/300 1000/500 1000/250 1000/250")
            .container("container2")
            .ready("TFFFF")
            .phases("RPPPP"),
        "1 by 10%, 100m",
    );
    row(
        "TestReplicaCalcScaleDownIgnoreHotCpuPods",
        cpu(5, 50, "1.0 1.0 1.0 1.0 1.0", "100/100 300/300 500/500 250/250 250/250").starts("ccchh"),
        "2 by 30%, 600m",
    );
    row(
        "TestReplicaCalcScaleDownContainerIgnoreHotCpuPods",
        cpu(5, 50, "1.0 1.0 1.0 1.0 1.0", "1000/100 1000/300 1000/500 1000/1000 1000/1000")
            .container("container2")
            .starts("ccchh"),
        "2 by 30%, 300m",
    );
    row(
        "TestReplicaCalcScaleDownIgnoresFailedPods",
        cpu(5, 50, "1.0 1.0 1.0 1.0 1.0 1.0 1.0", "100/100 300/300 500/500 250/250 250/250")
            .ready("TTTTTFF")
            .phases("RRRRRFF"),
        "3 by 28%, 560m",
    );
    row(
        "TestReplicaCalcScaleDownContainerIgnoresFailedPods",
        cpu(5, 50, "1.0 1.0 1.0 1.0 1.0 1.0 1.0", "1000/100 1000/300 1000/500 1000/250 1000/250")
            .container("container2")
            .ready("TTTTTFF")
            .phases("RRRRRFF"),
        "3 by 28%, 280m",
    );
    row(
        "TestReplicaCalcScaleDownIgnoresDeletionPods",
        cpu(5, 50, "1.0 1.0 1.0 1.0 1.0 1.0 1.0", "100/100 300/300 500/500 250/250 250/250")
            .ready("TTTTTFF")
            .phases("RRRRRRR")
            .deleted("FFFFFTT"),
        "3 by 28%, 560m",
    );
    row(
        "TestReplicaCalcScaleDownIgnoresDeletionPods_StillRunning",
        cpu(5, 50, "1.0 1.0 1.0 1.0 1.0 1.0 1.0", "1000/100 1000/300 1000/500 1000/250 1000/250")
            .container("container2")
            .ready("TTTTTFF")
            .phases("RRRRRRR")
            .deleted("FFFFFTT"),
        "3 by 28%, 280m",
    );
    row("TestReplicaCalcTolerance", cpu(3, 100, "0.9 1.0 1.1", "1010/1010 1030/1030 1020/1020"), "3 by 102%, 2040m");
    row("TestReplicaCalcToleranceCM", plain(3, 20000, &[20000, 21000, 21000]), "3 by 20666m");
    row("TestReplicaCalcToleranceCMObject", value(3, 20000, &[20666]), "3 by 20666m");
    row("TestReplicaCalcTolerancePerPodCMObject", per_pod(4, 5000, &[20166]), "4 by 5042m");
    row("TestReplicaCalcToleranceCMExternal", value(3, 8888, &[8600]), "3 by 8600m");
    row("TestReplicaCalcTolerancePerPodCMExternal", per_pod(3, 2900, &[8600]), "3 by 2867m");
    row(
        "TestReplicaCalcConfigurableTolerance: Outside of a 0% tolerance",
        cpu(3, 100, "0.9 1.0 1.1", "909/909 1010/1010 1111/1111").tolerances(0.0, 0.0),
        "4 by 101%, 2020m",
    );
    row(
        "TestReplicaCalcConfigurableTolerance: Within a 200% scale-up tolerance",
        cpu(3, 100, "0.9 1.0 1.1", "1890/1890 1910/1910 1900/1900").tolerances(0.1, 2.0),
        "3 by 190%, 3800m",
    );
    row(
        "TestReplicaCalcConfigurableTolerance: Outside 8% scale-up tolerance (and superfuous scale-down tolerance)",
        cpu(3, 100, "0.9 1.0 1.1", "1100/1100 1080/1080 1090/1090").tolerances(2.0, 0.08),
        "4 by 109%, 2180m",
    );
    row(
        "TestReplicaCalcConfigurableTolerance: Within a 36% scale-down tolerance",
        cpu(3, 100, "0.9 1.0 1.1", "660/660 640/640 650/650").tolerances(0.36, 0.1),
        "3 by 65%, 1300m",
    );
    row(
        "TestReplicaCalcConfigurableTolerance: Outside a 34% scale-down tolerance",
        cpu(3, 100, "0.9 1.0 1.1", "660/660 640/640 650/650").tolerances(0.34, 0.1),
        "2 by 65%, 1300m",
    );
    row(
        "TestReplicaCalcConfigurableToleranceCM",
        plain(3, 20000, &[20000, 21000, 21000]).tolerances(0.1, 0.01),
        "4 by 20666m",
    );
    row("TestReplicaCalcConfigurableToleranceCMObject", value(3, 20000, &[20666]).tolerances(0.1, 0.01), "4 by 20666m");
    row(
        "TestReplicaCalcConfigurableTolerancePerPodCMObject",
        per_pod(4, 5000, &[20208]).tolerances(0.1, 0.01),
        "5 by 5052m",
    );
    row("TestReplicaCalcConfigurableToleranceCMExternal", value(3, 8800, &[8900]).tolerances(0.1, 0.01), "4 by 8900m");
    row(
        "TestReplicaCalcConfigurableTolerancePerPodCMExternal",
        per_pod(3, 2800, &[8600]).tolerances(0.1, 0.01),
        "4 by 2867m",
    );
    row(
        "TestReplicaCalcSuperfluousMetrics",
        cpu(4, 100, "1.0 1.0 1.0 1.0", "4000/4000 9500/9500 3000/3000 7000/7000 3200/3200 2000/2000"),
        "24 by 587%, 11750m",
    );
    row("TestReplicaCalcMissingMetrics", cpu(4, 100, "1.0 1.0 1.0 1.0", "400/400 95/95"), "3 by 24%, 495m");
    row("TestReplicaCalcEmptyCPURequest", cpu(1, 100, "", "200/200"), "missing request for");
    row("TestPlainMetricReplicaCalcMissingMetricsNoChangeEq", plain(5, 20000, &[20000, 19000, 21000]), "5 by 20000m");
    row("TestReplicaCalcMissingMetricsNoChangeEq", cpu(2, 100, "1.0 1.0", "1000/1000"), "2 by 100%, 2000m");
    row("TestReplicaCalcMissingMetricsNoChangeGt", cpu(2, 100, "1.0 1.0", "1900/1900"), "2 by 190%, 3800m");
    row("TestReplicaCalcMissingMetricsNoChangeLt", cpu(2, 100, "1.0 1.0", "600/600"), "2 by 60%, 1200m");
    row(
        "TestReplicaCalcMissingMetricsUnreadyChange",
        cpu(3, 50, "1.0 1.0 1.0", "100/100 450/450").ready("FTT"),
        "3 by 45%, 900m",
    );
    row(
        "TestReplicaCalcMissingMetricsHotCpuNoChange",
        cpu(3, 50, "1.0 1.0 1.0", "100/100 450/450").starts("hcc"),
        "3 by 45%, 900m",
    );
    row(
        "TestReplicaCalcMissingMetricsUnreadyScaleUp",
        cpu(3, 50, "1.0 1.0 1.0", "100/100 2000/2000").ready("FTT"),
        "4 by 200%, 4000m",
    );
    row(
        "TestReplicaCalcMissingMetricsHotCpuScaleUp",
        cpu(3, 50, "1.0 1.0 1.0", "100/100 2000/2000").ready("FTT").starts("hcc"),
        "4 by 200%, 4000m",
    );
    row(
        "TestReplicaCalcMissingMetricsUnreadyScaleDown",
        cpu(4, 50, "1.0 1.0 1.0 1.0", "100/100 100/100 100/100").ready("FTTT"),
        "3 by 10%, 200m",
    );
    row(
        "TestReplicaCalcMissingMetricsScaleDownTargetOver100",
        cpu(4, 300, "1.0 1.0 2.0 2.0", "200/200 100/100 100/100").ready("FTTT"),
        "2 by 6%, 200m",
    );
    row(
        "TestReplicaCalcDuringRollingUpdateWithMaxSurge",
        cpu(2, 50, "1.0 1.0 1.0", "100/100 100/100").phases("RRR"),
        "2 by 10%, 200m",
    );
    row(
        "TestReplicaCalcDuringRollingUpdateWithMaxSurgeCM",
        plain(2, 17000, &[10000, 10000]).phases("RRR"),
        "2 by 10000m",
    );
    row(
        "TestReplicaCalcExternalMetricUsageOverflow",
        value(3, i64::MAX, &[i64::MAX / 2 + 1, i64::MAX / 2 + 1]),
        "3 by 9223372036854775807m",
    );
}

/// The tolerance of a tenth is about the ratio, whatever the pods request.
#[test]
fn the_tolerance_is_about_the_ratio() {
    let requests = "400m 200m 310m 290m 302m 298m 301m 299m 300m 300m";
    let levels = "150/150 150/150 150/150 150/150 150/150 150/150 150/150 150/150 150/150 150/150";
    let name = "TestReplicaCalcComputedToleranceAlgImplementation";
    row(name, cpu(10, 56, requests, levels), "9 by 50%, 300m");
    row(name, cpu(10, 55, requests, levels), "10 by 50%, 300m");
}

#[test]
fn a_rollouts_surge_counts_unless_it_is_not_to() {
    // Three pods of two that are asked for take more than they should: for how many pods is that?
    let surge = || cpu(2, 50, "1.0 1.0 1.0", "700/700 700/700 700/700").phases("RRR");
    row("with it", surge(), "5 by 70%, 1400m");
    row("without it", surge().ignoring_surge(), "3 by 70%, 1400m");
    let plain_surge = || plain(2, 10_000, &[14_000, 14_000, 14_000]).phases("RRR");
    row("with it", plain_surge(), "5 by 14000m");
    row("without it", plain_surge().ignoring_surge(), "3 by 14000m");
    let one_value = || value(2, 10_000, &[14_000]).phases("RRR");
    row("with it", one_value(), "5 by 14000m");
    row("without it", one_value().ignoring_surge(), "3 by 14000m");
}

#[test]
fn values_that_are_too_old_count_for_nothing() {
    let usage = |seconds: i64| -> Vec<PodUsage> {
        let usage = json!([{
            "metadata": { "name": "a" }, "timestamp": ago(seconds).to_string(), "window": "30s",
            "containers": [{ "name": "c", "usage": { "cpu": "100m" } }],
        }]);
        serde_json::from_value(usage).unwrap()
    };
    let known = |seconds, max_age| {
        let fresh = Freshness { max_age: Duration::from_secs(max_age), now: NOW };
        of_usage(&usage(seconds), "cpu", "", fresh).map(|samples| samples.len())
    };
    assert_eq!([known(299, 300), known(301, 0)], [Ok(1), Ok(1)]);
    assert_eq!(known(301, 300), Err(Duration::from_secs(301)));
    // Never younger than the window over which it is measured.
    assert_eq!((known(29, 10), known(31, 10)), (Ok(1), Err(Duration::from_secs(31))));
}
