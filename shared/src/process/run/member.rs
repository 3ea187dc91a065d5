//! One controller of several in a process: its thread, its supervisor, and its health.
//!
//! Each life of a controller has a runtime of its own, which ends with all its tasks. Left out: memory. A controller that
//! allocates without end takes the process with it, and another replica takes over.

use std::any::Any;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::anyhow;
use futures::future::LocalBoxFuture;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::controller::{Controller, Face};
use super::runtime;
use crate::api::explain::Role;
use crate::api::facts::Names;
use crate::process::serving::{Health, Probe};
use crate::process::telemetry;
use crate::transport::client::soon_after;
use crate::transport::clock::{instant, jitter};

/// Times of the signs of life of a controller's loop.
#[derive(Clone, Copy)]
pub(super) struct Pulse {
    pub(super) period: Duration,
    /// Without a sign for so long, the thread is blocked.
    pub(super) limit: Duration,
}

impl Default for Pulse {
    /// The limit is the timeout of a probe in manifests/base, which a process with one controller misses then.
    fn default() -> Self {
        Self { period: Duration::from_secs(3), limit: Duration::from_secs(15) }
    }
}

/// Makes a controller that has declared everything and not begun.
pub(super) type Start = Box<dyn Fn() -> LocalBoxFuture<'static, anyhow::Result<(Controller, Face)>> + Send + Sync>;

#[derive(Clone)]
pub(super) enum State {
    Starts,
    Runs(Arc<Face>),
    /// Failed for this reason; a restart follows.
    Failed(String),
    Ended,
}

pub(super) struct Member {
    pub(super) names: Names,
    start: Start,
    pulse: Pulse,
    state: watch::Sender<State>,
    /// The last turn of its loop, while it has one.
    turned: Mutex<Option<std::time::Instant>>,
    restarts: AtomicU64,
}

impl Member {
    pub(super) fn new(names: Names, pulse: Pulse, start: Start) -> Self {
        let state = watch::Sender::new(State::Starts);
        Self { names, start, pulse, state, turned: Mutex::default(), restarts: AtomicU64::new(0) }
    }

    /// Starts its thread, which ends once it is stopped. A controller that failed is started again at once when the
    /// apiserver comes back.
    pub(super) fn spawn(self: &Arc<Self>, stop: CancellationToken, came_back: watch::Receiver<u64>) -> io::Result<()> {
        // For its pauses between two lives: without sockets it costs nothing.
        let pauses = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let member = Arc::clone(self);
        let name = self.names.controller.trim_end_matches("-controller").to_owned();
        thread::Builder::new().name(name).spawn(move || member.supervise(&pauses, &stop, came_back)).map(drop)
    }

    pub(super) fn state(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// Its answers, while it runs.
    pub(super) fn face(&self) -> Option<Arc<Face>> {
        match &*self.state.borrow() {
            State::Runs(face) => Some(Arc::clone(face)),
            State::Starts | State::Failed(_) | State::Ended => None,
        }
    }

    pub(super) fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Relaxed)
    }

    /// Whether it works: it runs, it leads, and it is not blocked.
    pub(super) fn is_working(&self) -> bool {
        self.blocked(instant()).is_none() && self.face().is_some_and(|face| face.explainer.role() == Role::Leader)
    }

    /// Its health. A failed controller fails no liveness probe, because a restart of the process would stop the others. A
    /// blocked one does, because nothing else ends its thread.
    pub(super) fn health(&self, probe: Probe) -> Health {
        if let Some(silent) = self.blocked(instant()) {
            return Health::Failed(format!("blocked: no sign of life for {} s", silent.as_secs()));
        }
        let health = match &*self.state.borrow() {
            State::Starts => Health::Failed("not started yet".to_owned()),
            State::Runs(face) => face.checks.health(probe),
            State::Failed(reason) => Health::Failed(reason.clone()),
            State::Ended => Health::Fine,
        };
        match (health, probe) {
            (Health::Failed(reason), Probe::Livez | Probe::Healthz) => Health::Degraded(reason),
            (health, _) => health,
        }
    }

    /// Time since the last turn of its loop, if that exceeds the limit.
    pub(super) fn blocked(&self, now: std::time::Instant) -> Option<Duration> {
        let turned = *self.turned.lock().unwrap_or_else(PoisonError::into_inner);
        turned.map(|turned| now.saturating_duration_since(turned)).filter(|silent| *silent > self.pulse.limit)
    }

    fn set_turned(&self, turned: Option<std::time::Instant>) {
        *self.turned.lock().unwrap_or_else(PoisonError::into_inner) = turned;
    }

    fn supervise(self: &Arc<Self>, pauses: &Runtime, stop: &CancellationToken, mut came_back: watch::Receiver<u64>) {
        telemetry::in_controller(self.names.controller);
        let mut backoff = Backoff::default();
        while !stop.is_cancelled() {
            let began = Instant::now();
            came_back.mark_unchanged();
            let outcome = self.live(stop);
            self.set_turned(None);
            let Err(error) = outcome else { break };
            let (error, delay) = (format!("{error:#}"), jitter(backoff.next(began.elapsed()), 0.5));
            tracing::error!(error, ?delay, "controller failed; restarting it");
            self.restarts.fetch_add(1, Ordering::Relaxed);
            self.state.send_replace(State::Failed(error));
            pauses.block_on(pause(delay, stop, &mut came_back));
        }
        self.state.send_replace(State::Ended);
    }

    /// One life: `Ok` if it was stopped.
    fn live(self: &Arc<Self>, stop: &CancellationToken) -> anyhow::Result<()> {
        let runtime = runtime()?;
        self.set_turned(Some(instant()));
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(self.start_and_run(stop))));
        runtime.shutdown_background();
        outcome.unwrap_or_else(|panic| Err(anyhow!("panic: {}", message(&*panic))))
    }

    async fn start_and_run(self: &Arc<Self>, stop: &CancellationToken) -> anyhow::Result<()> {
        let turning = Arc::clone(self);
        tokio::spawn(async move {
            loop {
                turning.set_turned(Some(instant()));
                sleep(turning.pulse.period).await;
            }
        });
        let (controller, face) = tokio::select! {
            started = (self.start)() => started?,
            () = stop.cancelled() => return Ok(()),
        };
        let face = Arc::new(face);
        self.state.send_replace(State::Runs(Arc::clone(&face)));
        tokio::select! {
            outcome = controller.run(stop) => outcome,
            reason = hopeless(&face, self.pulse.period) => Err(anyhow!(reason)),
        }
    }
}

/// Waits until the liveness probe of a process with this one controller would fail, and returns the reason.
async fn hopeless(face: &Face, period: Duration) -> String {
    loop {
        if let Health::Failed(reason) = face.checks.health(Probe::Livez) {
            return reason;
        }
        sleep(period).await;
    }
}

async fn pause(delay: Duration, stop: &CancellationToken, came_back: &mut watch::Receiver<u64>) {
    tokio::select! {
        () = sleep(delay) => {}
        () = stop.cancelled() => {}
        () = soon_after(came_back) => {}
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

/// Delay before the next life. It doubles, and is reset by a long life.
struct Backoff(Duration);

impl Backoff {
    const MIN: Duration = Duration::from_secs(1);
    const MAX: Duration = Duration::from_secs(60);

    fn next(&mut self, lived: Duration) -> Duration {
        if lived >= Self::MAX {
            self.0 = Self::MIN;
        }
        let delay = self.0;
        self.0 = (delay * 2).min(Self::MAX);
        delay
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self(Self::MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_that_fails_again_and_again_waits_longer_until_it_has_lived_for_a_while() {
        let mut backoff = Backoff::default();
        let seconds: Vec<u64> = (0..8).map(|_| backoff.next(Duration::ZERO).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff.next(Duration::from_secs(60)).as_secs(), 1);
        assert_eq!(backoff.next(Duration::ZERO).as_secs(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_ends_early_when_the_apiserver_is_back_or_the_process_stops() {
        let (returns, mut came_back) = watch::channel(0_u64);
        let (delay, stop, began) = (Duration::from_secs(60), CancellationToken::new(), Instant::now());
        pause(delay, &stop, &mut came_back).await;
        assert_eq!(began.elapsed().as_secs(), 60);
        returns.send_replace(1);
        pause(delay, &stop, &mut came_back).await;
        stop.cancel();
        pause(delay, &stop, &mut came_back).await;
        assert!(began.elapsed() < delay + Duration::from_secs(2), "{:?}", began.elapsed());
    }

    fn member() -> Member {
        let names = Names { operator: "a-operator", controller: "a-controller", event_source: "a-controller" };
        Member::new(names, Pulse::default(), Box::new(|| Box::pin(async { Err(anyhow!("not in this test")) })))
    }

    #[test]
    fn a_failed_controller_fails_readiness_alone_and_a_blocked_one_each_probe() {
        let member = member();
        let all = |member: &Member| [Probe::Livez, Probe::Readyz].map(|probe| member.health(probe));
        let starts = "not started yet".to_owned();
        assert_eq!(all(&member), [Health::Degraded(starts.clone()), Health::Failed(starts)]);
        member.state.send_replace(State::Failed("no token".to_owned()));
        assert_eq!(all(&member), [Health::Degraded("no token".to_owned()), Health::Failed("no token".to_owned())]);

        let began = instant();
        member.set_turned(Some(began));
        let limit = Pulse::default().limit;
        assert_eq!(member.blocked(began + limit), None);
        let blocked = limit + Duration::from_secs(1);
        assert_eq!(member.blocked(began + blocked), Some(blocked));
        member.set_turned(began.checked_sub(blocked));
        let reason = Health::Failed("blocked: no sign of life for 16 s".to_owned());
        assert_eq!(all(&member), [reason.clone(), reason]);
        member.state.send_replace(State::Ended);
        member.set_turned(None);
        assert_eq!(all(&member), [Health::Fine, Health::Fine]);
    }
}
