//! The shadow's metrics.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;

use super::lock;
use super::pending::PendingWrites;
use super::write::Target;
use crate::process::metrics::Metrics;

/// `verb` and `resource`.
type Labels = [(&'static str, String); 2];

/// 1 ms to half a minute, four times as long each.
const LAG_BUCKETS: [f64; 8] = [0.001, 0.004, 0.016, 0.064, 0.25, 1.0, 4.0, 16.0];

/// The metrics of a shadow; cheap to clone.
#[derive(Clone)]
pub(super) struct ShadowMetrics {
    fulfilled: Family<Labels, Counter>,
    lag: Histogram,
}

impl ShadowMetrics {
    pub(super) fn register(metrics: &Metrics, pending: Arc<Mutex<PendingWrites>>) -> Self {
        let (fulfilled, lag) = (Family::<Labels, Counter>::default(), Histogram::new(LAG_BUCKETS));
        let help = "Number of writes that were decided here and are not wanted any more: another client has made them, or \
                    they are no longer needed";
        metrics.register("shadow_fulfilled", help, fulfilled.clone());
        let help = "Seconds from the decision of a write to the event of another client's";
        metrics.register("shadow_lag_seconds", help, lag.clone());
        metrics.register_collector(CurrentValues(pending));
        Self { fulfilled, lag }
    }

    pub(super) fn fulfilled(&self, Target { verb, resource, object: _ }: &Target, after: Option<Duration>) {
        let labels = [("verb", (*verb).to_owned()), ("resource", resource.clone())];
        self.fulfilled.get_or_create_owned(&labels).inc();
        if let Some(after) = after {
            self.lag.observe(after.as_secs_f64());
        }
    }
}

struct CurrentValues(Arc<Mutex<PendingWrites>>);

impl fmt::Debug for CurrentValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CurrentValues")
    }
}

impl Collector for CurrentValues {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let pending = lock(&self.0);
        let looked_at = pending.looked_at().into_iter().map(|(queue, keys)| (vec![("name", queue)], keys));
        family(&mut encoder, "shadow_looked_at", "Number of keys that were looked at", looked_at)?;
        let (counts, _) = pending.counts();
        let counts = counts.into_iter().map(|((queue, verb), count)| (vec![("name", queue), ("verb", verb)], count));
        let help = "Number of writes that a takeover would make to what has come to rest";
        family(&mut encoder, "shadow_differences", help, counts)?;
        let help = "Number of keys that want to write something to what has not come to rest";
        let moving = pending.moving().into_iter().map(|(queue, keys)| (vec![("name", queue)], keys));
        family(&mut encoder, "shadow_moving", help, moving)
    }
}

fn family<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (Vec<(&'a str, &'a str)>, u64)>,
) -> fmt::Result {
    let gauge = |value: u64| ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
    let kind = gauge(0).metric_type();
    let mut descriptor = encoder.encode_descriptor(name, &format!("{help}."), None, kind)?;
    for (labels, value) in values {
        gauge(value).encode(descriptor.encode_family(&labels.as_slice())?)?;
    }
    Ok(())
}
