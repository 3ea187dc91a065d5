//! The metrics of `/metrics`, under upstream's names and labels where upstream has them, so that existing dashboards
//! work.
//!
//! The code that counts shares its counters with this registry. Values that another part already has (how long syncs
//! have run, whether caches are synced, the process's memory) are read at each scrape. Left out: a global registry, and
//! stability levels in the help texts.

mod bare;
mod controllers;
mod process;
mod state;

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Method, StatusCode};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};
use tokio::time::{Instant, sleep_until};

use crate::following::followed::Followed;
use crate::transport::client::RequestObserver;
use crate::transport::identity::{KUBERNETES_VERSION, VERSION};
use crate::working::events::EventMetrics;
use crate::working::queue::{Observer, Queue};
pub use bare::BareCounter;
pub(crate) use controllers::ControllerState;
use controllers::Controllers;

/// The content type of [`Metrics::to_text`], by which Prometheus chooses its parser.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Rare enough that an idle operator stays idle.
const LAG_PERIOD: Duration = Duration::from_secs(5);

/// One label: upstream's `name`, or `resource`, which only the operators have.
type Label = [(&'static str, &'static str); 1];

/// The queue of a sync that failed, and why it did.
type ErrorLabels = [(&'static str, &'static str); 2];

/// All metrics of a process, and the part of one controller in them; cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    process: Arc<Process>,
    /// The controller whose part this is.
    controller: &'static str,
    /// What only this controller counts.
    own: Arc<Mutex<Registry>>,
}

/// What all controllers of a process have in common.
struct Process {
    registry: Mutex<Registry>,
    families: Families,
    state: state::State,
    own: Mutex<BTreeMap<&'static str, Arc<Mutex<Registry>>>>,
}

impl Metrics {
    pub fn new(name: &'static str) -> Self {
        let mut registry = Registry::default();
        let families = Families::default();
        families.register(&mut registry);
        let build = [("name", name), ("version", VERSION), ("kubernetes_version", KUBERNETES_VERSION)];
        registry.register(
            "operator_build",
            "This build, and the Kubernetes release whose behaviour it has",
            Info::new(build),
        );
        let state = state::State::default();
        registry.register_collector(Box::new(state.clone()));
        registry.register_collector(Box::new(process::Process));
        let process = Process { registry: Mutex::new(registry), families, state, own: Mutex::default() };
        Self::part(Arc::new(process), name)
    }

    /// A new part for this controller, in the place of its former one if it was restarted. What all controllers count
    /// goes on from where it was.
    #[must_use]
    pub fn of_controller(&self, controller: &'static str) -> Self {
        Self::part(Arc::clone(&self.process), controller)
    }

    fn part(process: Arc<Process>, controller: &'static str) -> Self {
        let own = Arc::new(Mutex::new(Registry::default()));
        process.state.begin(controller);
        lock(&process.own).insert(controller, Arc::clone(&own));
        Self { process, controller, own }
    }

    fn families(&self) -> &Families {
        &self.process.families
    }

    /// Adds a metric of an operator's own, under upstream's name; `_total` is added to a counter's.
    pub fn register(&self, name: &'static str, help: &'static str, metric: impl Metric) {
        lock(&self.own).register(name, help, metric);
    }

    /// Adds a collector whose values are read at each scrape.
    pub fn register_collector(&self, collector: impl Collector) {
        lock(&self.own).register_collector(Box::new(collector));
    }

    /// The observer of a new queue of this name; [`Self::watch_queue`] adds the values that are read from the queue.
    pub fn queue(&self, name: &'static str) -> QueueMetrics {
        let families = self.families();
        let label: Label = [("name", name)];
        let depth = families.queue_depth.get_or_create_owned(&label);
        // A restarted controller's queue is empty.
        depth.set(0);
        QueueMetrics {
            adds: families.queue_adds.get_or_create_owned(&label),
            depth,
            retries: families.queue_retries.get_or_create_owned(&label),
            waited: families.queue_waited.get_or_create_owned(&label),
            worked: families.queue_worked.get_or_create_owned(&label),
            wrote: families.event_to_write.get_or_create_owned(&label),
            errors: families.sync_errors.clone(),
            name,
        }
    }

    /// Shows how long the running syncs of this queue have run.
    pub fn watch_queue(&self, queue: &Queue) {
        self.process.state.add_queue(self.controller, queue.clone());
    }

    /// Shows the state of all that the controller follows.
    pub(crate) fn watch_informers(&self, followed: Followed) {
        self.process.state.set_informers(self.controller, followed);
    }

    /// Shows how many syncs of the workers of this name have panicked.
    pub fn watch_panics(&self, name: &'static str, panics: Arc<AtomicU64>) {
        self.process.state.add_panics(self.controller, name, panics);
    }

    /// Shows the controllers of this process, which `manager` runs as kube-controller-manager does.
    pub(crate) fn watch_controllers(
        &self,
        manager: &'static str,
        read: impl Fn() -> Vec<ControllerState> + Send + Sync + 'static,
    ) {
        self.register_collector(Controllers::new(manager, read));
    }

    /// Measures how late the event loop of the controller is, for as long as this is polled.
    pub(crate) async fn measure_lag(self) {
        let lag = self.families().event_loop_lag.get_or_create_owned(&[("name", self.controller)]);
        loop {
            let due = Instant::now() + LAG_PERIOD;
            sleep_until(due).await;
            lag.observe(due.elapsed().as_secs_f64());
        }
    }

    /// The metrics of the client for the apiserver at this host (and port).
    pub fn client(&self, host: &str) -> ClientMetrics {
        ClientMetrics { process: Arc::clone(&self.process), host: host.into() }
    }

    /// The metrics of the election for the Lease of this name.
    pub fn leader(&self, name: &'static str) -> LeaderMetrics {
        let label: Label = [("name", name)];
        LeaderMetrics {
            is_leader: self.families().leader_status.get_or_create_owned(&label),
            slow_path: self.families().leader_slow_path.get_or_create_owned(&label),
        }
    }

    pub fn events(&self) -> EventMetrics {
        let counter = |outcome| self.families().events.get_or_create_owned(&[("outcome", outcome)]);
        EventMetrics {
            posted: counter("posted"),
            filtered: counter("filtered"),
            dropped: counter("dropped"),
            failed: counter("failed"),
        }
    }

    /// All metrics as `OpenMetrics` text, which [`CONTENT_TYPE`] announces.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string fails only if a collector does; the metrics before it are still useful.
        if let Err(error) = self.encode(&mut text) {
            tracing::error!(%error, "cannot encode all metrics");
        }
        text
    }

    fn encode(&self, text: &mut String) -> fmt::Result {
        text::encode_registry(text, &lock(&self.process.registry))?;
        let mut own = Merged::default();
        for registry in lock(&self.process.own).values() {
            let mut of_one = String::new();
            text::encode_registry(&mut of_one, &lock(registry))?;
            own.add(&of_one);
        }
        own.write(text)?;
        text::encode_eof(text)
    }
}

/// The families of several controllers, by name. Each comes once, and a series that several controllers count comes once
/// with their sum.
#[derive(Default)]
struct Merged(BTreeMap<String, FamilyText>);

#[derive(Default)]
struct FamilyText {
    head: String,
    /// Each with its labels, in order.
    series: Vec<(String, String)>,
}

impl Merged {
    fn add(&mut self, text: &str) {
        let (mut family, mut is_known) = ("", false);
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("# HELP ").and_then(|rest| rest.split(' ').next()) {
                (family, is_known) = (name, self.0.contains_key(name));
            }
            let FamilyText { head, series } = self.0.entry(family.to_owned()).or_default();
            if line.starts_with('#') {
                if !is_known {
                    head.push_str(line);
                    head.push('\n');
                }
            } else if let Some((of, value)) = line.rsplit_once(' ') {
                match series.iter_mut().find(|(known, _)| is_known && known == of) {
                    Some((_, sum)) => *sum = added(sum, value),
                    None => series.push((of.to_owned(), value.to_owned())),
                }
            }
        }
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        for FamilyText { head, series } in self.0.values() {
            text.push_str(head);
            series.iter().try_for_each(|(of, value)| writeln!(text, "{of} {value}"))?;
        }
        Ok(())
    }
}

/// The sum of two values as they are written.
fn added(one: &str, other: &str) -> String {
    if let (Ok(one), Ok(other)) = (one.parse::<u64>(), other.parse::<u64>()) {
        return one.saturating_add(other).to_string();
    }
    let number = |text: &str| text.parse().unwrap_or(f64::NAN);
    format!("{:?}", number(one) + number(other))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Clone)]
struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

/// Makes a histogram with the work queue's buckets: 10 ns, ten times as long each, to 10 s.
#[derive(Clone, Default)]
struct QueueBuckets;

impl MetricConstructor<Histogram> for QueueBuckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(exponential_buckets(10e-9, 10.0, 10))
    }
}

const EVENT_TO_WRITE_BUCKETS: Buckets =
    Buckets(&[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0]);

const LAG_BUCKETS: Buckets = Buckets(&[0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0]);

const REQUEST_BUCKETS: Buckets = Buckets(&[0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0]);

/// Names and help texts: staging/src/k8s.io/component-base/metrics/prometheus/{workqueue,restclient}/metrics.go and
/// clientgo/leaderelection/metrics.go.
struct Families {
    queue_adds: Family<Label, Counter>,
    queue_depth: Family<Label, Gauge>,
    queue_retries: Family<Label, Counter>,
    queue_waited: Family<Label, Histogram, QueueBuckets>,
    queue_worked: Family<Label, Histogram, QueueBuckets>,
    requests: Family<RequestLabels, Counter>,
    request_duration: Family<VerbLabels, Histogram, Buckets>,
    leader_status: Family<Label, Gauge>,
    leader_slow_path: Family<Label, Counter>,
    events: Family<Label, Counter>,
    event_to_write: Family<Label, Histogram, Buckets>,
    event_loop_lag: Family<Label, Histogram, Buckets>,
    sync_errors: Family<ErrorLabels, Counter>,
}

impl Default for Families {
    fn default() -> Self {
        Self {
            queue_adds: Family::default(),
            queue_depth: Family::default(),
            queue_retries: Family::default(),
            queue_waited: Family::new_with_constructor(QueueBuckets),
            queue_worked: Family::new_with_constructor(QueueBuckets),
            requests: Family::default(),
            request_duration: Family::new_with_constructor(REQUEST_BUCKETS),
            leader_status: Family::default(),
            leader_slow_path: Family::default(),
            events: Family::default(),
            event_to_write: Family::new_with_constructor(EVENT_TO_WRITE_BUCKETS),
            event_loop_lag: Family::new_with_constructor(LAG_BUCKETS),
            sync_errors: Family::default(),
        }
    }
}

impl Families {
    fn register(&self, registry: &mut Registry) {
        let Self {
            queue_adds,
            queue_depth,
            queue_retries,
            queue_waited,
            queue_worked,
            requests,
            request_duration,
            leader_status,
            leader_slow_path,
            events,
            event_to_write,
            event_loop_lag,
            sync_errors,
        } = self;
        registry.register("workqueue_adds", "Total number of adds handled by workqueue", queue_adds.clone());
        registry.register("workqueue_depth", "Current depth of workqueue", queue_depth.clone());
        registry.register("workqueue_retries", "Total number of retries handled by workqueue", queue_retries.clone());
        let help = "How long in seconds an item stays in workqueue before being requested";
        registry.register("workqueue_queue_duration_seconds", help, queue_waited.clone());
        let help = "How long in seconds processing an item from workqueue takes";
        registry.register("workqueue_work_duration_seconds", help, queue_worked.clone());
        let help = "Number of HTTP requests, partitioned by status code, method, and host";
        registry.register("rest_client_requests", help, requests.clone());
        let help = "Request latency in seconds. Broken down by verb, and host";
        registry.register("rest_client_request_duration_seconds", help, request_duration.clone());
        let help = "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates \
                    master. 'name' is the string used to identify the lease. Please make sure to group by name";
        registry.register("leader_election_master_status", help, leader_status.clone());
        let help = "Total number of slow path exercised in renewing leader leases. 'name' is the string used to \
                    identify the lease. Please make sure to group by name";
        registry.register("leader_election_slowpath", help, leader_slow_path.clone());
        let help = "Number of events, partitioned by what became of them: posted, filtered (as spam), dropped (the \
                    queue was full), or failed";
        registry.register("events", help, events.clone());
        let help = "Time in seconds from an event, or from the end of a planned delay after it, to the first accepted \
                    write of the sync that it led to, by workqueue. Calls of a cloud do not count";
        registry.register("event_to_write_duration_seconds", help, event_to_write.clone());
        let help = "How much later in seconds than it was due a timer of the operator's event loop fired";
        registry.register("event_loop_lag_seconds", help, event_loop_lag.clone());
        let help = "Number of syncs that failed, by workqueue and reason: the apiserver's word for the refused request, \
                    Connection or Timeout (no answer), Unreadable (an answer), NotWritten (the Lease had expired), \
                    Panic, or Other";
        registry.register("sync_errors", help, sync_errors.clone());
    }
}

pub struct QueueMetrics {
    adds: Counter,
    depth: Gauge,
    retries: Counter,
    waited: Histogram,
    worked: Histogram,
    wrote: Histogram,
    errors: Family<ErrorLabels, Counter>,
    name: &'static str,
}

impl Observer for QueueMetrics {
    fn added(&self) {
        self.adds.inc();
    }

    fn depth(&self, keys: usize) {
        self.depth.set(i64::try_from(keys).unwrap_or(i64::MAX));
    }

    fn dequeued(&self, waited: Duration) {
        self.waited.observe(waited.as_secs_f64());
    }

    fn worked(&self, took: Duration) {
        self.worked.observe(took.as_secs_f64());
    }

    fn retried(&self) {
        self.retries.inc();
    }

    fn failed(&self, reason: &'static str) {
        self.errors.get_or_create(&[("name", self.name), ("reason", reason)]).inc();
    }

    fn wrote(&self, after: Duration) {
        self.wrote.observe(after.as_secs_f64());
    }
}

#[derive(Clone)]
pub struct ClientMetrics {
    process: Arc<Process>,
    host: Arc<str>,
}

impl ClientMetrics {
    /// Counts a request that was answered with `code`, or not at all, after this time.
    pub fn request(&self, method: &Method, code: Option<StatusCode>, took: Duration) {
        let host = Host(Arc::clone(&self.host));
        let verb = VerbLabels { verb: Verb(method.clone()), host: host.clone() };
        self.process.families.request_duration.get_or_create(&verb).observe(took.as_secs_f64());
        let labels = RequestLabels { code: Code(code), method: Verb(method.clone()), host };
        self.process.families.requests.get_or_create(&labels).inc();
    }

    /// For [`crate::transport::client::ClientOptions`].
    pub fn observer(self) -> RequestObserver {
        Arc::new(move |method, code, took| self.request(method, code, took))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    code: Code,
    method: Verb,
    host: Host,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerbLabels {
    verb: Verb,
    host: Host,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Code(Option<StatusCode>);

impl EncodeLabelValue for Code {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        // client-go's word for a request without an answer.
        self.0.as_ref().map_or("<error>", StatusCode::as_str).encode(encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Verb(Method);

impl EncodeLabelValue for Verb {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        self.0.as_str().encode(encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Host(Arc<str>);

impl EncodeLabelValue for Host {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        (&*self.0).encode(encoder)
    }
}

#[derive(Clone)]
pub struct LeaderMetrics {
    is_leader: Gauge,
    slow_path: Counter,
}

impl LeaderMetrics {
    pub fn leads(&self, is_leader: bool) {
        self.is_leader.set(i64::from(is_leader));
    }

    /// The Lease had to be read before it could be renewed.
    pub fn slow_path(&self) {
        self.slow_path.inc();
    }
}

/// The syncs of one controller that were put off because a cache was behind, by resource.
pub struct StaleSyncSkips(Family<[(&'static str, String); 2], Counter>);

impl StaleSyncSkips {
    /// Registers them under upstream's name and help.
    pub fn register(metrics: &Metrics, name: &'static str, help: &'static str) -> Self {
        let skips = Family::default();
        metrics.register(name, help, skips.clone());
        Self(skips)
    }

    /// Counts one; `resource` is the one whose cache is behind, as upstream prints it: `statefulsets.apps`.
    pub fn count(&self, resource: &str) {
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        self.0.get_or_create(&[("group", group.to_owned()), ("resource", resource.to_owned())]).inc();
    }
}

fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests;
