//! An operator's `main`: flags, client, health, informers, leadership, workers, and an orderly end.
//!
//! Every replica keeps its caches warm; only the leader works. Left out: what is watched and synced, which the
//! operator's `controller.rs` says in [`Operator::set_up`].

#[cfg(any(test, feature = "testing"))]
mod alone;
mod restore;
mod setup;

use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch::Receiver;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::api::explain::{SHADOW_PATH, STATUS_PATH};
pub use crate::api::facts::Names;
use crate::api::json;
use crate::following::cache::Progress;
use crate::following::followed::Followed;
use crate::process::explain::Explainer;
use crate::process::flags::{self, Exit, Flags, SharedFlags};
use crate::process::leader::{Election, Elector, Lost};
use crate::process::metrics::{self, Metrics};
use crate::process::serving::{JSON, Probe, Server, Site};
use crate::process::telemetry::{self, Telemetry};
use crate::transport::client::{self, Access, Client, ClientOptions, RETURN_SPREAD};
use crate::transport::clock::Clock;
use crate::transport::identity::{KUBERNETES_VERSION, VERSION};
use crate::working::events::Events;
use crate::working::queue::Queue;
#[cfg(any(test, feature = "testing"))]
pub(crate) use alone::{Alone, alone};
use restore::StartOver;
pub use setup::Setup;
use setup::Starter;

/// How many sockets are looked at before tasks go on. Few are open, and there is room for the answers from the start.
const IO_EVENTS_AT_ONCE: usize = 64;
/// How long the last events and traces may take to leave.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// One operator, as a process sees it.
pub trait Operator {
    /// Its names.
    const NAMES: Names;
    /// The flags of this operator alone.
    type Flags: clap::Args;

    /// Declares informers, queues and workers; starts nothing.
    fn set_up(flags: &Self::Flags, setup: &mut Setup);
}

/// Runs the operator until a signal stops it; the process's exit code says how it ended.
pub fn main<O: Operator>() -> ExitCode {
    let flags = match flags::parse::<O::Flags>(O::NAMES.operator, std::env::args_os()) {
        Ok(flags) => flags,
        Err(exit) => return exit.print(),
    };
    match in_runtime::<O>(&flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => Exit::of_errors(&[format!("{error:#}")]).print(),
    }
}

/// Read the configuration, prepare, and work.
fn in_runtime<O: Operator>(flags: &Flags<O::Flags>) -> anyhow::Result<()> {
    // One thread: see docs/decisions/0001-one-thread.md.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_io_events_per_tick(IO_EVENTS_AT_ONCE)
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        let access = client::load_config(flags.shared.kubeconfig(), flags.shared.master()).await?;
        prepare::<O>(flags, &access).await?.run().await
    })
}

/// Everything that a process has before it follows and leads.
struct Process {
    setup: Setup,
    elector: Option<Elector>,
    server: Option<Server>,
    events: Events,
    telemetry: Telemetry,
}

async fn prepare<O: Operator>(flags: &Flags<O::Flags>, access: &Access) -> anyhow::Result<Process> {
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
    let client = connect::<O>(shared, access, &metrics)?;
    let events = Events::start(client.clone(), clock.clone(), metrics.events());
    let mut setup = Setup::new::<O>(shared, client, clock, metrics, &events);
    let client = setup.client.clone();
    setup.checks.add(&[Probe::Livez, Probe::Healthz], "credentials", move || client.check_credentials());
    setup.metrics.watch_panics(O::NAMES.operator, Arc::clone(&setup.panics));
    let elector = elector(O::NAMES, shared, &setup)?;
    setup.term = elector.as_ref().map(Elector::term);
    setup.set_up::<O>(own);
    let identity = elector.as_ref().map(|elector| elector.identity().to_owned()).unwrap_or_default();
    let server = serve::<O>(shared, &mut setup, identity, &telemetry).await?;
    Ok(Process { setup, elector, server, events, telemetry })
}

impl Process {
    /// Works until its end, and sends the events and traces that are left.
    async fn run(self) -> anyhow::Result<()> {
        let Self { setup, elector, server: _server, events, telemetry } = self;
        let outcome = work(setup, elector).await;
        events.stop(FLUSH_MAX).await;
        telemetry.flush(FLUSH_MAX).await;
        outcome
    }
}

fn connect<O: Operator>(shared: &SharedFlags, access: &Access, metrics: &Metrics) -> anyhow::Result<Client> {
    let Access { config, ca_file } = access;
    let host = config.cluster_url.authority().map_or("", |authority| authority.as_str());
    let options = ClientOptions {
        user_agent: format!("{}/{VERSION} ({}) kubernetes/{KUBERNETES_VERSION}", O::NAMES.operator, platform()),
        qps: Some(shared.kube_api_qps),
        burst: shared.kube_api_burst,
        observer: Some(metrics.client(host).observer()),
        ca_file: ca_file.clone(),
    };
    Ok(Client::new(config, options)?)
}

/// The operating system and the architecture, in Go's words.
fn platform() -> String {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{}/{architecture}", std::env::consts::OS)
}

/// `None` with `--leader-elect=false`, and for a shadow, which never works.
fn elector(names: Names, shared: &SharedFlags, setup: &Setup) -> anyhow::Result<Option<Elector>> {
    if !shared.leader.leader_elect || setup.shadow.is_some() {
        return Ok(None);
    }
    let election = Election::new(&shared.leader).context("cannot make an identity for the leader election")?;
    let metrics = setup.metrics.leader(names.operator);
    let (client, recorder) = (setup.client.ahead(), setup.recorder().at_any_time());
    let elector = Elector::new(election, client, setup.clock(), recorder, metrics);
    let watchdog = elector.watchdog();
    setup.checks.add(&[Probe::Livez, Probe::Healthz], "leaderElection", move || watchdog.check());
    Ok(Some(elector))
}

async fn serve<O: Operator>(
    shared: &SharedFlags,
    setup: &mut Setup,
    identity: String,
    telemetry: &Telemetry,
) -> anyhow::Result<Option<Server>> {
    let explainer = Arc::new(explainer::<O>(setup, identity));
    let (metrics, decisions, asked) = (setup.metrics.clone(), setup.decisions.clone(), Arc::clone(&explainer));
    let site = Site::new(setup.checks.clone(), telemetry.verbosity().clone())
        .page("/metrics", metrics::CONTENT_TYPE, move |_| metrics.to_text())
        .page("/debug/decisions", "application/jsonl", move |query| decisions.to_json_lines(query.value("key")))
        .page(STATUS_PATH, JSON, move |_| String::from_utf8_lossy(&json(&asked.status())).into_owned() + "\n")
        .why(move |object| explainer.explain(object));
    let site = match setup.shadow.clone() {
        Some(shadow) => site.page(SHADOW_PATH, JSON, move |_| shadow.to_json()),
        None => site,
    };
    let pages = std::mem::take(&mut setup.pages).into_iter();
    let site = pages.fold(site, |site, (path, content_type, read)| site.page_in_pieces(path, content_type, read));
    Ok(Server::start(&shared.serving, site, &setup.client).await?)
}

/// Ends the declarations, and answers requests for explanations from now on.
fn explainer<O: Operator>(setup: &mut Setup, identity: String) -> Explainer {
    Explainer {
        names: O::NAMES,
        mode: setup.flags.mode,
        term: setup.term.clone(),
        identity,
        clock: setup.clock(),
        followed: setup.followed.clone(),
        explainers: std::mem::take(&mut setup.explainers),
    }
}

/// Follows and leads until a signal comes, another process leads, or a resource cannot be followed any more.
async fn work(setup: Setup, elector: Option<Elector>) -> anyhow::Result<()> {
    let Setup { flags, client, informers, progress, followed, on_restore, queues, starters, workers, .. } = setup;
    let shutdown_limit = flags.controller_shutdown_timeout.0;
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
        // On the heap: what passes this future on would otherwise hold all of it by value, and be large.
        outcome = lead(caches, Work { queues, starters, workers }, elector, shutdown_limit) => outcome,
        error = broken(&mut following) => Err(error),
    }
}

/// Starts the informers once the first try to acquire has ended. Lists that begin after an acquisition include all
/// earlier writes, so they need not be made twice.
async fn after_first_try<T>(tried: Option<Receiver<bool>>, following: impl Future<Output = T>) -> T {
    if let Some(mut tried) = tried {
        // An election that has ended ends the process.
        let _ = tried.wait_for(|tried| *tried).await;
    }
    following.await
}

/// Retries failed keys when the server answers again.
async fn retry_after_returns(mut came_back: Receiver<u64>, queues: Vec<Queue>) {
    while came_back.changed().await.is_ok() {
        for queue in &queues {
            queue.retry_all_spread(RETURN_SPREAD);
        }
    }
}

/// The caches that must be up to date before work begins.
struct Caches {
    client: Client,
    progress: Vec<Receiver<Progress>>,
    followed: Followed,
}

impl Caches {
    /// Ends when all caches are synced and, after an acquisition at this moment, include the former leader's writes.
    async fn ready(self, acquired: Option<Instant>) {
        all_synced(self.progress).await;
        if let Some(acquired) = acquired {
            self.followed.catch_up(&self.client, acquired).await;
        }
    }
}

/// Ends when the task of an informer has panicked; otherwise its cache would stand still unnoticed.
async fn broken(following: &mut JoinSet<anyhow::Result<()>>) -> anyhow::Error {
    let error = loop {
        match following.join_next().await {
            Some(Ok(Ok(()))) => {}
            Some(Ok(Err(error))) => break error,
            Some(Err(error)) => break anyhow!(error),
            None => std::future::pending().await,
        }
    };
    error.context("informer stopped")
}

/// The parts that sleep until this replica works.
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
    let mut stopped = pin!(stop_signal()?);
    let mut acquired = None;
    if let Some(elector) = &mut elector {
        tokio::select! {
            since = elector.acquire() => acquired = Some(since),
            () = &mut stopped => return Ok(()),
        }
    }
    tokio::select! {
        () = caches.ready(acquired) => tracing::info!("caches are synced; starting workers"),
        () = &mut stopped => return end(elector).await,
        lost = keep_leading(elector.as_mut()) => return Err(leadership_lost(lost)),
    }
    Queue::start(&queues, || starters.into_iter().for_each(|starter| starter()));
    let working = AbortOnDropHandle::new(tokio::spawn(join_all(workers)));
    tokio::select! {
        () = &mut stopped => {}
        // Another replica may work already: running syncs are dropped, not finished.
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

/// Waits for the workers, and drops syncs that do not end in time, so that the next leader works alone.
async fn ended<T>(mut working: AbortOnDropHandle<T>, limit: Duration) {
    if timeout(limit, &mut working).await.is_err() {
        tracing::warn!(?limit, "workers did not stop in time");
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
        assert!(error.starts_with("informer stopped: ") && error.contains("on purpose"), "{error}");
        assert_eq!(following.len(), 1, "the others go on until the process ends");
    }
}
