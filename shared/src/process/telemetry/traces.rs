//! Finished spans, batched on the runtime's own thread and sent to a collector as OTLP protobuf over HTTP.
//!
//! OpenTelemetry's own batch processor runs on a thread of its own, where the hyper client finds no tokio runtime to
//! work on; this one is a task. A collector that is slow or away costs spans, never memory or a sync.
//! Left out: HTTPS, metrics and logs over OTLP, and linking a span to the apiserver's.

use std::time::Duration;

use opentelemetry::trace::TracerProvider;
use opentelemetry::{SpanId, TraceId};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    IdGenerator, RandomIdGenerator, SdkTracer, SdkTracerProvider, Span, SpanData, SpanExporter as _, SpanProcessor,
};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};
use tracing_opentelemetry::OpenTelemetryLayer;

use crate::transport::api_error::chain;
use crate::transport::identity::VERSION;
use crate::working::worker::running::running;

/// OpenTelemetry's defaults for a batch processor.
const QUEUED_MAX: usize = 2048;
const BATCH_MAX: usize = 512;
const BATCH_DELAY: Duration = Duration::from_secs(5);
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);

const TRACES_PATH: &str = "/v1/traces";

/// Why traces cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// Only `http` is spoken.
    #[error("--otlp-endpoint {0:?} must start with http://: put a collector on the node or in the pod")]
    Scheme(String),
    #[error("cannot use --otlp-endpoint {endpoint:?}: {cause}")]
    Endpoint { endpoint: String, cause: String },
}

/// The traces of this process on their way out.
pub struct Traces {
    queue: mpsc::Sender<Message>,
}

enum Message {
    Ended(Box<SpanData>),
    Flush(oneshot::Sender<()>),
}

impl Traces {
    /// Sends what waits; gives up after `limit`.
    pub async fn flush(&self, limit: Duration) {
        let (done, sent) = oneshot::channel();
        // Whether it was sent in time or not, the process goes on to its end.
        let _ = timeout(limit, async {
            if self.queue.send(Message::Flush(done)).await.is_ok() {
                let _ = sent.await;
            }
        })
        .await;
    }
}

/// The layer that turns spans into traces, and the task that sends them; called inside the tokio runtime.
pub(super) fn layer<S>(
    operator: &'static str,
    endpoint: &str,
) -> Result<(OpenTelemetryLayer<S, SdkTracer>, Traces), TracesError>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    let error = |cause: String| TracesError::Endpoint { endpoint: endpoint.to_owned(), cause };
    let uri: http::Uri = traces_url(endpoint)?.parse().map_err(|cause: http::uri::InvalidUri| error(chain(&cause)))?;
    let resource = Resource::builder()
        .with_service_name(operator)
        .with_attribute(opentelemetry::KeyValue::new("service.version", VERSION))
        .build();
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(uri.to_string())
        .with_timeout(EXPORT_TIMEOUT)
        .build()
        .map_err(|cause| error(chain(&cause)))?;
    exporter.set_resource(&resource);
    let (queue, ended) = mpsc::channel(QUEUED_MAX);
    let provider = SdkTracerProvider::builder()
        .with_resource(resource)
        .with_id_generator(Ids::default())
        .with_span_processor(Enqueue(queue.clone()))
        .build();
    let tracer = provider.tracer(operator);
    tokio::spawn(send_batches(ended, exporter));
    let layer = OpenTelemetryLayer::new(tracer).with_threads(false).with_tracked_inactivity(false);
    Ok((layer, Traces { queue }))
}

/// Upstream: <https://opentelemetry.io/docs/specs/otel/protocol/exporter/>: the base address, then `v1/traces`.
fn traces_url(endpoint: &str) -> Result<String, TracesError> {
    if !endpoint.starts_with("http://") {
        return Err(TracesError::Scheme(endpoint.to_owned()));
    }
    let base = endpoint.trim_end_matches('/');
    Ok(if base.ends_with(TRACES_PATH) { base.to_owned() } else { format!("{base}{TRACES_PATH}") })
}

/// Random ids, except that a sync joins the trace of the change that led to it. A parent span would do the same, but its
/// sampling flag would override `OTEL_TRACES_SAMPLER`.
#[derive(Debug, Default)]
struct Ids(RandomIdGenerator);

impl IdGenerator for Ids {
    fn new_trace_id(&self) -> TraceId {
        let mut of_change = None;
        running(|sync| of_change = sync.trace);
        of_change.unwrap_or_else(|| self.0.new_trace_id())
    }

    fn new_span_id(&self) -> SpanId {
        self.0.new_span_id()
    }
}

#[derive(Debug)]
struct Enqueue(mpsc::Sender<Message>);

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ended(_) => "Ended",
            Self::Flush(_) => "Flush",
        })
    }
}

impl SpanProcessor for Enqueue {
    fn on_start(&self, _: &mut Span, _: &opentelemetry::Context) {}

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() {
            // A full queue means a collector that doesn't keep up; `send_batches` has said so.
            let _ = self.0.try_send(Message::Ended(Box::new(span)));
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

async fn send_batches(mut ended: mpsc::Receiver<Message>, exporter: SpanExporter) {
    let mut problem = None;
    while let Some(first) = ended.recv().await {
        let (batch, flushed) = collect(first, &mut ended).await;
        if !batch.is_empty() {
            let size = batch.len();
            let outcome = timeout(EXPORT_TIMEOUT, exporter.export(batch)).await;
            let failure = match outcome {
                Ok(Ok(())) => None,
                Ok(Err(cause)) => Some(chain(&cause)),
                Err(_) => Some(format!("no answer within {EXPORT_TIMEOUT:?}")),
            };
            if failure != problem {
                if let Some(error) = &failure {
                    tracing::warn!(error, spans = size, "collector is unreachable; dropping traces");
                } else {
                    tracing::info!("collector is reachable again");
                }
            }
            problem = failure;
        }
        if let Some(done) = flushed {
            // The caller may have stopped waiting.
            let _ = done.send(());
        }
    }
}

/// A full batch, or all that ends soon after the first; at once when a flush is asked for.
async fn collect(first: Message, ended: &mut mpsc::Receiver<Message>) -> (Vec<SpanData>, Option<oneshot::Sender<()>>) {
    let due = Instant::now() + BATCH_DELAY;
    let mut batch = Vec::new();
    let mut next = Some(first);
    while let Some(message) = next {
        match message {
            Message::Ended(span) => batch.push(*span),
            Message::Flush(done) => return (batch, Some(done)),
        }
        if batch.len() >= BATCH_MAX {
            break;
        }
        next = timeout_at(due, ended.recv()).await.ok().flatten();
    }
    (batch, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_follows_the_base_address() {
        assert_eq!(traces_url("http://127.0.0.1:4318").unwrap(), "http://127.0.0.1:4318/v1/traces");
        assert_eq!(traces_url("http://c:4318/base/").unwrap(), "http://c:4318/base/v1/traces");
        assert_eq!(traces_url("http://c:4318/v1/traces").unwrap(), "http://c:4318/v1/traces");
        assert!(traces_url("https://c:4318").unwrap_err().to_string().contains("must start with http://"));
    }
}
