//! Metrics that show the state of queues, informers and workers, which is read when somebody scrapes.
//!
//! Left out: history. A gauge shows the moment of the scrape.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::count;
use crate::following::followed::Followed;
use crate::following::source::Follow;
use crate::working::queue::Queue;

/// Whom to ask; cheap to clone.
#[derive(Clone, Default)]
pub(super) struct State(Arc<Mutex<BTreeMap<&'static str, Sources>>>);

#[derive(Default)]
struct Sources {
    queues: Vec<Queue>,
    informers: Followed,
    panics: Vec<(&'static str, Arc<AtomicU64>)>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("State")
    }
}

impl State {
    fn controllers(&self) -> MutexGuard<'_, BTreeMap<&'static str, Sources>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins with this controller, in the place of what it had before.
    pub(super) fn begin(&self, controller: &'static str) {
        self.controllers().insert(controller, Sources::default());
    }

    pub(super) fn add_queue(&self, controller: &'static str, queue: Queue) {
        self.controllers().entry(controller).or_default().queues.push(queue);
    }

    pub(super) fn set_informers(&self, controller: &'static str, informers: Followed) {
        self.controllers().entry(controller).or_default().informers = informers;
    }

    pub(super) fn add_panics(&self, controller: &'static str, name: &'static str, panics: Arc<AtomicU64>) {
        self.controllers().entry(controller).or_default().panics.push((name, panics));
    }
}

impl Collector for State {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let controllers = self.controllers();
        let queues = || controllers.values().flat_map(|sources| &sources.queues);
        let held =
            queues().map(|queue| (queue.name(), ConstGauge::new(i64::try_from(queue.held()).unwrap_or(i64::MAX))));
        let help = "Number of keys that wait, without a worker, until the caches have seen the keys' own writes or until \
                    a resource that a sync reads has been listed";
        family(&mut encoder, ("held_keys", help, "name"), held)?;
        let running: Vec<(&str, Vec<Duration>)> = queues().map(|queue| (queue.name(), queue.running())).collect();
        let sums = running.iter().map(|(name, times)| (*name, seconds(times.iter().sum())));
        let help = "How many seconds of work has done that is in progress and hasn't been observed by work_duration. \
                    Large values indicate stuck threads. One can deduce the number of stuck threads by observing the \
                    rate at which this increases";
        family(&mut encoder, ("workqueue_unfinished_work_seconds", help, "name"), sums)?;
        let longest =
            running.iter().map(|(name, times)| (*name, seconds(times.iter().max().copied().unwrap_or_default())));
        let help = "How many seconds has the longest running processor for workqueue been running";
        family(&mut encoder, ("workqueue_longest_running_processor_seconds", help, "name"), longest)?;

        let followed: Vec<Follow> = controllers.values().flat_map(|sources| sources.informers.follows()).collect();
        let resources = by_resource(&followed);
        let synced =
            resources.iter().map(|(resource, informers)| (*resource, ConstGauge::new(i64::from(informers.synced))));
        let help = "Whether the informer's cache holds all of the resource that is needed: 1, or 0";
        family(&mut encoder, ("informer_synced", help, "resource"), synced)?;
        let unreadable =
            resources.iter().map(|(resource, informers)| (*resource, ConstCounter::new(informers.decode_errors)));
        let help = "Number of objects and events that this build could not read";
        family(&mut encoder, ("informer_decode_errors", help, "resource"), unreadable)?;
        let lists = resources.iter().map(|(resource, informers)| (*resource, ConstCounter::new(informers.lists)));
        let help = "Number of times the whole resource was listed, the first one included";
        family(&mut encoder, ("informer_relists", help, "resource"), lists)?;
        let silent =
            resources.iter().filter_map(|(resource, informers)| Some((*resource, seconds(informers.silence?))));
        let help = "Seconds since the apiserver last sent an event, a bookmark or a part of a list of the resource; of \
                    several watches the longest. An apiserver sends a bookmark about every minute, but may begin with \
                    it ten minutes after its start";
        family(&mut encoder, ("informer_silence_seconds", help, "resource"), silent)?;
        let panics = controllers.values().flat_map(|sources| &sources.panics);
        let panics = panics.map(|(name, panics)| (*name, ConstCounter::new(count(panics))));
        family(&mut encoder, ("worker_panics", "Number of syncs that panicked", "name"), panics)
    }
}

struct Informers {
    synced: bool,
    decode_errors: u64,
    lists: u64,
    /// None if the apiserver has not sent anything yet.
    silence: Option<Duration>,
}

fn by_resource(informers: &[Follow]) -> BTreeMap<&str, Informers> {
    let mut resources = BTreeMap::new();
    for Follow { health, progress, .. } in informers {
        let none = || Informers { synced: true, decode_errors: 0, lists: 0, silence: None };
        let of_resource = resources.entry(health.resource.as_str()).or_insert_with(none);
        of_resource.synced &= progress.borrow().synced;
        of_resource.decode_errors += health.decode_errors();
        of_resource.lists += health.lists();
        of_resource.silence = of_resource.silence.max(health.silent_for());
    }
    resources
}

fn seconds(duration: Duration) -> ConstGauge<f64> {
    ConstGauge::new(duration.as_secs_f64())
}

/// One metric of several that differ in one label; nothing at all where there are none.
fn family<'a, M: EncodeMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help, label): (&str, &str, &'static str),
    metrics: impl Iterator<Item = (&'a str, M)>,
) -> fmt::Result {
    let metrics: Vec<(&str, M)> = metrics.collect();
    let Some((_, first)) = metrics.first() else { return Ok(()) };
    let mut descriptor = encoder.encode_descriptor(name, &format!("{help}."), None, first.metric_type())?;
    for (value, metric) in &metrics {
        metric.encode(descriptor.encode_family(&[(label, *value)])?)?;
    }
    Ok(())
}
