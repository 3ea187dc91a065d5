//! Logs on stderr, in klog's text form or upstream's JSON form, and traces over OTLP where an endpoint is given.
//!
//! Left out: log files, `--vmodule`, and sampling flags (OpenTelemetry's own `OTEL_TRACES_SAMPLER` works). Traces leave
//! by plain HTTP, to a collector on the node or in the pod; one that wants HTTPS is refused at the start, not ignored.

mod line;
mod traces;

use std::fmt;
use std::io::Write;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Dispatch, Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::{Layer, Registry};

use crate::transport::clock::Clock;
use line::Lines;
pub(crate) use line::in_controller;
pub use traces::{Traces, TracesError};

/// `--v` where it isn't given.
pub const DEFAULT_VERBOSITY: u8 = 0;

/// From here on decisions are logged.
const DECISIONS: u8 = 2;
/// From here on all lines of this project are logged, and those of libraries.
const EVERYTHING: u8 = 6;
/// From here on details of libraries are logged too, as client-go logs bodies of requests.
const TRANSPORT: u8 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// klog's: `I1121 11:11:00.123456       1 leader.rs:52] "Successfully acquired lease" lock="kube-system/x"`.
    Text,
    /// One object a line: `ts` (milliseconds), `level`, `caller`, `msg`, `v` (up to info), then the fields.
    Json,
}

impl FromStr for LogFormat {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("permitted formats are \"json\" and \"text\""),
        }
    }
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Json => "json",
        })
    }
}

/// How much is logged; may change while the process runs.
#[derive(Clone, Debug)]
pub struct Verbosity(Arc<AtomicU8>);

impl Verbosity {
    pub fn new(level: u8) -> Self {
        Self(Arc::new(AtomicU8::new(level)))
    }

    pub fn level(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    pub fn set(&self, level: u8) {
        self.0.store(level, Ordering::Relaxed);
        tracing::callsite::rebuild_interest_cache();
    }

    fn limit(&self, target: &str) -> LevelFilter {
        let crate_name = target.split("::").next().unwrap_or(target);
        let is_ours = crate_name == env!("CARGO_CRATE_NAME") || crate_name.ends_with("_operator");
        match (self.level(), is_ours) {
            (0..DECISIONS, true) => LevelFilter::INFO,
            (DECISIONS..EVERYTHING, true) => LevelFilter::DEBUG,
            (EVERYTHING.., true) | (TRANSPORT.., false) => LevelFilter::TRACE,
            (0..EVERYTHING, false) => LevelFilter::WARN,
            (EVERYTHING..TRANSPORT, false) => LevelFilter::DEBUG,
        }
    }

    fn allows(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.limit(metadata.target())
    }
}

impl<S: Subscriber> Layer<S> for Verbosity {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        // Cached until `set` has it asked again.
        if self.allows(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.allows(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.limit(env!("CARGO_CRATE_NAME")))
    }
}

/// The settings of [`start`].
pub struct Options {
    /// The operator's name, which traces carry as `service.name`.
    pub operator: &'static str,
    /// `--logging-format`.
    pub format: LogFormat,
    /// `--v`.
    pub verbosity: u8,
    /// `--otlp-endpoint`.
    pub otlp_endpoint: Option<String>,
    pub clock: Clock,
}

pub struct Telemetry {
    verbosity: Verbosity,
    traces: Option<Traces>,
}

impl Telemetry {
    /// The level that `/debug/flags/v` changes.
    pub fn verbosity(&self) -> &Verbosity {
        &self.verbosity
    }

    /// Sends the remaining traces for at most this long. Log lines never wait.
    pub async fn flush(&self, limit: Duration) {
        if let Some(traces) = &self.traces {
            traces.flush(limit).await;
        }
    }
}

/// Directs all logs and traces of this process; called once, inside the tokio runtime. Panics are logged too.
///
/// # Errors
/// When the endpoint for traces cannot be used.
pub fn start(options: &Options) -> Result<Telemetry, TracesError> {
    let stderr = |line: &[u8]| {
        // If stderr is gone, there is no place left to log to.
        let _ = std::io::stderr().lock().write_all(line);
    };
    let (dispatch, telemetry) = dispatch(options, stderr)?;
    // Fails where one is set already, by a test of the whole process: that one stands.
    let _ = tracing::dispatcher::set_global_default(dispatch);
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(location, "panic: {}", panic.payload_as_str().unwrap_or("no message"));
    }));
    Ok(telemetry)
}

fn dispatch(
    options: &Options,
    write: impl Fn(&[u8]) + Send + Sync + 'static,
) -> Result<(Dispatch, Telemetry), TracesError> {
    let verbosity = Verbosity::new(options.verbosity);
    let lines = Lines::new(options.format, options.clock.clone(), write);
    let (dispatch, traces) = match &options.otlp_endpoint {
        Some(endpoint) => {
            let (layer, traces) = traces::layer(options.operator, endpoint)?;
            let subscriber = Registry::default().with(verbosity.clone()).with(layer).with(lines);
            (Dispatch::new(subscriber), Some(traces))
        }
        None => (Dispatch::new(Spanless.with(verbosity.clone()).with(lines)), None),
    };
    Ok((dispatch, Telemetry { verbosity, traces }))
}

/// Events without spans: these are traces, and lines know their sync without them. The registry of spans takes 32 KiB
/// before there is one, in every operator.
struct Spanless;

impl Subscriber for Spanless {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
    }

    /// Never called, as no span is enabled.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[cfg(test)]
mod tests;
