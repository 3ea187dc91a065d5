//! The replicas that a metric asks for, from its values, its target and the pods.
//!
//! Upstream: `pkg/controller/podautoscaler/replica_calculator.go`.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use shared::api::pod::Phase;

use super::Config;
use super::numbers::{cap, ceil, ceil_wide, count, real};
use super::pods::{Groups, group_pods};
use super::requests::calculate_requests;
use super::samples::{Sample, Samples};
use super::utilization::{Utilization, metric_usage_ratio, resource_utilization_ratio};
use crate::objects::Pod;

const NO_METRICS: &str = "did not receive metrics for targeted pods (pods might be unready)";
const NO_PODS: &str = "no pods returned by selector while calculating replica count";

/// The part by which a metric may miss its target without scaling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerances {
    pub scale_down: f64,
    pub scale_up: f64,
}

impl Tolerances {
    fn is_within(self, ratio: f64) -> bool {
        (1.0 - self.scale_down) <= ratio && ratio <= (1.0 + self.scale_up)
    }
}

impl fmt::Display for Tolerances {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[down:{:.1}%, up:{:.1}%]", self.scale_down * 100.0, self.scale_up * 100.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replicas {
    pub replicas: i32,
    /// In percent of the requests, if the target is.
    pub utilization: Option<i32>,
    /// The value in the form of the target, in thousandths.
    pub usage: i64,
}

/// The input that all metrics of an autoscaler share.
#[derive(Clone, Copy, Debug)]
pub struct ReplicaCalculator<'a> {
    /// The pods behind the scale's selector, or the error of their list.
    pub pods: Result<&'a [Arc<Pod>], &'a str>,
    pub spec_replicas: i32,
    pub status_replicas: i32,
    pub tolerances: Tolerances,
    pub config: &'a Config,
    pub now: Timestamp,
}

impl<'a> ReplicaCalculator<'a> {
    /// For a percentage of the pods' requests, or of one container's.
    ///
    /// Upstream: `GetResourceReplicas`.
    pub fn resource_replicas(
        &self,
        target: i32,
        (resource, container): (&str, &str),
        mut samples: Samples,
    ) -> Result<Replicas, String> {
        let pods = self.listed()?;
        let groups = self.grouped(pods, &mut samples, resource)?;
        let requests = calculate_requests(pods, container, resource)?;
        let Utilization { ratio, percentage, average } = resource_utilization_ratio(&samples, &requests, target)?;
        let answer = |replicas| Replicas { replicas, utilization: Some(percentage), usage: average };
        // A pod without a value counts with its whole request when scaling down, and with zero when scaling up.
        let fallback = i128::from(target.max(100));
        let missing = |pod: &str| {
            let request = requests.get(pod).copied().unwrap_or_default();
            cap(i128::from(request) * fallback / 100)
        };
        let replicas = match fill(&groups, ratio, &mut samples, missing) {
            Filled::AsIs => self.of_ready(&groups, ratio),
            Filled::Filled => {
                let again = resource_utilization_ratio(&samples, &requests, target)?;
                self.of_filled(ratio, again.ratio, samples.len())
            }
        };
        Ok(answer(replicas))
    }

    /// For an average of the pods' values; `resource` is `""` for values that are not of a resource.
    ///
    /// Upstream: `calcPlainMetricReplicas`.
    pub fn plain_metric_replicas(&self, target: i64, resource: &str, mut samples: Samples) -> Result<Replicas, String> {
        let groups = self.grouped(self.listed()?, &mut samples, resource)?;
        let (ratio, usage) = metric_usage_ratio(&samples, target);
        let replicas = match fill(&groups, ratio, &mut samples, |_| target) {
            Filled::AsIs => self.of_ready(&groups, ratio),
            Filled::Filled => {
                let (again, _) = metric_usage_ratio(&samples, target);
                self.of_filled(ratio, again, samples.len())
            }
        };
        Ok(Replicas { replicas, utilization: None, usage })
    }

    /// For one value that does not depend on the number of pods.
    ///
    /// Upstream: `GetObjectMetricReplicas`, `GetExternalMetricReplicas` and `getUsageRatioReplicaCount`.
    pub fn value_replicas(&self, target: i64, usage: i64) -> Result<Replicas, String> {
        let ratio = real(usage) / real(target);
        let replicas = if self.spec_replicas == 0 {
            // A ratio of zero replicas is always zero.
            ceil(ratio)
        } else if self.tolerances.is_within(ratio) {
            self.spec_replicas
        } else {
            let ready = self.ready_pods().map_err(|error| format!("unable to calculate ready pods: {error}"))?;
            ceil(ratio * real(self.counted(ready)))
        };
        Ok(Replicas { replicas, utilization: None, usage })
    }

    /// For one value that is shared by the pods.
    ///
    /// Upstream: `GetObjectPerPodMetricReplicas` and `GetExternalPerPodMetricReplicas`.
    pub fn per_pod_replicas(&self, target: i64, usage: i64) -> Replicas {
        let pods = self.counted(self.status_replicas.into());
        let ratio = real(usage) / (real(target) * real(pods));
        let replicas = if self.tolerances.is_within(ratio) {
            super::numbers::narrow(pods.into())
        } else {
            ceil(real(usage) / real(target))
        };
        let usage = if usage == i64::MAX { usage } else { ceil_wide(real(usage) / real(self.status_replicas.into())) };
        Replicas { replicas, utilization: None, usage }
    }

    fn listed(&self) -> Result<&'a [Arc<Pod>], String> {
        let pods = self.pods.map_err(|error| format!("unable to get pods while calculating replica count: {error}"))?;
        if pods.is_empty() { Err(NO_PODS.to_owned()) } else { Ok(pods) }
    }

    /// Groups the pods, and drops the values that do not count.
    fn grouped(&self, pods: &'a [Arc<Pod>], samples: &mut Samples, resource: &str) -> Result<Groups<'a>, String> {
        let groups = group_pods(pods, samples, resource, self.config, self.now);
        samples.retain(|pod, _| !groups.ignored.contains(pod.as_str()) && !groups.unready.contains(pod.as_str()));
        if samples.is_empty() { Err(NO_METRICS.to_owned()) } else { Ok(groups) }
    }

    /// Upstream: `getReadyPodsCount`.
    fn ready_pods(&self) -> Result<i64, String> {
        let ready = self.listed()?.iter().filter(|pod| pod.phase == Phase::Running && pod.is_ready());
        Ok(count(ready.count()))
    }

    /// The number of pods, without a rollout's surge if the flag says so.
    fn counted(&self, pods: i64) -> i64 {
        if self.config.ignores_surge { pods.min(self.spec_replicas.into()) } else { pods }
    }

    fn of_ready(&self, groups: &Groups<'_>, ratio: f64) -> i32 {
        if self.tolerances.is_within(ratio) {
            return self.spec_replicas;
        }
        ceil(ratio * real(self.counted(count(groups.ready))))
    }

    /// Assumed values never reverse the direction.
    fn of_filled(&self, before: f64, ratio: f64, samples: usize) -> i32 {
        let turns = (before < 1.0 && ratio > 1.0) || (before > 1.0 && ratio < 1.0);
        if turns || self.tolerances.is_within(ratio) {
            return self.spec_replicas;
        }
        let replicas = ceil(ratio * real(self.counted(count(samples))));
        let contradicts =
            (ratio < 1.0 && replicas > self.spec_replicas) || (ratio > 1.0 && replicas < self.spec_replicas);
        if contradicts { self.spec_replicas } else { replicas }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filled {
    AsIs,
    Filled,
}

/// Assumes values for pods without one, against the direction of the others.
fn fill(groups: &Groups<'_>, ratio: f64, samples: &mut Samples, missing: impl Fn(&str) -> i64) -> Filled {
    let has_unready = !groups.unready.is_empty() && ratio > 1.0;
    if !has_unready && groups.missing.is_empty() {
        return Filled::AsIs;
    }
    let mut assume = |pod: &str, value| {
        samples.insert(pod.into(), Sample::assumed(value));
    };
    for pod in &groups.missing {
        if ratio < 1.0 {
            assume(pod, missing(pod));
        } else if ratio > 1.0 {
            assume(pod, 0);
        }
    }
    if has_unready {
        groups.unready.iter().for_each(|pod| assume(pod, 0));
    }
    Filled::Filled
}
