//! The ratio of the values of pods to their target.
//!
//! Upstream: `pkg/controller/podautoscaler/metrics/utilization.go`, where sums wrap around; here they saturate.

use std::collections::BTreeMap;

use super::numbers::{cap, count, narrow, real};
use super::samples::Samples;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Utilization {
    /// Usage divided by target.
    pub ratio: f64,
    pub percentage: i32,
    pub average: i64,
}

/// Upstream: `GetResourceUtilizationRatio`.
pub fn resource_utilization_ratio(
    samples: &Samples,
    requests: &BTreeMap<&str, i64>,
    target: i32,
) -> Result<Utilization, String> {
    let (mut taken, mut requested, mut pods) = (0_i128, 0_i128, 0_usize);
    for (pod, sample) in samples {
        // Every known pod has a request; this pod is gone.
        let Some(request) = requests.get(pod.as_str()) else { continue };
        taken += i128::from(sample.value);
        requested += i128::from(*request);
        pods += 1;
    }
    if requested == 0 {
        return Err("no metrics returned matched known pods".to_owned());
    }
    let percentage = narrow(taken * 100 / requested);
    let average = cap(taken / i128::from(count(pods)));
    Ok(Utilization { ratio: real(percentage.into()) / real(target.into()), percentage, average })
}

/// The average divided by the target, and the average.
///
/// Upstream: `GetMetricUsageRatio`.
pub fn metric_usage_ratio(samples: &Samples, target: i64) -> (f64, i64) {
    let sum: i128 = samples.values().map(|sample| i128::from(sample.value)).sum();
    let average = cap(sum / i128::from(count(samples.len()).max(1)));
    (real(average) / real(target), average)
}
