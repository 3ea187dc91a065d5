//! The shadow's metrics, which nobody has who works.
//!
//! Left out: how long a wish lasted that only a look at rest found gone.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use tokio::time::Instant;

use super::lock;
use super::timing::{Judgement, Timings};
use super::wishes::Wishes;
use super::write::Target;
use crate::runtime::metrics::Metrics;

/// `verb` and `resource`.
type Labels = [(&'static str, String); 2];
/// `result`.
type OneLabel = [(&'static str, &'static str); 1];

/// 1 ms to half a minute, four times as long each.
const LAG_BUCKETS: [f64; 8] = [0.001, 0.004, 0.016, 0.064, 0.25, 1.0, 4.0, 16.0];

/// The metrics of a shadow; cheap to clone.
#[derive(Clone)]
pub(super) struct ShadowMetrics {
    fulfilled: Family<Labels, Counter>,
    lag: Histogram,
    judged: Family<OneLabel, Histogram, fn() -> Histogram>,
}

impl ShadowMetrics {
    pub(super) fn register(metrics: &Metrics, wishes: Arc<Mutex<Wishes>>, timings: Arc<Mutex<Timings>>) -> Self {
        let (fulfilled, lag) = (Family::<Labels, Counter>::default(), Histogram::new(LAG_BUCKETS));
        let new_histogram: fn() -> Histogram = || Histogram::new(LAG_BUCKETS);
        let judged = Family::new_with_constructor(new_histogram);
        let help = "Number of writes that were decided here and are not wanted any more: somebody else has made them, or \
                    they have become needless";
        metrics.register("shadow_fulfilled", help, fulfilled.clone());
        let help = "How many seconds after the decision of a write somebody else's was seen here";
        metrics.register("shadow_lag_seconds", help, lag.clone());
        let help =
            "How many seconds before or after the decision of a status somebody else's write of it was seen here";
        metrics.register("shadow_status_delay_seconds", help, judged.clone());
        metrics.register_collector(Standing(wishes, timings));
        Self { fulfilled, lag, judged }
    }

    /// So far apart were a decision and a write.
    pub(super) fn judged(&self, judgement: Judgement, apart: Duration) {
        self.judged.get_or_create_owned(&[("result", judgement.name())]).observe(apart.as_secs_f64());
    }

    pub(super) fn fulfilled(&self, Target { verb, resource, object: _ }: &Target, after: Option<Duration>) {
        let labels = [("verb", (*verb).to_owned()), ("resource", resource.clone())];
        self.fulfilled.get_or_create_owned(&labels).inc();
        if let Some(after) = after {
            self.lag.observe(after.as_secs_f64());
        }
    }
}

/// The values at the moment of the scrape.
struct Standing(Arc<Mutex<Wishes>>, Arc<Mutex<Timings>>);

impl fmt::Debug for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Standing")
    }
}

impl Collector for Standing {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let wishes = lock(&self.0);
        let looked_at = wishes.looked_at().into_iter().map(|(queue, keys)| (vec![("name", queue)], keys));
        family(&mut encoder, "shadow_looked_at", "Number of keys that were looked at", looked_at)?;
        let (counts, _) = wishes.counts();
        let counts = counts.into_iter().map(|((queue, verb), count)| (vec![("name", queue), ("verb", verb)], count));
        let help = "Number of writes that a takeover would make to what has come to rest";
        family(&mut encoder, "shadow_differences", help, counts)?;
        let help = "Number of keys that want to write something to what has not come to rest";
        let moving = wishes.moving().into_iter().map(|(queue, keys)| (vec![("name", queue)], keys));
        family(&mut encoder, "shadow_moving", help, moving)?;
        status_writes(&mut encoder, &mut lock(&self.1))
    }
}

fn status_writes(encoder: &mut DescriptorEncoder<'_>, timings: &mut Timings) -> fmt::Result {
    timings.settle(Instant::now());
    let help = "Number of writes of a status by somebody else, by how they stand to what was decided here.";
    let kind = ConstCounter::new(0_u64).metric_type();
    let mut descriptor = encoder.encode_descriptor("shadow_status_writes", help, None, kind)?;
    for judgement in Judgement::ALL {
        let labels = [("result", judgement.name())];
        let count = ConstCounter::new(timings.counted(judgement));
        count.encode(descriptor.encode_family(&labels.as_slice())?)?;
    }
    Ok(())
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
