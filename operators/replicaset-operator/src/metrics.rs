//! Upstream's own metrics of this controller, under upstream's names.
//!
//! Left out: what every operator shows (queues, requests, leadership), which is [`shared::process::metrics`]'.

use jiff::{SignedDuration, Timestamp};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use shared::api::pod::PodView;
use shared::controllers::replicas::pod::Pod;
use shared::controllers::replicas::sync::ReplicaMetrics;
use shared::process::metrics::Metrics;

use crate::plan::Plan;

const AGE_RATIO: &str = "replicaset_controller_sorting_deletion_age_ratio";
const AGE_RATIO_HELP: &str = "The ratio of chosen deleted pod's ages to the current youngest pod's age (at the time). \
    Should be <2. The intent of this metric is to measure the rough efficacy of the LogarithmicScaleDown feature gate's \
    effect on the sorting (and deletion) of pods when a replicaset scales down. This only considers Ready pods when \
    calculating and reporting";

#[derive(Clone)]
pub struct ReplicaSetMetrics {
    age_ratio: Histogram,
}

impl ReplicaSetMetrics {
    /// Registers them with the process's metrics.
    ///
    /// Upstream: `Register`, `pkg/controller/replicaset/metrics/metrics.go`.
    pub fn register(metrics: &Metrics) -> Self {
        let age_ratio = Histogram::new(exponential_buckets(0.25, 2.0, 6));
        metrics.register(AGE_RATIO, AGE_RATIO_HELP, age_ratio.clone());
        Self { age_ratio }
    }
}

impl ReplicaMetrics for ReplicaSetMetrics {
    fn observe_deletions(&self, plan: &Plan, now: Timestamp) {
        for ratio in deletion_age_ratios(plan, now) {
            self.age_ratio.observe(ratio);
        }
    }
}

/// How much older than the youngest ready pod each ready pod is that was chosen from among others.
///
/// Upstream: `reportSortingDeletionAgeRatioMetric`, `pkg/controller/replicaset/replica_set.go`; there the ratio is cut
/// to a whole number.
pub fn deletion_age_ratios(plan: &Plan, now: Timestamp) -> Vec<f64> {
    let claimed: Vec<&Pod> = plan.claim.owned.iter().chain(&plan.claim.adopt).map(|pod| &**pod).collect();
    if plan.delete.len() >= claimed.len() {
        return Vec::new();
    }
    let age = |pod: &Pod| pod.metadata.creation.map(|creation| now.duration_since(creation.timestamp()));
    let ready = claimed.into_iter().filter(|pod| pod.readiness().is_ready());
    let ages: Vec<_> = ready.filter_map(|pod| Some((pod.metadata.uid, age(pod)?))).collect();
    let Some(youngest) = ages.iter().map(|(_, age)| *age).min().filter(SignedDuration::is_positive) else {
        return Vec::new();
    };
    let chosen = ages.iter().filter(|(uid, _)| plan.delete.iter().any(|deletion| deletion.uid == *uid));
    chosen.map(|(_, age)| age.as_secs_f64() / youngest.as_secs_f64()).collect()
}
