//! The stack of one connection: TCP, TLS and HTTP/2, with the current credentials.
//!
//! Left out: the choice of a connection (`connections`), and renewed credentials (`credentials`).

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt};
use rustls::client::Resumption;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};

/// client-go's: how long an idle HTTP/2 connection waits before it pings, and how long the answer may take.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// Watches are read as they come, so small windows suffice. They bound the memory of one connection.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct Interrupted(pub(super) BoxError);

pub(super) type AnswerBody = UnsyncBoxBody<Bytes, Interrupted>;
/// Sends requests; cheap to clone.
pub(crate) type Connection = BoxCloneSyncService<Request<Body>, Response<AnswerBody>, Interrupted>;

pub(super) fn connection(config: &kube::Config) -> Result<Connection, kube::Error> {
    // The crypto provider of rustls is process-wide. An error means that this process has already set it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(config.connect_timeout);
    let mut tls_config = config.rustls_client_config()?;
    // Connections are few and last for days, so a cache of sessions is of no use.
    tls_config.resumption = Resumption::disabled();
    let mut tls = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls_config).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = rustls::pki_types::ServerName::try_from(name.clone())
            .map_err(|cause| kube::Error::Service(Box::new(cause)))?;
        tls = tls.with_server_name_resolver(hyper_rustls::FixedServerNameResolver::new(name));
    }
    let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_initial_stream_window_size(STREAM_WINDOW_BYTES)
        .http2_initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .build::<_, Body>(tls.enable_all_versions().wrap_connector(tcp));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(connection_of(service))
}

pub(crate) fn connection_of<S, B>(service: S) -> Connection
where
    S: Service<Request<Body>, Response = Response<B>, Future: Send, Error: Into<BoxError>>
        + Clone
        + Send
        + Sync
        + 'static,
    B: hyper::body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let boxed = |body: B| body.map_err(|cause| Interrupted(cause.into())).boxed_unsync();
    let answering = service.map_response(move |answer: Response<B>| answer.map(boxed));
    Connection::new(answering.map_err(|cause| Interrupted(cause.into())))
}
