//! Leader election on a Lease, as in client-go: one replica works, the others keep their caches warm.
//!
//! A candidate counts a holder's silence on its own monotonic clock, from the last change it saw, so clocks may differ
//! and jump. Every update carries the resourceVersion it was decided on. Differences from upstream:
//! - A candidate watches the Lease and takes a released one at once, not at its next poll.
//! - A leader that sees another holder, or a gap in its own holding, stops at its next renewal, not after the renew
//!   deadline.
//! - A leader that slept through its Lease sends no write before it has renewed the Lease ([`Term`]).
//! - A falling version of the Lease shows that etcd was restored ([`Elector::restores`]).
//! - An error that repeats is logged once.
//! - The leader renews every 5 s, when the wall clock shows full 5 s: see docs/decisions/0010-lease-renewals.md.
//!
//! Left out: coordinated leader election (alpha), locks other than Leases, and fencing by the apiserver: two leaders
//! are possible while a process is stopped between checking its term and writing.
//!
//! Upstream: staging/src/k8s.io/client-go/tools/leaderelection.

mod lease;
mod times;
mod watch;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use tokio::sync::watch::{Receiver, Sender};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use crate::api::object::{Key, ObjectReference, ResourceVersion};
use crate::api::resource::LEASES;
use crate::process::flags::{JITTER_FACTOR, LeaderFlags};
use crate::process::metrics::LeaderMetrics;
use crate::transport::api_error::ApiError;
use crate::transport::client::{Accept, Call, Client, Gate};
use crate::transport::clock::{Clock, jitter};
use crate::working::events::{EventType, Recorder};
use lease::{Decision, Holding, Lease, Observed, Record, create_body, decide, held, is_restored, released};
use watch::Watched;

/// How long after its Lease expired a leader counts as stuck: kube-controller-manager's.
const WATCHDOG_GRACE: Duration = Duration::from_secs(20);

const REASON: &str = "LeaderElection";

/// The candidate, the Lease, and the times of an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Election {
    pub lease: Key,
    pub identity: String,
    /// How long a Lease lasts without a renewal, in whole seconds.
    pub lease_duration: Duration,
    /// How long the leader tries to renew before it gives up.
    pub renew_deadline: Duration,
    /// How long to wait between two tries.
    pub retry_period: Duration,
}

impl Election {
    /// The election of the flags, with a new identity: host name and random UUID.
    ///
    /// # Errors
    /// When the kernel provides neither.
    pub fn new(flags: &LeaderFlags) -> io::Result<Self> {
        let read = |path| std::fs::read_to_string(path).map(|text| text.trim().to_owned());
        let (host, uuid) = (read("/proc/sys/kernel/hostname")?, read("/proc/sys/kernel/random/uuid")?);
        Ok(Self {
            lease: Key::new(&flags.leader_elect_resource_namespace, &flags.leader_elect_resource_name),
            identity: format!("{host}_{uuid}"),
            lease_duration: flags.leader_elect_lease_duration.0,
            renew_deadline: flags.leader_elect_renew_deadline.0,
            retry_period: flags.leader_elect_retry_period.0,
        })
    }
}

/// The reason why this process lost the lead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    #[error("lease {lease} is held by {holder}")]
    Taken { lease: Key, holder: String },
    /// The Lease was released, deleted, or held for a while by another process, which may have written.
    #[error("lease {lease} was not held all the time")]
    Interrupted { lease: Key },
    /// It could not be renewed in time.
    #[error("lease {lease} could not be renewed within {limit:?}")]
    Expired { lease: Key, limit: Duration },
}

/// Health check that fails once a leader has long neither renewed its Lease nor exited. The process is stuck then, and
/// the kubelet should restart it. A candidate is always healthy.
///
/// Upstream: `HealthzAdaptor`, staging/src/k8s.io/client-go/tools/leaderelection/healthzadaptor.go.
#[derive(Clone)]
pub struct Watchdog {
    lease: Key,
    limit: Duration,
    /// When the last renewal began, while this process leads.
    renewed: Arc<Mutex<Option<Instant>>>,
}

impl Watchdog {
    /// The result for `/healthz`.
    pub fn check(&self) -> Result<(), String> {
        match self.renewed() {
            Some(at) if at.elapsed() > self.limit => {
                Err(format!("failed election to renew leadership on lease {}", self.lease.name()))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn renewed(&self) -> Option<Instant> {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, renewed: Option<Instant>) {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = renewed;
    }
}

/// The time in which the leader may write: until its Lease has expired by its own clock. A process that was stopped for
/// longer finds out at its next write, before its next renewal.
#[derive(Clone)]
pub struct Term {
    lease_duration: Duration,
    renewed: Arc<Mutex<Option<Instant>>>,
}

impl Term {
    /// Whether this process must not write: it does not lead, or its Lease has expired.
    pub fn is_over(&self) -> bool {
        let renewed = *self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        renewed.is_none_or(|at| at.elapsed() >= self.lease_duration)
    }

    #[cfg(test)]
    pub(crate) fn of_test(renewed: Option<Instant>) -> Self {
        Self { lease_duration: Duration::from_secs(15), renewed: Arc::new(Mutex::new(renewed)) }
    }
}

/// Refuses writes that another replica may be doing too, however long they had to wait.
impl Gate for Term {
    fn check(&self, call: &Call<'_>) -> Result<(), ApiError> {
        if call.method != Method::GET && self.is_over() { Err(ApiError::NotLeading) } else { Ok(()) }
    }
}

pub struct Elector {
    election: Election,
    client: Client,
    clock: Clock,
    recorder: Recorder,
    metrics: LeaderMetrics,
    watchdog: Watchdog,
    /// The Lease as last read or written.
    lease: Option<Lease>,
    observed: Option<Observed>,
    /// The term, while this process holds the Lease.
    holding: Option<Holding>,
    /// The newest version of the Lease, kept after a deletion.
    newest_version: ResourceVersion,
    restores: Sender<u64>,
    /// Whether the first try to acquire has ended, with or without success.
    tried: Sender<bool>,
    /// The last logged error, while it persists.
    problem: Option<String>,
}

/// How one try ended.
enum Attempt {
    Leads,
    /// The identity that holds the Lease; `""` if a renewal found a gap in this process's own holding.
    HeldBy(String),
    Failed,
}

impl Elector {
    pub fn new(election: Election, client: Client, clock: Clock, recorder: Recorder, metrics: LeaderMetrics) -> Self {
        let watchdog = Watchdog {
            lease: election.lease.clone(),
            limit: election.lease_duration + WATCHDOG_GRACE,
            renewed: Arc::default(),
        };
        metrics.leads(false);
        Self {
            election,
            client,
            clock,
            recorder,
            metrics,
            watchdog,
            lease: None,
            observed: None,
            holding: None,
            newest_version: ResourceVersion::default(),
            restores: Sender::default(),
            tried: Sender::default(),
            problem: None,
        }
    }

    /// Count of restores of etcd that the Lease has shown: the caches hold another history then.
    pub fn restores(&self) -> Receiver<u64> {
        self.restores.subscribe()
    }

    /// For `/healthz`, under the name `leaderElection`.
    pub fn watchdog(&self) -> Watchdog {
        self.watchdog.clone()
    }

    /// For clients that write while this process leads.
    pub fn term(&self) -> Term {
        // Other candidates count the whole seconds in the Lease.
        let lease_duration = Duration::from_secs(self.election.lease_duration.as_secs());
        Term { lease_duration, renewed: Arc::clone(&self.watchdog.renewed) }
    }

    pub fn identity(&self) -> &str {
        &self.election.identity
    }

    pub fn lease(&self) -> &Key {
        &self.election.lease
    }

    /// Whether the first try to acquire has ended.
    pub fn tried(&self) -> Receiver<bool> {
        self.tried.subscribe()
    }

    /// Wait until this process leads, and return since when. Safe to drop at any time.
    pub async fn acquire(&mut self) -> Instant {
        tracing::info!(lock = %self.election.lease, "attempting to acquire leader lease");
        let acquired = loop {
            let attempt = self.attempt().await;
            // A task that waits for the first try begins later than this.
            let ended = Instant::now();
            self.tried.send_replace(true);
            let holder = match attempt {
                Attempt::Leads => break ended,
                Attempt::HeldBy(holder) => holder,
                Attempt::Failed => String::new(),
            };
            tracing::debug!(lock = %self.election.lease, holder, "failed to acquire lease");
            self.wait_for_a_chance().await;
        };
        self.holding = self.lease.as_ref().map(Holding::of);
        self.metrics.leads(true);
        self.record("became leader");
        tracing::info!(lock = %self.election.lease, identity = self.election.identity, "successfully acquired lease");
        acquired
    }

    /// Renew the Lease while this process leads, and return why it lost the lead. Safe to drop at any time; call
    /// [`Self::release`] then.
    pub async fn renew(&mut self) -> Lost {
        let lost = loop {
            let now = Instant::now();
            let since = self.watchdog.renewed().unwrap_or(now);
            sleep_until(self.election.next_renewal(since, now, self.clock.now())).await;
            let end = (since + self.election.renew_period()).max(Instant::now()) + self.election.renew_limit();
            let renewed = tokio::select! {
                biased;
                // Polled first: a try that began now would renew the Lease of a leader that has given up.
                () = sleep_until(end) => Err(()),
                renewed = self.renew_once() => Ok(renewed),
            };
            let lease = self.election.lease.clone();
            match renewed {
                Ok(None) => {}
                Ok(Some(holder)) if holder.is_empty() => break Lost::Interrupted { lease },
                Ok(Some(holder)) => break Lost::Taken { lease, holder },
                Err(()) => break Lost::Expired { lease, limit: self.election.renew_deadline },
            }
        };
        self.stop_leading();
        lost
    }

    /// Try until the Lease is renewed, or another process holds it: see [`Attempt::HeldBy`].
    async fn renew_once(&mut self) -> Option<String> {
        loop {
            let next = Instant::now() + self.election.retry_period;
            match self.attempt().await {
                Attempt::Leads => return None,
                Attempt::HeldBy(holder) => return Some(holder),
                // A try without an answer has already waited.
                Attempt::Failed => sleep_until(next).await,
            }
        }
    }

    /// Release the Lease if it is held, so that another candidate takes it at once. End all work before.
    pub async fn release(mut self) {
        if !self.leads() {
            return;
        }
        // The next holder may write before the answer arrives.
        self.watchdog.set(None);
        let limit = self.election.renew_deadline;
        match timeout(limit, self.try_release()).await {
            Ok(Ok(())) => tracing::info!(lock = %self.election.lease, "released lease"),
            Ok(Err(error)) => tracing::warn!(lock = %self.election.lease, %error, "failed to release lease"),
            Err(_) => tracing::warn!(lock = %self.election.lease, ?limit, "failed to release lease in time"),
        }
        self.stop_leading();
    }

    async fn try_release(&mut self) -> Result<(), ApiError> {
        match self.release_once().await {
            // A renewal in flight may have been stored in between.
            Err(error) if error.is_conflict() => self.release_once().await,
            outcome => outcome,
        }
    }

    async fn release_once(&mut self) -> Result<(), ApiError> {
        let lease: Lease = self.client.get(&self.path()).await?;
        if lease.spec.holder_identity == self.election.identity {
            self.update(&lease, released(&lease.spec, self.clock.now())).await?;
        }
        Ok(())
    }

    fn leads(&self) -> bool {
        self.observed.as_ref().is_some_and(|observed| observed.record.holder_identity == self.election.identity)
    }

    fn stop_leading(&mut self) {
        self.metrics.leads(false);
        self.watchdog.set(None);
        self.record("stopped leading");
    }

    fn record(&self, what: &str) {
        let Some(meta) = self.lease.as_ref().map(Lease::meta) else { return };
        let about =
            ObjectReference { resource: LEASES, key: meta.key, uid: meta.uid, resource_version: meta.resource_version };
        self.recorder.event(&about, EventType::Normal, REASON, format!("{} {what}", self.election.identity));
    }

    fn path(&self) -> String {
        LEASES.object_path(self.election.lease.namespace(), self.election.lease.name(), "")
    }

    async fn attempt(&mut self) -> Attempt {
        let limit = self.election.answer_limit();
        // Other candidates count from when they see the renewal, which is later.
        let begun = Instant::now();
        let outcome = match timeout(limit, self.try_acquire_or_renew()).await {
            Ok(outcome) => outcome.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer within {limit:?}")),
        };
        match outcome {
            Ok(None) => {
                self.note(None);
                self.watchdog.set(Some(begun));
                Attempt::Leads
            }
            Ok(Some(holder)) => {
                self.note(None);
                Attempt::HeldBy(holder)
            }
            Err(problem) => {
                self.note(Some(problem));
                Attempt::Failed
            }
        }
    }

    fn note(&mut self, problem: Option<String>) {
        if problem != self.problem {
            let lock = &self.election.lease;
            if let Some(error) = &problem {
                tracing::error!(%lock, error, "cannot read or write lease");
            } else {
                tracing::info!(%lock, "lease is accessible again");
                self.client.note_return();
            }
            self.problem = problem;
        }
    }

    /// Return the holder if it is another process: see [`Attempt::HeldBy`]. Upstream: `tryAcquireOrRenew`.
    async fn try_acquire_or_renew(&mut self) -> Result<Option<String>, ApiError> {
        let now = Instant::now().into_std();
        let is_valid = self.observed.as_ref().is_some_and(|observed| observed.valid_until() > now);
        if let Some(lease) = self.lease.clone().filter(|_| self.leads() && is_valid) {
            let record = self.held(Some(&lease.spec));
            match self.update(&lease, record).await {
                Ok(()) => return Ok(None),
                Err(error) => {
                    tracing::debug!(lock = %self.election.lease, %error, "cannot renew lease without reading it; reading it first");
                }
            }
        }
        let lease: Lease = match self.client.get(&self.path()).await {
            Ok(lease) => lease,
            Err(error) if error.is_not_found() && self.holding.is_some() => return Ok(Some(String::new())),
            Err(error) if error.is_not_found() => {
                self.create().await?;
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        self.observe(lease.clone());
        if self.holding.is_some_and(|holding| !holding.goes_on(&lease, &self.election.identity)) {
            let holder = lease.spec.holder_identity;
            return Ok(Some(if holder == self.election.identity { String::new() } else { holder }));
        }
        match decide(self.observed.as_ref(), &self.election.identity, Instant::now().into_std()) {
            Decision::Wait(_) => return Ok(Some(lease.spec.holder_identity)),
            Decision::Renew => self.metrics.slow_path(),
            Decision::Create | Decision::Acquire => {}
        }
        let record = self.held(Some(&lease.spec));
        self.update(&lease, record).await?;
        Ok(None)
    }

    fn held(&self, known: Option<&Record>) -> Record {
        held(known, &self.election.identity, self.election.lease_duration.as_secs(), self.clock.now())
    }

    async fn create(&mut self) -> Result<(), ApiError> {
        let record = self.held(None);
        let path = LEASES.collection_path(self.election.lease.namespace());
        let lease: Lease =
            self.client.create(&path, Accept::Object, create_body(&self.election.lease, &record)).await?;
        self.observe(lease);
        Ok(())
    }

    async fn update(&mut self, lease: &Lease, record: Record) -> Result<(), ApiError> {
        let lease: Lease = self.client.replace(&self.path(), Accept::Object, lease.update_body(&record)).await?;
        self.observe(lease);
        Ok(())
    }

    fn observe(&mut self, lease: Lease) {
        let now = Instant::now().into_std();
        let version = lease.meta().resource_version;
        if is_restored(self.newest_version, version) {
            let (lock, newest) = (&self.election.lease, self.newest_version);
            tracing::warn!(%lock, %version, %newest, "lease version fell: etcd was restored from a backup");
            self.restores.send_modify(|restores| *restores += 1);
        }
        self.newest_version = version;
        let holder = &lease.spec.holder_identity;
        let known = self.observed.as_ref().map(|observed| observed.record.holder_identity.as_str());
        if known != Some(holder) && !holder.is_empty() {
            tracing::info!(lock = %self.election.lease, holder, "new leader observed");
        }
        match &mut self.observed {
            Some(observed) => observed.update(&lease.spec, now),
            None => self.observed = Some(Observed { record: lease.spec.clone(), at: now }),
        }
        self.lease = Some(lease);
    }

    /// Wait until the Lease is free: released, deleted or expired. If it cannot be watched, and after a failed try, wait
    /// for a random time of one to about two retry periods.
    async fn wait_for_a_chance(&mut self) {
        let next_poll = Instant::now() + jitter(self.election.retry_period, JITTER_FACTOR);
        let Decision::Wait(until) = self.decision() else { return sleep_until(next_poll).await };
        let version = self.lease.as_ref().map(|lease| lease.meta().resource_version).unwrap_or_default();
        let opening = watch::open(&self.client, &self.election.lease, version);
        let mut events = match timeout_at(until.into(), opening).await {
            Ok(Ok(events)) => events,
            Ok(Err(error)) => {
                tracing::debug!(lock = %self.election.lease, %error, "cannot watch lease; polling it");
                return sleep_until(next_poll).await;
            }
            Err(_) => return,
        };
        while let Decision::Wait(until) = self.decision() {
            match timeout_at(until.into(), events.next()).await {
                Ok(Some(Watched::Stored(lease))) => self.observe(lease),
                Ok(Some(Watched::Deleted)) => {
                    (self.lease, self.observed) = (None, None);
                }
                Ok(None) => return sleep_until(next_poll).await,
                // Expired. The next try reads the Lease, because the watch may be silently dead.
                Err(_) => return,
            }
        }
    }

    fn decision(&self) -> Decision {
        decide(self.observed.as_ref(), &self.election.identity, Instant::now().into_std())
    }
}

#[cfg(test)]
mod tests;
