//! One controller, from its declarations to its end: it follows, waits to lead, and works.
//!
//! Every replica keeps its caches warm; only the leader works. Left out: serving, and restarting a failed controller.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use tokio::sync::watch::Receiver;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::restore::StartOver;
use super::setup::{Setup, Starter};
use crate::api::facts::Names;
use crate::following::cache::Progress;
use crate::following::followed::Followed;
use crate::following::informer::Watches;
use crate::following::reflector::hub::Hub;
use crate::process::explain::Explainer;
use crate::process::flags::SharedFlags;
use crate::process::leader::{Election, Elector, Lost, Term};
use crate::process::metrics::Metrics;
use crate::process::serving::{Checks, Page, Probe};
use crate::process::shadow::Shadow;
use crate::transport::client::{Client, RETURN_SPREAD};
use crate::transport::clock::Clock;
use crate::working::decisions::Decisions;
use crate::working::events::Events;
use crate::working::queue::Queue;

/// How long the last events may take to leave.
pub(super) const FLUSH_MAX: Duration = Duration::from_secs(1);

pub(super) struct Surroundings {
    pub(super) client: Client,
    pub(super) clock: Clock,
    pub(super) metrics: Metrics,
    pub(super) common: Option<Common>,
    /// Where a process of several controllers shares their watches.
    pub(super) hub: Option<Hub>,
}

/// The election of a process of several controllers, as one of them sees it.
///
/// Each of them also takes the Lease of its operator, in the name of the common one: a process that acquires the common
/// Lease after a crash goes on with these at once. See docs/decisions/0014-leases-of-one-process.md.
#[derive(Clone)]
pub(super) struct Common {
    /// Namespace and name of the common Lease, which holds those of the operators.
    pub(super) holder: String,
    pub(super) term: Term,
    /// Whether the first try to acquire has ended.
    pub(super) tried: Receiver<bool>,
    pub(super) acquired: Receiver<bool>,
}

impl Common {
    async fn acquire(&self) {
        if self.acquired.clone().wait_for(|acquired| *acquired).await.is_err() {
            // The process ends.
            std::future::pending::<()>().await;
        }
    }
}

/// Answers and health of one controller, for the process's server.
pub(super) struct Face {
    pub(super) checks: Checks,
    pub(super) decisions: Decisions,
    pub(super) explainer: Explainer,
    pub(super) shadow: Option<Shadow>,
    /// Its own pages, by path.
    pub(super) pages: Vec<(&'static str, Arc<Page>)>,
}

impl Face {
    /// Ends the declarations, and answers requests from now on.
    pub(super) fn of(names: Names, setup: &mut Setup, identity: String) -> Self {
        let explainer = Explainer {
            names,
            mode: setup.flags.mode,
            term: setup.term.clone(),
            identity,
            clock: setup.clock(),
            followed: setup.followed.clone(),
            explainers: std::mem::take(&mut setup.explainers),
        };
        Self {
            checks: setup.checks.clone(),
            decisions: setup.decisions.clone(),
            explainer,
            shadow: setup.shadow.clone(),
            pages: std::mem::take(&mut setup.pages),
        }
    }
}

/// A controller that has declared everything and not begun.
pub(super) struct Controller {
    setup: Setup,
    elector: Option<Elector>,
    common: Option<Common>,
    events: Events,
}

impl Controller {
    pub(super) fn prepare(
        names: Names,
        flags: &SharedFlags,
        surroundings: Surroundings,
        declare: impl FnOnce(&mut Setup),
    ) -> anyhow::Result<(Self, Face)> {
        let Surroundings { client, clock, metrics, common, hub } = surroundings;
        // Nothing is written, the operator's own Lease included, while another process may hold the common Lease.
        let client = match &common {
            Some(common) => client.behind(common.term.clone()),
            None => client,
        };
        let events = Events::start(client.clone(), clock.clone(), metrics.events());
        let mut setup = Setup::new(names, flags, client, clock, metrics, &events);
        let client = setup.client.clone();
        if let Some(hub) = hub {
            setup.watches = Watches::shared(client.clone(), hub)?;
        }
        setup.checks.add(&[Probe::Livez, Probe::Healthz], "credentials", move || client.check_credentials());
        setup.metrics.watch_panics(names.operator, Arc::clone(&setup.panics));
        let elector = elector(names, flags, &setup, common.as_ref())?;
        setup.term = elector.as_ref().map(Elector::term);
        setup.declare(declare);
        let identity = elector.as_ref().map(|elector| elector.identity().to_owned()).unwrap_or_default();
        let face = Face::of(names, &mut setup, identity);
        Ok((Self { setup, elector, common, events }, face))
    }

    /// Follows and leads until it is stopped, another process leads, or a resource cannot be followed any more; sends the
    /// events that are left.
    pub(super) async fn run(self, stop: &CancellationToken) -> anyhow::Result<()> {
        let Self { setup, elector, common, events } = self;
        let outcome = work(setup, elector, common, stop).await;
        events.stop(FLUSH_MAX).await;
        outcome
    }
}

/// `None` with `--leader-elect=false`, and for a shadow, which never works.
fn elector(
    names: Names,
    flags: &SharedFlags,
    setup: &Setup,
    common: Option<&Common>,
) -> anyhow::Result<Option<Elector>> {
    if !flags.leader.leader_elect || setup.shadow.is_some() {
        return Ok(None);
    }
    let mut election = Election::new(&flags.leader).context("cannot make an identity for the leader election")?;
    if let Some(common) = common {
        election.identity.clone_from(&common.holder);
    }
    let metrics = setup.metrics.leader(names.operator);
    let (client, recorder) = (setup.client.ahead(), setup.recorder().at_any_time());
    let elector = Elector::new(election, client, setup.clock(), recorder, metrics);
    let watchdog = elector.watchdog();
    setup.checks.add(&[Probe::Livez, Probe::Healthz], "leaderElection", move || watchdog.check());
    Ok(Some(elector))
}

async fn work(
    setup: Setup,
    elector: Option<Elector>,
    common: Option<Common>,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let Setup {
        flags,
        client,
        metrics,
        informers,
        progress,
        followed,
        on_restore,
        queues,
        syncing,
        starters,
        workers,
        ..
    } = setup;
    let shutdown_limit = flags.controller_shutdown_timeout.0;
    let tried = elector.as_ref().map(Elector::tried);
    let mut following: JoinSet<_> =
        informers.into_iter().map(|informer| after_first_try(common.clone(), tried.clone(), informer)).collect();
    following.spawn(client.clone().probe().map(Ok));
    following.spawn(metrics.measure_lag().map(Ok));
    following.spawn(retry_after_returns(client.came_back(), queues.clone()).map(Ok));
    let start_over = StartOver { followed: followed.clone(), on_restore, queues: queues.clone(), syncing };
    let restores = elector.as_ref().map(Elector::restores);
    following.spawn(start_over.run(client.clone(), restores).map(Ok));
    let caches = Caches { client, progress, followed };
    tokio::select! {
        // On the heap: what passes this future on would otherwise hold all of it by value, and be large.
        outcome = lead(caches, Work { queues, starters, workers }, elector, common, (stop, shutdown_limit)) => outcome,
        error = broken(&mut following) => Err(error),
    }
}

/// Starts the informers once the first try to acquire has ended. Lists that begin after an acquisition include all
/// earlier writes, so they need not be made twice. The operator's own Lease is tried once the common one is held.
async fn after_first_try<T>(
    common: Option<Common>,
    tried: Option<Receiver<bool>>,
    following: impl Future<Output = T>,
) -> T {
    if let Some(mut common) = common {
        let _ = common.tried.wait_for(|tried| *tried).await;
        if common.term.is_over() {
            return following.await;
        }
    }
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
pub(super) async fn broken(following: &mut JoinSet<anyhow::Result<()>>) -> anyhow::Error {
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

/// Waits to lead, and works until it is stopped.
async fn lead(
    caches: Caches,
    Work { queues, starters, workers }: Work,
    mut elector: Option<Elector>,
    common: Option<Common>,
    (stop, shutdown_limit): (&CancellationToken, Duration),
) -> anyhow::Result<()> {
    let mut stopped = pin!(stop.cancelled());
    let mut acquired = None;
    if let Some(common) = &common {
        tokio::select! {
            () = common.acquire() => {}
            () = &mut stopped => return Ok(()),
        }
    }
    if let Some(elector) = &mut elector {
        tokio::select! {
            since = elector.acquire() => acquired = Some(since),
            () = &mut stopped => return Ok(()),
        }
    }
    tokio::select! {
        () = caches.ready(acquired) => tracing::info!("caches are synced; starting workers"),
        () = &mut stopped => return end(elector, common).await,
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
    end(elector, common).await
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

pub(super) async fn all_synced(caches: Vec<Receiver<Progress>>) {
    for mut cache in caches {
        // The informers run for as long as the process: their caches are not dropped.
        let _ = cache.wait_for(|progress| progress.synced).await;
    }
}

async fn end(elector: Option<Elector>, common: Option<Common>) -> anyhow::Result<()> {
    // The next leader of the common Lease goes on with the operator's.
    let is_lost = common.is_some_and(|common| common.term.is_over());
    if let Some(elector) = elector.filter(|_| !is_lost) {
        elector.release().await;
    }
    Ok(())
}

pub(super) fn leadership_lost(lost: Lost) -> anyhow::Error {
    anyhow!(lost).context("leaderelection lost")
}

async fn keep_leading(elector: Option<&mut Elector>) -> Lost {
    match elector {
        Some(elector) => elector.renew().await,
        None => std::future::pending().await,
    }
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
        let mut following = Box::pin(after_first_try(None, Some(tried), async { "follows" }));
        assert_eq!((&mut following).now_or_never(), None);
        elector.send_replace(true);
        assert_eq!(following.await, "follows");
        assert_eq!(after_first_try(None, None, async { "follows" }).now_or_never(), Some("follows"));
    }

    #[tokio::test]
    async fn a_standby_of_several_follows_although_no_operators_lease_was_tried() {
        let (common, tried) = tokio::sync::watch::channel(false);
        let (_acquire, acquired) = tokio::sync::watch::channel(false);
        let (_own, own) = tokio::sync::watch::channel(false);
        let common_of = |term| Common { holder: String::new(), term, tried: tried.clone(), acquired: acquired.clone() };
        let mut following =
            Box::pin(after_first_try(Some(common_of(Term::of_test(None))), Some(own.clone()), async { "follows" }));
        assert_eq!((&mut following).now_or_never(), None);
        common.send_replace(true);
        assert_eq!(following.await, "follows");
        let leads = common_of(Term::of_test(Some(Instant::now())));
        assert_eq!(after_first_try(Some(leads), Some(own), async { "follows" }).now_or_never(), None);
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
