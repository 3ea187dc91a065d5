//! The value of a metric for each pod, in thousandths, from the answers of the metrics APIs. Outdated values are
//! dropped.
//!
//! Upstream: `pkg/controller/podautoscaler/metrics/client.go`.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::intern::Text;
use shared::api::quantity::Quantity;
use shared::api::time::Time;

use crate::objects::values::{ObjectValue, PodUsage};

/// Upstream: `metricServerDefaultMetricWindow`.
const DEFAULT_WINDOW: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    pub timestamp: Option<Time>,
    pub window: Duration,
    pub value: i64,
}

impl Sample {
    /// An assumed value for a pod without one.
    pub const fn assumed(value: i64) -> Self {
        Self { timestamp: None, window: Duration::ZERO, value }
    }
}

/// The values by the name of the pod.
pub type Samples = BTreeMap<Text, Sample>;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Freshness {
    pub max_age: Duration,
    pub now: Timestamp,
}

impl Freshness {
    /// The age of a value, if it is too old. A value may be as old as its window.
    pub fn overdue(&self, timestamp: Option<Time>, window: Duration) -> Option<Duration> {
        let age = Duration::try_from(self.now.duration_since(timestamp?.timestamp())).ok()?;
        Some(age).filter(|age| !self.max_age.is_zero() && *age > self.max_age.max(window))
    }
}

/// The usage of all containers of each pod, or of the container of this name. A pod with a missing value is left out.
///
/// Upstream: `getPodMetrics` and `getContainerMetrics`.
///
/// # Errors
/// The least age, if all values are too old.
pub fn of_usage(usage: &[PodUsage], resource: &str, container: &str, fresh: Freshness) -> Result<Samples, Duration> {
    let sample = |found: &PodUsage| {
        let PodUsage { metadata, timestamp, window, containers } = found;
        let mut of_container = containers.iter().filter(|found| container.is_empty() || found.name == *container);
        let value = if container.is_empty() {
            let each: Option<Vec<i64>> = of_container.map(|found| milli(found.usage.get(resource))).collect();
            each.filter(|each| !each.is_empty()).map(|each| each.into_iter().fold(0, i64::saturating_add))
        } else {
            of_container.next().and_then(|found| milli(found.usage.get(resource)))
        };
        Some((metadata.name.clone(), Sample { timestamp: *timestamp, window: *window, value: value? }))
    };
    fresh_samples(usage.iter().filter_map(sample), fresh)
}

/// The values of a metric of pods.
///
/// Upstream: `GetRawMetric`.
///
/// # Errors
/// The least age, if all values are too old.
pub fn of_pods(values: &[ObjectValue], fresh: Freshness) -> Result<Samples, Duration> {
    let sample = |found: &ObjectValue| {
        let ObjectValue { described_object, timestamp, window_seconds, value } = found;
        let window = window_seconds
            .map_or(DEFAULT_WINDOW, |seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or_default()));
        let sample = Sample { timestamp: *timestamp, window, value: value.milli_value() };
        (described_object.name.clone(), sample)
    };
    fresh_samples(values.iter().map(sample), fresh)
}

fn fresh_samples(all: impl Iterator<Item = (Text, Sample)>, fresh: Freshness) -> Result<Samples, Duration> {
    let (mut samples, mut least) = (Samples::new(), None);
    for (pod, sample) in all {
        match fresh.overdue(sample.timestamp, sample.window) {
            None => {
                samples.insert(pod, sample);
            }
            Some(age) => least = Some(least.map_or(age, |least: Duration| least.min(age))),
        }
    }
    match least {
        Some(age) if samples.is_empty() => Err(age),
        Some(_) | None => Ok(samples),
    }
}

fn milli(quantity: Option<&Quantity>) -> Option<i64> {
    quantity.map(Quantity::milli_value)
}
