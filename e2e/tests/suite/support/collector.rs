//! A collector of traces, at a port of this machine, which keeps all spans.
//!
//! Left out: compression, and OTLP's JSON form; operators send neither.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::net::{TcpListener, TcpStream};

/// A collector that runs for as long as the test; cheap to clone.
#[derive(Clone)]
pub(crate) struct Collector {
    endpoint: String,
    spans: Arc<Mutex<Vec<Span>>>,
}

impl Collector {
    pub(crate) async fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("open the collector's port")?;
        let address = listener.local_addr().context("open the collector's port")?;
        let collector = Self { endpoint: format!("http://{address}"), spans: Arc::default() };
        let serving = collector.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serving.clone().serve(stream));
            }
        });
        Ok(collector)
    }

    /// The value of `--otlp-endpoint`.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The sender logs a connection that breaks.
    async fn serve(self, stream: TcpStream) {
        let service = service_fn(async |request: Request<Incoming>| {
            let is_traces = request.uri().path() == "/v1/traces";
            let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            let mut response = Response::new(Full::new(Bytes::new()));
            match ExportTraceServiceRequest::decode(body) {
                Ok(export) if is_traces => self.keep(export),
                Ok(_) | Err(_) => *response.status_mut() = http::StatusCode::BAD_REQUEST,
            }
            Ok::<_, Infallible>(response)
        });
        let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    }

    fn keep(&self, export: ExportTraceServiceRequest) {
        let scopes = export.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
        let spans = scopes.flat_map(|scope| scope.spans);
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).extend(spans);
    }
}

/// An attribute of a span or link as text; `""` if it is missing.
pub(crate) fn attribute(attributes: &[KeyValue], name: &str) -> String {
    let found = attributes.iter().find(|attribute| attribute.key == name);
    match found.and_then(|attribute| attribute.value.as_ref()?.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(_) | None => String::new(),
    }
}
