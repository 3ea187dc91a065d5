//! An operator's `main`: flags, client, health, informers, leadership, workers, and an orderly end.
//!
//! Every replica keeps its caches warm; only the leader works. Left out: what is watched and synced, which the
//! operator's `controller.rs` says in [`Operator::set_up`].

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::Context;
use futures::future::{BoxFuture, join_all};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch::Receiver;
use tokio::time::timeout;

use crate::cache::Progress;
use crate::client::{self, Client, ClientOptions};
use crate::clock::Clock;
use crate::control::Control;
use crate::decisions::Decisions;
use crate::events::Recorder;
use crate::flags::{self, KUBERNETES_VERSION, OperatorFlags, VERSION};
use crate::informer::{Feeder, Health, Informer};
use crate::object::Object;
use crate::queue::{Backoff, Queue};
use crate::telemetry::{self, Telemetry};
use crate::worker::{self, Controller};

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
    /// Its flags.
    type Flags: OperatorFlags;

    /// Declares informers, queues and workers; starts nothing.
    fn set_up(flags: &Self::Flags, setup: &mut Setup);
}

/// What an operator declares before anything starts.
pub struct Setup {
    client: Client,
    clock: Clock,
    recorder: Recorder,
    decisions: Decisions,
    panics: Arc<AtomicU64>,
    informers: Vec<BoxFuture<'static, ()>>,
    healths: Vec<Arc<Health>>,
    progress: Vec<Receiver<Progress>>,
    queues: Vec<Queue>,
    workers: Vec<BoxFuture<'static, ()>>,
}

impl Setup {
    /// The writer.
    pub fn control(&self) -> Control {
        Control::new(self.client.clone())
    }

    /// The event recorder, under the operator's event source.
    pub fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    /// The wall clock.
    pub fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// Where syncs note what they decided.
    pub fn decisions(&self) -> Decisions {
        self.decisions.clone()
    }

    /// A queue; `name` is upstream's, as in the metrics.
    pub fn queue(&mut self, name: &'static str, backoff: Backoff) -> Queue {
        let queue = Queue::new(name, backoff, None);
        self.queues.push(queue.clone());
        queue
    }

    /// Follows a resource from start to end, on every replica. Workers start once all caches are synced.
    pub fn watch<T: Object>(&mut self, informer: Informer<T>) {
        self.healths.push(informer.health());
        self.progress.push(informer.cache().subscribe());
        self.informers.push(Box::pin(informer.run(self.client.clone())));
    }

    /// To discover resources and to start and stop following them while the operator runs.
    pub fn feeder(&self) -> Feeder {
        Feeder::new(self.client.clone())
    }

    /// Runs a task from start to end, on every replica. Workers start once `ready` says synced.
    pub fn run(&mut self, ready: Receiver<Progress>, task: impl Future<Output = ()> + Send + 'static) {
        self.progress.push(ready);
        self.informers.push(Box::pin(task));
    }

    /// Syncs the keys of `queue`, `workers` at a time, while this replica leads.
    pub fn work<C: Controller>(&mut self, controller: Arc<C>, queue: &Queue, workers: usize) {
        self.workers.push(Box::pin(worker::run(controller, queue.clone(), workers, Arc::clone(&self.panics))));
    }
}

/// Runs the operator until it is told to stop; the process's exit code says how it ended.
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
        Err(error) => flags::Exit { text: format!("error: {error:#}\n"), asked_for: false }.print(),
    }
}

async fn run<O: Operator>(flags: &O::Flags) -> anyhow::Result<()> {
    let shared = flags.shared();
    let clock = Clock::system();
    let telemetry = telemetry::start(&telemetry::Options {
        operator: O::NAMES.operator,
        format: shared.logging.logging_format,
        verbosity: shared.logging.v,
        otlp_endpoint: shared.logging.otlp_endpoint(),
        clock: clock.clone(),
    })?;
    let config = client::load_config(shared.kubeconfig(), shared.master()).await?;
    let options = ClientOptions {
        user_agent: format!("{}/{VERSION} (linux/amd64) kubernetes/{KUBERNETES_VERSION}", O::NAMES.operator),
        qps: Some(shared.kube_api_qps),
        burst: shared.kube_api_burst,
        observer: None,
    };
    let mut setup = Setup {
        client: Client::new(&config, options)?,
        clock,
        recorder: Recorder::default(),
        decisions: Decisions::default(),
        panics: Arc::default(),
        informers: Vec::new(),
        healths: Vec::new(),
        progress: Vec::new(),
        queues: Vec::new(),
        workers: Vec::new(),
    };
    O::set_up(flags, &mut setup);
    start(setup, telemetry, shared.controller_shutdown_timeout.0).await
}

async fn start(setup: Setup, telemetry: Telemetry, shutdown_limit: Duration) -> anyhow::Result<()> {
    let Setup { informers, progress, queues, workers, .. } = setup;
    for informer in informers {
        tokio::spawn(informer);
    }
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let stopped = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let work = tokio::spawn(async move {
        for mut cache in progress {
            // The informers run for as long as the process: their caches are not dropped.
            let _ = cache.wait_for(|progress| progress.synced).await;
        }
        tracing::info!("caches are synced, workers start");
        join_all(workers).await;
    });
    stopped.await;
    for queue in &queues {
        queue.shut_down();
    }
    if timeout(shutdown_limit, work).await.is_err() {
        tracing::warn!("workers have not ended in time");
    }
    telemetry.flush(Duration::from_secs(1)).await;
    Ok(())
}
