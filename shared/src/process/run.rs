//! An operator's `main`, and that of a process of several: flags, client, what is served, and an orderly end.
//!
//! The process with one operator runs its controller on its only thread; [`several`] gives each controller a thread. Left
//! out: what is watched and synced, which the operator's `controller.rs` says in [`Operator::set_up`].

#[cfg(any(test, feature = "testing"))]
mod alone;
mod controller;
mod member;
mod restore;
mod setup;
pub mod several;

use std::process::ExitCode;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::api::explain::{SHADOW_PATH, STATUS_PATH};
pub use crate::api::facts::Names;
use crate::api::json;
use crate::process::explain::Explanations;
use crate::process::flags::{self, Exit, Flags, SharedFlags};
use crate::process::metrics::{self, Metrics};
use crate::process::serving::{JSON, Server, Site};
use crate::process::telemetry::{self, Telemetry};
use crate::transport::client::account::Tokens;
use crate::transport::client::{self, Access, Client, ClientOptions};
use crate::transport::clock::Clock;
use crate::transport::identity::{KUBERNETES_VERSION, VERSION};
#[cfg(any(test, feature = "testing"))]
pub(crate) use alone::{Alone, alone};
use controller::{Controller, FLUSH_MAX, Face, Surroundings};
#[cfg(any(test, feature = "testing"))]
pub(crate) use restore::StartOver;
pub use setup::Setup;

/// How many sockets are looked at before tasks go on. Few are open, and there is room for the answers from the start.
const IO_EVENTS_AT_ONCE: usize = 64;

/// One operator, as a process sees it.
pub trait Operator {
    /// Its names.
    const NAMES: Names;
    /// The flags of this operator alone.
    type Flags: clap::Args + Send + Sync + 'static;

    /// Declares informers, queues and workers; starts nothing.
    fn set_up(flags: &Self::Flags, setup: &mut Setup);
}

/// Runs the operator until a signal stops it; the process's exit code says how it ended.
pub fn main<O: Operator>() -> ExitCode {
    let flags = match flags::parse::<O::Flags>(O::NAMES.operator, std::env::args_os()) {
        Ok(flags) => flags,
        Err(exit) => return exit.print(),
    };
    exit_code(runtime().and_then(|runtime| runtime.block_on(run::<O>(&flags))))
}

fn exit_code(outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => Exit::of_errors(&[format!("{error:#}")]).print(),
    }
}

/// One thread: see docs/decisions/0001-one-thread.md.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_io_events_per_tick(IO_EVENTS_AT_ONCE)
        .build()
        .context("cannot start the runtime")
}

/// Reads the configuration, prepares, and works.
async fn run<O: Operator>(Flags { own, shared }: &Flags<O::Flags>) -> anyhow::Result<()> {
    let access = client::load_config(shared.kubeconfig(), shared.master()).await?;
    let clock = Clock::system();
    let telemetry = start_telemetry(O::NAMES.operator, shared, &clock)?;
    let metrics = Metrics::new(O::NAMES.operator);
    let client = connect(O::NAMES.operator, shared, &access, &metrics, None)?;
    let surroundings =
        Surroundings { client: client.clone(), clock, metrics: metrics.clone(), common: None, hub: None };
    let (controller, face) = Controller::prepare(O::NAMES, shared, surroundings, |setup| O::set_up(own, setup))?;
    let _server = Server::start(&shared.serving, site(face, metrics, &telemetry), &client).await?;
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let stopped = stop_signal()?;
    let outcome = tokio::select! {
        outcome = controller.run(&stop) => outcome,
        () = async { stopped.await; stopping.cancel(); std::future::pending().await } => Ok(()),
    };
    telemetry.flush(FLUSH_MAX).await;
    outcome
}

fn start_telemetry(name: &'static str, shared: &SharedFlags, clock: &Clock) -> anyhow::Result<Telemetry> {
    let telemetry = telemetry::start(&telemetry::Options {
        operator: name,
        format: shared.logging.logging_format,
        verbosity: shared.logging.v,
        otlp_endpoint: shared.logging.otlp_endpoint(),
        clock: clock.clone(),
    })?;
    tracing::info!(operator = name, version = VERSION, kubernetes = KUBERNETES_VERSION, "starting");
    Ok(telemetry)
}

fn connect(
    name: &str,
    shared: &SharedFlags,
    access: &Access,
    metrics: &Metrics,
    tokens: Option<Tokens>,
) -> anyhow::Result<Client> {
    let Access { config, ca_file } = access;
    let host = config.cluster_url.authority().map_or("", |authority| authority.as_str());
    let options = ClientOptions {
        user_agent: user_agent(name),
        qps: Some(shared.kube_api_qps),
        burst: shared.kube_api_burst,
        observer: Some(metrics.client(host).observer()),
        ca_file: ca_file.clone(),
        tokens,
    };
    Ok(Client::new(config, options)?)
}

fn user_agent(name: &str) -> String {
    format!("{name}/{VERSION} ({}) kubernetes/{KUBERNETES_VERSION}", platform())
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

/// What a process with one controller serves.
fn site(face: Face, metrics: Metrics, telemetry: &Telemetry) -> Site {
    let Face { checks, decisions, explainer, shadow, pages } = face;
    let explainer = std::sync::Arc::new(explainer);
    let asked = explainer.clone();
    let site = Site::new(checks, telemetry.verbosity().clone())
        .page("/metrics", metrics::CONTENT_TYPE, move |_| metrics.to_text())
        .page("/debug/decisions", "application/jsonl", move |query| decisions.to_json_lines(query.value("key")))
        .page(STATUS_PATH, JSON, move |_| String::from_utf8_lossy(&json(&[asked.status()])).into_owned() + "\n")
        .why(move |object| Explanations(vec![explainer.explain(object)]))
        .others(move |path| pages.iter().find(|(known, _)| *known == path).map(|(_, page)| page.clone()));
    match shadow {
        Some(shadow) => site.page(SHADOW_PATH, JSON, move |_| shadow.to_json()),
        None => site,
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
