//! A whole operator in a test: its real informers, queues, workers, `sync` and `apply`, against [`super::apiserver`].
//!
//! Time is tokio's paused time: it passes when everybody waits, so that back-offs and timers cost nothing and no test
//! ever sleeps. Left out: leader election, serving, telemetry and signals.

use std::time::Duration;

use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use super::apiserver::{Connection, Server};
use crate::api::explain::{Explanation, ShadowReport, Subject};
use crate::following::cache::Progress;
use crate::process::explain::Explainer;
use crate::process::flags;
use crate::process::run::{self, Alone, Operator, StartOver};
use crate::process::shadow::Shadow;
use crate::working::queue::Queue;

/// How much time passes at first between two looks, and at most; it is doubled.
const LOOK: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(1));

/// After this long an operator that still has something to do never comes to rest.
const RESTLESS: Duration = Duration::from_mins(10);

/// No test takes longer, in paused time.
const PATIENCE: Duration = Duration::from_hours(48);

/// Longer than a status waits that has nothing new but counts. A key that waits for it alone is at rest all the same, see
/// [`Running::at_rest`], so a test that reads counts lets this pass first.
pub const A_STATUS: Duration = Duration::from_secs(2);

/// Runs a test with an operator in it.
///
/// # Panics
/// When the test waits for what never comes.
#[expect(clippy::unwrap_used, reason = "there is nothing to test without a runtime, and nothing to wait for for ever")]
pub fn test(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async { timeout(PATIENCE, test).await }).unwrap();
}

/// An operator at work; dropping this kills it.
pub struct Running {
    connection: Connection,
    progress: Vec<Receiver<Progress>>,
    queues: Vec<Queue>,
    explainer: Explainer,
    shadow: Option<Shadow>,
    start_over: StartOver,
    working: AbortOnDropHandle<anyhow::Error>,
}

impl Running {
    /// Starts an operator with these flags (`["--concurrent-job-syncs=1"]`).
    pub fn start<O: Operator>(server: &Server, flags: &[&str]) -> Self {
        let program = std::iter::once(O::NAMES.operator);
        #[expect(clippy::panic, reason = "flags that are refused are a broken test")]
        let flags = flags::parse::<O::Flags>(O::NAMES.operator, program.chain(flags.iter().copied()).map(Into::into))
            .unwrap_or_else(|exit| panic!("{exit:?}"));
        let connection = Connection::default();
        let Alone { progress, queues, explainer, shadow, start_over, work } =
            run::alone::<O>(&flags, server.client(&connection), server.clock());
        let working = AbortOnDropHandle::new(tokio::spawn(work));
        Self { connection, progress, queues, explainer, shadow, start_over, working }
    }

    /// Starts over, as a process does that notices that etcd was restored.
    pub async fn start_over(&self) {
        self.start_over.start_over().await;
    }

    /// Waits until the operator has nothing to do but to wait for an event or for a time, or was killed.
    ///
    /// # Panics
    /// When it ends by itself, or is still busy after ten minutes.
    pub async fn at_rest(&self) {
        let (mut look, most) = LOOK;
        let started = Instant::now();
        loop {
            // Paused time passes only once every task waits: there is no event any more that is on its way.
            sleep(look).await;
            assert!(!self.working.is_finished(), "the operator has ended");
            if self.is_killed() || self.is_idle() {
                return;
            }
            assert!(started.elapsed() < RESTLESS, "the operator does not come to rest");
            look = (look * 2).min(most);
        }
    }

    /// The operator's explanation of the object under this path of the apiserver.
    ///
    /// # Panics
    /// When that is no object's path.
    #[expect(clippy::unwrap_used, reason = "a path that is none is a broken test")]
    pub fn why(&self, path: &str) -> Explanation {
        self.explainer.explain(Subject::of_path(path).unwrap())
    }

    /// The stages that it would decide now for the object under this path, of all its keys.
    pub fn now(&self, path: &str) -> Vec<String> {
        self.why(path).keys.into_iter().flat_map(|key| key.now).map(|stage| stage.text).collect()
    }

    /// The stages of the latest decision about the object under this path, of all its keys.
    pub fn last(&self, path: &str) -> Vec<String> {
        let latest = self.why(path).keys.into_iter().filter_map(|key| key.last.into_iter().next());
        latest.flat_map(|decision| decision.stages).map(|stage| stage.text).collect()
    }

    /// Its report, if it runs as a shadow.
    pub fn shadow_report(&self) -> Option<ShadowReport> {
        self.shadow.as_ref().map(Shadow::report)
    }

    /// Lets time pass, whatever the operator does.
    pub async fn pass(&self, time: Duration) {
        sleep(time).await;
    }

    fn is_idle(&self) -> bool {
        self.progress.iter().all(|progress| progress.borrow().synced) && self.queues.iter().all(Queue::is_at_rest)
    }

    /// Whether its connection was cut: see [`Server::stop_after_writes`].
    pub fn is_killed(&self) -> bool {
        self.connection.is_cut()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.connection.cut();
    }
}

/// One thing that happens in the life of a cluster.
pub enum Step {
    /// This, after which the operator comes to rest.
    Do(fn(&Server)),
    /// So much time passes.
    Pass(Duration),
}

/// Runs an operator while its cluster lives through `steps`, and again with a kill before each of its writes.
///
/// Asserts that the cluster ends up the same each time, and that an operator which starts in a cluster at rest writes
/// nothing. Gives the server of the life without a kill.
///
/// # Panics
/// Where one of these does not hold.
pub async fn survives_kills<O: Operator>(flags: &[&str], steps: &[Step]) -> Server {
    let whole = live::<O>(flags, steps, None).await;
    let writes = whole.writes();
    drop(start_at_rest::<O>(&whole, flags).await);
    assert_eq!(whole.writes(), writes, "what is at rest is written again");
    for (n, write) in writes.iter().enumerate() {
        let killed = live::<O>(flags, steps, Some(n)).await;
        assert_eq!(killed.objects(), whole.objects(), "killed before write {n}, {write}");
    }
    whole
}

async fn live<O: Operator>(flags: &[&str], steps: &[Step], kill_before: Option<usize>) -> Server {
    let server = Server::new();
    if let Some(n) = kill_before {
        server.stop_after_writes(n);
    }
    let mut running = start_at_rest::<O>(&server, flags).await;
    for step in steps {
        match step {
            Step::Do(step) => {
                step(&server);
                running.at_rest().await;
                if running.is_killed() {
                    running = start_at_rest::<O>(&server, flags).await;
                }
            }
            Step::Pass(time) => {
                let until = Instant::now() + *time;
                while timeout_at(until, running.connection.when_cut()).await.is_ok() {
                    running = Running::start::<O>(&server, flags);
                }
            }
        }
    }
    server
}

/// Starts an operator, and waits until it has nothing to do.
pub async fn start_at_rest<O: Operator>(server: &Server, flags: &[&str]) -> Running {
    let running = Running::start::<O>(server, flags);
    running.at_rest().await;
    running
}
