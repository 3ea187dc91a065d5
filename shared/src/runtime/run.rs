//! An operator's `main`: flags, client, health, informers, leadership, workers, and an orderly end.
//!
//! Every replica keeps its caches warm; only the leader works. Left out: what is watched and synced, which the
//! operator's `controller.rs` says in [`Operator::set_up`].

#[cfg(any(test, feature = "testing"))]
mod alone;
mod restore;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::{Context, anyhow};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::sync::watch::Receiver;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::api::explain::SHADOW_PATH;
use crate::api::object::Object;
use crate::runtime::cache::Progress;
use crate::runtime::client::{self, Client, ClientOptions, RETURN_SPREAD};
use crate::runtime::clock::Clock;
use crate::runtime::consistency::{Consistency, Follow, Watched};
use crate::runtime::control::Control;
use crate::runtime::decisions::Decisions;
use crate::runtime::effect::Effects;
use crate::runtime::events::{Events, Recorder};
use crate::runtime::expectations::Expectations;
use crate::runtime::flags::{self, Exit, Flags, KUBERNETES_VERSION, SharedFlags, VERSION};
use crate::runtime::informer::{Demand, Extent, Feeder, Followed, Informer, Need};
use crate::runtime::leader::{Election, Elector, Lost, Term};
use crate::runtime::metrics::{self, Metrics};
use crate::runtime::queue::{Backoff, Queue};
use crate::runtime::serving::{Checks, Probe, Query, Server, Site};
use crate::runtime::shadow::Shadow;
use crate::runtime::telemetry::{self, Telemetry};
use crate::runtime::worker::{self, Controller};
#[cfg(any(test, feature = "testing"))]
pub(crate) use alone::{Alone, alone};
use restore::{OnRestore, StartOver};

/// How long the last events and traces may take to leave.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// The names of one operator. Upstream has three for each controller, and they disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// The binary, image, manifest folder and Lease: `deployment-operator`.
    pub operator: &'static str,
    /// Upstream's canonical name: `deployment-controller`.
    pub controller: &'static str,
    /// The component that events come from: `deployment-controller`.
    pub event_source: &'static str,
}

/// One operator, as a process sees it.
pub trait Operator {
    /// Its names.
    const NAMES: Names;
    /// The flags that only it has.
    type Flags: clap::Args;

    /// Declares informers, queues and workers; starts nothing.
    fn set_up(flags: &Self::Flags, setup: &mut Setup);
}

/// What an operator declares before anything starts.
pub struct Setup {
    flags: SharedFlags,
    client: Client,
    shadow: Option<Shadow>,
    term: Option<Term>,
    clock: Clock,
    recorder: Recorder,
    decisions: Decisions,
    metrics: Metrics,
    checks: Checks,
    panics: Arc<AtomicU64>,
    informers: Vec<BoxFuture<'static, anyhow::Result<()>>>,
    progress: Vec<Receiver<Progress>>,
    followed: Followed,
    on_restore: Vec<OnRestore>,
    queues: Vec<Queue>,
    watched: Watched,
    consistency: BTreeMap<&'static str, Arc<Consistency>>,
    expectations: BTreeMap<&'static str, Arc<Expectations>>,
    starters: Vec<Starter>,
    workers: Vec<BoxFuture<'static, ()>>,
    pages: Vec<OwnPage>,
}

/// What is called once, when work starts.
type Starter = Box<dyn FnOnce() + Send>;

/// Path, content type, and what reads it, in pieces.
type OwnPage = (&'static str, &'static str, Box<dyn Fn(&Query) -> Pieces + Send + Sync>);
type Pieces = Box<dyn Iterator<Item = String> + Send>;

impl Setup {
    fn new<O: Operator>(flags: &SharedFlags, client: Client, clock: Clock, metrics: Metrics, events: &Events) -> Self {
        let (shadow, client) = Shadow::of_mode(O::NAMES.operator, flags.mode, client, &clock, &metrics);
        let mut starters: Vec<Starter> = Vec::new();
        // A recorder is silent before work starts, and for a shadow it never does.
        if shadow.is_none() {
            starters.push(Box::new(events.starter()));
        }
        Self {
            flags: flags.clone(),
            client,
            shadow,
            term: None,
            clock,
            recorder: events.recorder(O::NAMES.event_source),
            decisions: Decisions::default(),
            metrics,
            checks: Checks::default(),
            panics: Arc::default(),
            informers: Vec::new(),
            progress: Vec::new(),
            followed: Followed::default(),
            on_restore: Vec::new(),
            queues: Vec::new(),
            watched: Watched::default(),
            consistency: BTreeMap::new(),
            expectations: BTreeMap::new(),
            starters,
            workers: Vec::new(),
            pages: Vec::new(),
        }
    }

    /// The flags every operator has.
    pub fn flags(&self) -> &SharedFlags {
        &self.flags
    }

    /// Reads and writes for the syncs of this queue; writes nothing while another replica may be at work. A key of the
    /// queue is not synced again before what is followed has seen the key's last writes.
    pub fn control(&mut self, queue: &Queue) -> Control {
        let client = self.term.clone().map_or_else(|| self.client.clone(), |term| self.client.with_term(term));
        let consistency = self.consistency(queue);
        Control::new(client, consistency)
    }

    fn consistency(&mut self, queue: &Queue) -> Arc<Consistency> {
        let none = || Arc::new(Consistency::new(self.client.clone(), self.watched.clone()));
        Arc::clone(self.consistency.entry(queue.name()).or_insert_with(none))
    }

    /// What the syncs of this queue ask for and have not seen yet. After a restore of etcd it starts over.
    pub fn expectations(&mut self, queue: &Queue) -> Arc<Expectations> {
        if let Some(known) = self.expectations.get(queue.name()) {
            return Arc::clone(known);
        }
        let expectations = Arc::new(Expectations::new());
        self.expectations.insert(queue.name(), Arc::clone(&expectations));
        let forgetting = Arc::clone(&expectations);
        self.on_restore(move || forgetting.start_over());
        expectations
    }

    /// Carries out what changes mean for this queue.
    pub fn effects(&mut self, queue: &Queue) -> Effects {
        Effects::new(queue.clone(), self.control(queue), self.expectations(queue))
    }

    /// The event recorder, under the operator's event source.
    pub fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    /// The wall clock.
    pub fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// The metrics, for an operator that has its own.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Where the syncs of a queue note what they decided.
    pub fn decisions(&self, queue: &Queue) -> Decisions {
        self.decisions.of_queue(queue.name())
    }

    /// A queue; `name` is upstream's, as in the metrics.
    pub fn queue(&mut self, name: &'static str, backoff: Backoff) -> Queue {
        let queue = Queue::new(name, backoff, Some(Box::new(self.metrics.queue(name))));
        self.metrics.watch_queue(&queue);
        self.queues.push(queue.clone());
        queue
    }

    /// Follows a resource from start to end, on every replica. Workers start once all caches are synced.
    pub fn watch<T: Object>(&mut self, informer: Informer<T>) {
        let follow = informer.follow();
        self.metrics.watch_informer(follow.clone());
        self.watched.add(follow.clone());
        let check = format!("informer-sync/{}", informer.health().resource);
        self.checks.add(&[Probe::Readyz], check, move || synced(&follow));
        self.progress.push(informer.cache().subscribe());
        self.followed.add(informer.collection());
        let (following, starter) = informer.run(self.client.clone());
        self.informers.push(Box::pin(following.map(Ok)));
        self.at_start(starter);
    }

    /// Follows all of a resource while an object needs it, on every replica, and some minutes longer. A key is not synced
    /// while something is needed that was not listed yet.
    pub fn watch_while<T: Object>(&mut self, informer: Informer<T>, need: &Need) {
        self.watch_on_demand(informer, &[(need, Extent::Cluster)]);
    }

    /// As [`Self::watch_while`], in the namespaces of the objects that need it; a key of one of them waits for that
    /// namespace only.
    pub fn watch_beside<T: Object>(&mut self, informer: Informer<T>, need: &Need) {
        self.watch_on_demand(informer, &[(need, Extent::Namespaces)]);
    }

    /// As [`Self::watch_while`], and in the namespaces of the objects that need it `whole`, whatever the informer's
    /// selectors say. Both fill one cache: an object is there while either sees it, and handlers are told once.
    pub fn watch_while_and_beside<T: Object>(&mut self, informer: Informer<T>, need: &Need, whole: &Need) {
        self.watch_on_demand(informer, &[(need, Extent::Cluster), (whole, Extent::WholeNamespaces)]);
    }

    fn watch_on_demand<T: Object>(&mut self, informer: Informer<T>, wanted: &[(&Need, Extent)]) {
        let resource = informer.health().resource.clone();
        let demands: Vec<_> =
            wanted.iter().map(|(need, extent)| Demand::new(resource.clone(), need, *extent)).collect();
        let (checked, check) = (demands.clone(), format!("informer-sync/{resource}"));
        self.checks.add(&[Probe::Readyz], check, move || checked.iter().try_for_each(Demand::check));
        for demand in &demands {
            self.watched.add_demand(demand.clone());
            self.followed.add_demand(demand.clone());
        }
        let (following, starter) = informer.run_on_demand(demands, &self.client, &self.watched, &self.metrics);
        self.informers.push(Box::pin(following));
        self.at_start(starter);
    }

    /// To discover resources and to start and stop following them while the operator runs.
    /// A resource that cannot be followed is noted by `/readyz`, and fails nothing.
    pub fn feeder(&mut self) -> Feeder {
        let (broken, mut reports) = mpsc::unbounded_channel();
        let feeder = Feeder::new(self.client.clone(), self.metrics.clone(), broken);
        self.informers.push(Box::pin(async move { reports.recv().await.map_or(Ok(()), Err) }));
        self.followed.add_feeder(feeder.clone());
        let feeds = feeder.clone();
        self.checks.add_note(&[Probe::Readyz], "feeds", move || feeds.failing());
        feeder
    }

    /// Serves a page of the operator's own, to those who may GET its path. Each piece is made once the visitor has taken
    /// those before, so that a long page needs no more memory than a short one.
    pub fn page<P: Iterator<Item = String> + Send + 'static>(
        &mut self,
        path: &'static str,
        content_type: &'static str,
        read: impl Fn(&Query) -> P + Send + Sync + 'static,
    ) {
        self.pages.push((path, content_type, Box::new(move |query| Box::new(read(query)))));
    }

    /// Runs a task from start to end, on every replica. Workers start once `ready` says synced; until then `/readyz`
    /// fails under this name.
    pub fn run(
        &mut self,
        name: &'static str,
        ready: Receiver<Progress>,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let is_ready = ready.clone();
        let check = move || if is_ready.borrow().synced { Ok(()) } else { Err("not ready yet".to_owned()) };
        self.checks.add(&[Probe::Readyz], name, check);
        self.progress.push(ready);
        self.informers.push(Box::pin(task.map(Ok)));
    }

    /// Calls this after etcd was restored from a backup, once the caches have listed everything anew: what is remembered
    /// of versions and of objects under way belongs to a history that is no more.
    pub fn on_restore(&mut self, forget: impl Fn() + Send + Sync + 'static) {
        self.on_restore.push(Box::new(forget));
    }

    /// Calls this once, when work starts: from then on queues take keys, and this adds those of what is there already.
    /// Informers do so by themselves.
    pub fn at_start(&mut self, starter: impl FnOnce() + Send + 'static) {
        self.starters.push(Box::new(starter));
    }

    /// Syncs the keys of `queue`, `workers` at a time, while this replica leads.
    pub fn work<C: Controller>(&mut self, controller: Arc<C>, queue: &Queue, workers: usize) {
        let (consistency, panics, decisions) =
            (self.consistency(queue), Arc::clone(&self.panics), self.decisions(queue));
        let queue = queue.clone();
        self.workers.push(match self.shadow.clone() {
            None => Box::pin(worker::run(controller, queue, consistency, workers, panics, decisions)),
            Some(shadow) => {
                let controller = Arc::new(shadow.controller(controller, &queue));
                Box::pin(worker::run(controller, queue, consistency, workers, panics, decisions))
            }
        });
    }

    /// Has the operator declare everything.
    fn set_up<O: Operator>(&mut self, own: &O::Flags) {
        O::set_up(own, self);
        if let Some(shadow) = self.shadow.clone() {
            let queues = self.queues.clone();
            // The last one: queues have all that there is by then.
            self.at_start(move || shadow.started(&queues));
        }
    }
}

/// Whether an informer has listed; afterwards a watch that fails for a while is no reason to take a replica away.
fn synced(follow: &Follow) -> Result<(), String> {
    let Follow { progress, health, .. } = follow;
    if progress.borrow().synced {
        return Ok(());
    }
    Err(health.failing().unwrap_or_else(|| "not listed yet".to_owned()))
}

/// Runs the operator until a signal stops it; the process's exit code says how it ended.
pub fn main<O: Operator>() -> ExitCode {
    let flags = match flags::parse::<O::Flags>(O::NAMES.operator, std::env::args_os()) {
        Ok(flags) => flags,
        Err(exit) => return exit.print(),
    };
    // One thread: see docs/decisions/0001-one-thread.md.
    let outcome = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")
        .and_then(|runtime| runtime.block_on(run::<O>(&flags)));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => Exit::of_errors(&[format!("{error:#}")]).print(),
    }
}

async fn run<O: Operator>(flags: &Flags<O::Flags>) -> anyhow::Result<()> {
    let Flags { own, shared } = flags;
    let clock = Clock::system();
    let telemetry = telemetry::start(&telemetry::Options {
        operator: O::NAMES.operator,
        format: shared.logging.logging_format,
        verbosity: shared.logging.v,
        otlp_endpoint: shared.logging.otlp_endpoint(),
        clock: clock.clone(),
    })?;
    tracing::info!(operator = O::NAMES.operator, version = VERSION, kubernetes = KUBERNETES_VERSION, "starting");
    let metrics = Metrics::new(O::NAMES.operator);
    let client = connect::<O>(shared, &metrics).await?;
    let events = Events::start(client.clone(), clock.clone(), metrics.events());
    let mut setup = Setup::new::<O>(shared, client, clock, metrics, &events);
    let client = setup.client.clone();
    setup.checks.add(&[Probe::Livez, Probe::Healthz], "credentials", move || client.check_credentials());
    setup.metrics.watch_panics(O::NAMES.operator, Arc::clone(&setup.panics));
    let elector = elector(O::NAMES, shared, &setup)?;
    setup.term = elector.as_ref().map(Elector::term);
    setup.set_up::<O>(own);
    let pages = std::mem::take(&mut setup.pages);
    let _server = serve(shared, &setup, pages, &telemetry).await?;
    let outcome = work(setup, elector, shared.controller_shutdown_timeout.0).await;
    events.stop(FLUSH_MAX).await;
    telemetry.flush(FLUSH_MAX).await;
    outcome
}

async fn connect<O: Operator>(shared: &SharedFlags, metrics: &Metrics) -> anyhow::Result<Client> {
    let config = client::load_config(shared.kubeconfig(), shared.master()).await?;
    let host = config.cluster_url.authority().map_or("", |authority| authority.as_str());
    let options = ClientOptions {
        user_agent: format!("{}/{VERSION} ({}) kubernetes/{KUBERNETES_VERSION}", O::NAMES.operator, platform()),
        qps: Some(shared.kube_api_qps),
        burst: shared.kube_api_burst,
        observer: Some(metrics.client(host).observer()),
    };
    Ok(Client::new(&config, options)?)
}

/// What this program runs on, in Go's words.
fn platform() -> String {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{}/{architecture}", std::env::consts::OS)
}

/// None where `--leader-elect=false`, and for a shadow, which keeps nobody from working.
fn elector(names: Names, shared: &SharedFlags, setup: &Setup) -> anyhow::Result<Option<Elector>> {
    if !shared.leader.leader_elect || setup.shadow.is_some() {
        return Ok(None);
    }
    let election = Election::new(&shared.leader).context("cannot make an identity for the leader election")?;
    let metrics = setup.metrics.leader(names.operator);
    let (client, recorder) = (setup.client.beside(None)?, setup.recorder().at_any_time());
    let elector = Elector::new(election, client, setup.clock(), recorder, metrics);
    let watchdog = elector.watchdog();
    setup.checks.add(&[Probe::Livez, Probe::Healthz], "leaderElection", move || watchdog.check());
    Ok(Some(elector))
}

async fn serve(
    shared: &SharedFlags,
    setup: &Setup,
    pages: Vec<OwnPage>,
    telemetry: &Telemetry,
) -> anyhow::Result<Option<Server>> {
    let (metrics, decisions) = (setup.metrics.clone(), setup.decisions.clone());
    let site = Site::new(setup.checks.clone(), telemetry.verbosity().clone())
        .page("/metrics", metrics::CONTENT_TYPE, move |_| metrics.to_text())
        .page("/debug/decisions", "application/jsonl", move |query| decisions.to_json_lines(query.value("key")));
    let site = match setup.shadow.clone() {
        Some(shadow) => site.page(SHADOW_PATH, "application/json", move |_| shadow.to_json()),
        None => site,
    };
    let site =
        pages.into_iter().fold(site, |site, (path, content_type, read)| site.page_in_pieces(path, content_type, read));
    Ok(Server::start(&shared.serving, site, &setup.client).await?)
}

/// Follows and leads until a signal comes, another process leads, or a resource cannot be followed any more.
async fn work(setup: Setup, elector: Option<Elector>, shutdown_limit: Duration) -> anyhow::Result<()> {
    let Setup { client, informers, progress, followed, on_restore, queues, starters, workers, .. } = setup;
    let tried = elector.as_ref().map(Elector::tried);
    let mut following: JoinSet<_> =
        informers.into_iter().map(|informer| after_first_try(tried.clone(), informer)).collect();
    following.spawn(client.clone().probe().map(Ok));
    following.spawn(retry_after_returns(client.came_back(), queues.clone()).map(Ok));
    let start_over = StartOver { followed: followed.clone(), on_restore, queues: queues.clone() };
    match &elector {
        Some(elector) => following.spawn(start_over.with_lease(elector.restores()).map(Ok)),
        None => following.spawn(start_over.without_lease(client.clone()).map(Ok)),
    };
    let caches = Caches { client, progress, followed };
    tokio::select! {
        outcome = lead(caches, Work { queues, starters, workers }, elector, shutdown_limit) => outcome,
        error = broken(&mut following) => Err(error),
    }
}

/// Follows once it is known whether this process leads at once: lists that begin after the acquisition have seen all
/// that was written before, and need not be made twice.
async fn after_first_try<T>(tried: Option<Receiver<bool>>, following: impl Future<Output = T>) -> T {
    if let Some(mut tried) = tried {
        // An election that has ended ends the process.
        let _ = tried.wait_for(|tried| *tried).await;
    }
    following.await
}

/// Tries again what failed while the server was away.
async fn retry_after_returns(mut came_back: Receiver<u64>, queues: Vec<Queue>) {
    while came_back.changed().await.is_ok() {
        for queue in &queues {
            queue.retry_all_spread(RETURN_SPREAD);
        }
    }
}

/// What must be up to date before work begins.
struct Caches {
    client: Client,
    progress: Vec<Receiver<Progress>>,
    followed: Followed,
}

impl Caches {
    /// Ends when all are synced and, after an acquisition at this moment, know what the former leader wrote.
    async fn ready(self, acquired: Option<Instant>) {
        all_synced(self.progress).await;
        if let Some(acquired) = acquired {
            self.followed.catch_up(&self.client, acquired).await;
        }
    }
}

/// Ends when a task that follows a resource has panicked: nobody else would ever notice that its cache stands still.
async fn broken(following: &mut JoinSet<anyhow::Result<()>>) -> anyhow::Error {
    let error = loop {
        match following.join_next().await {
            Some(Ok(Ok(()))) => {}
            Some(Ok(Err(error))) => break error,
            Some(Err(error)) => break anyhow!(error),
            None => std::future::pending().await,
        }
    };
    error.context("a resource is not followed any more")
}

/// What sleeps until this replica works.
struct Work {
    queues: Vec<Queue>,
    starters: Vec<Starter>,
    workers: Vec<BoxFuture<'static, ()>>,
}

/// Waits to lead, and works.
async fn lead(
    caches: Caches,
    Work { queues, starters, workers }: Work,
    mut elector: Option<Elector>,
    shutdown_limit: Duration,
) -> anyhow::Result<()> {
    let mut stopped = Box::pin(stop_signal()?);
    let mut acquired = None;
    if let Some(elector) = &mut elector {
        tokio::select! {
            since = elector.acquire() => acquired = Some(since),
            () = &mut stopped => return Ok(()),
        }
    }
    tokio::select! {
        () = caches.ready(acquired) => tracing::info!("caches are synced, workers start"),
        () = &mut stopped => return end(elector).await,
        lost = keep_leading(elector.as_mut()) => return Err(leadership_lost(lost)),
    }
    Queue::start(&queues, || starters.into_iter().for_each(|starter| starter()));
    let working = AbortOnDropHandle::new(tokio::spawn(join_all(workers)));
    tokio::select! {
        () = &mut stopped => {}
        // Somebody else may work already: what is under way is dropped, not finished.
        lost = keep_leading(elector.as_mut()) => return Err(leadership_lost(lost)),
    }
    tracing::info!("stopping");
    for queue in &queues {
        queue.shut_down();
    }
    // The Lease is renewed until the last sync has ended.
    tokio::select! {
        () = ended(working, shutdown_limit) => {}
        lost = keep_leading(elector.as_mut()) => return Err(leadership_lost(lost)),
    }
    end(elector).await
}

/// Waits for the workers, and drops what has not ended in time: the next leader works alone.
async fn ended<T>(mut working: AbortOnDropHandle<T>, limit: Duration) {
    if timeout(limit, &mut working).await.is_err() {
        tracing::warn!(?limit, "workers have not ended in time");
        working.abort();
        // It is over once what it held is dropped.
        let _ = working.await;
    }
}

async fn all_synced(caches: Vec<Receiver<Progress>>) {
    for mut cache in caches {
        // The informers run for as long as the process: their caches are not dropped.
        let _ = cache.wait_for(|progress| progress.synced).await;
    }
}

async fn end(elector: Option<Elector>) -> anyhow::Result<()> {
    if let Some(elector) = elector {
        elector.release().await;
    }
    Ok(())
}

fn leadership_lost(lost: Lost) -> anyhow::Error {
    anyhow!(lost).context("leaderelection lost")
}

async fn keep_leading(elector: Option<&mut Elector>) -> Lost {
    match elector {
        Some(elector) => elector.renew().await,
        None => std::future::pending().await,
    }
}

/// Ends at the first SIGTERM or SIGINT.
fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_has_not_ended_in_time_is_dropped_before_another_may_lead() {
        let held = Arc::new(());
        let holds = Arc::clone(&held);
        let working = AbortOnDropHandle::new(tokio::spawn(async move {
            std::future::pending::<()>().await;
            drop(holds);
        }));
        ended(working, Duration::ZERO).await;
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[tokio::test]
    async fn following_begins_once_the_first_try_to_lead_has_ended() {
        let (elector, tried) = tokio::sync::watch::channel(false);
        let mut following = Box::pin(after_first_try(Some(tried), async { "follows" }));
        assert_eq!((&mut following).now_or_never(), None);
        elector.send_replace(true);
        assert_eq!(following.await, "follows");
        assert_eq!(after_first_try(None, async { "follows" }).now_or_never(), Some("follows"));
    }

    #[tokio::test]
    async fn a_panic_of_what_follows_a_resource_is_noticed_and_an_orderly_end_is_none() {
        let mut following = JoinSet::new();
        following.spawn(async { Ok(()) });
        following.spawn(std::future::pending());
        following.spawn(async { panic!("on purpose") });
        let error = format!("{:#}", broken(&mut following).await);
        assert!(error.starts_with("a resource is not followed any more: ") && error.contains("on purpose"), "{error}");
        assert_eq!(following.len(), 1, "the others go on until the process ends");
    }
}
