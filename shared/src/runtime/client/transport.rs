//! A connection's stack: TCP, TLS and HTTP, under the credentials as they are now.
//!
//! Left out: which requests go over which connection (`connections`), and credentials that change (`credentials`).

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt};
use rustls::client::Resumption;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};

/// client-go's: how long an idle HTTP/2 connection waits before it pings, and how long the answer may take.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// A watch is read as it comes, so small windows suffice and bound what one connection can hold in memory.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
/// The most that is read at once from a connection that is not shared.
const READ_BYTES_MAX: usize = 64 * 1024;

/// What was sent or answered has not come to its end.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct Interrupted(pub(super) BoxError);

/// The body of an answer, as it comes.
pub(super) type AnswerBody = UnsyncBoxBody<Bytes, Interrupted>;
/// Sends requests; cheap to clone.
pub(crate) type Connection = BoxCloneSyncService<Request<Body>, Response<AnswerBody>, Interrupted>;

/// Both ways to an apiserver, under the same credentials.
#[derive(Clone)]
pub(crate) struct Transport {
    /// Over one connection of HTTP/2, which many watches and requests share.
    pub(crate) shared: Connection,
    /// Over a connection of HTTP/1.1 for each request, which lasts no longer. There an event of a watch costs the
    /// apiserver less: its HTTP/2 writes it in one goroutine and flushes it in another
    /// (docs/decisions/0014-busy-watches.md).
    pub(crate) alone: Connection,
}

#[cfg(any(test, feature = "testing"))]
impl Transport {
    /// Both by the same service.
    pub(crate) fn of(connection: Connection) -> Self {
        Self { shared: connection.clone(), alone: connection }
    }
}

/// The ways to an apiserver with the credentials as they are now.
pub(super) fn transport(config: &kube::Config) -> Result<Transport, kube::Error> {
    // Which crypto provider rustls uses is a process-wide choice; an earlier one by this same process stands.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(config.connect_timeout);
    // A credential plugin may be run for this, and once more for the layer below.
    let mut tls = config.rustls_client_config()?;
    // Connections are few and last long: room for the sessions of 256 servers is for nothing.
    tls.resumption = Resumption::disabled();
    let tls = || {
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls.clone()).https_or_http();
        let Some(name) = &config.tls_server_name else { return Ok(builder) };
        let name = rustls::pki_types::ServerName::try_from(name.clone())
            .map_err(|cause| kube::Error::Service(Box::new(cause)))?;
        Ok::<_, kube::Error>(builder.with_server_name_resolver(FixedServerNameResolver::new(name)))
    };
    let shared = Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_initial_stream_window_size(STREAM_WINDOW_BYTES)
        .http2_initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .build(tls()?.enable_all_versions().wrap_connector(tcp.clone()));
    let alone = Client::builder(TokioExecutor::new())
        .http1_max_buf_size(READ_BYTES_MAX)
        .pool_max_idle_per_host(0)
        .build(tls()?.enable_http1().wrap_connector(tcp));
    let layers = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from);
    Ok(Transport {
        shared: connection_of(layers.service::<Client<_, Body>>(shared)),
        alone: connection_of(layers.service::<Client<_, Body>>(alone)),
    })
}

/// Sends requests to this service.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::stream;
    use http::Version;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use hyper_util::server::conn::auto;
    use tokio::net::TcpListener;
    use tokio::sync::watch;
    use tokio_rustls::TlsAcceptor;

    use super::*;
    use crate::runtime::serving::certificate::server_config;
    use crate::runtime::serving::loopback;

    /// A server of both versions, as an apiserver is: the head of its answers comes, and their end does not.
    struct Server {
        config: kube::Config,
        /// How many connections it has been asked for.
        opened: Arc<AtomicUsize>,
        /// How many of these there are.
        open: watch::Receiver<usize>,
    }

    async fn server() -> Server {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tls = (*server_config(None).unwrap()).clone();
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let (acceptor, opened, (count, open)) = (TlsAcceptor::from(Arc::new(tls)), Arc::default(), watch::channel(0));
        let accepted: Arc<AtomicUsize> = Arc::clone(&opened);
        tokio::spawn(async move {
            loop {
                let stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
                accepted.fetch_add(1, Ordering::Relaxed);
                count.send_modify(|open| *open += 1);
                let count = count.clone();
                tokio::spawn(async move {
                    let answer = service_fn(async |_| Ok::<_, hyper::Error>(loopback::stream(stream::pending())));
                    let server = auto::Builder::new(TokioExecutor::new());
                    // However it ends, it has ended.
                    let _ = server.serve_connection(TokioIo::new(stream), answer).await;
                    count.send_modify(|open| *open -= 1);
                });
            }
        });
        let mut config = kube::Config::new(format!("https://{address}").parse().unwrap());
        config.accept_invalid_certs = true;
        Server { config, opened, open }
    }

    async fn ask(connection: &Connection) -> Response<AnswerBody> {
        connection.clone().oneshot(Request::get("/").body(Body::empty()).unwrap()).await.unwrap()
    }

    #[tokio::test]
    async fn what_is_shared_is_one_connection_of_http_2() {
        let Server { config, opened, .. } = server().await;
        let Transport { shared, .. } = transport(&config).unwrap();
        let watches = [ask(&shared).await, ask(&shared).await];
        assert_eq!(watches.map(|answer| answer.version()), [Version::HTTP_2; 2]);
        assert_eq!(opened.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn each_watch_alone_is_a_connection_of_http_1_that_ends_with_it() {
        let Server { config, opened, mut open } = server().await;
        let Transport { alone, .. } = transport(&config).unwrap();
        let watches = [ask(&alone).await, ask(&alone).await];
        assert_eq!((opened.load(Ordering::Relaxed), *open.borrow()), (2, 2));
        assert_eq!(watches.map(|answer| answer.version()), [Version::HTTP_11; 2]);
        let closed = open.wait_for(|open| *open == 0);
        tokio::time::timeout(Duration::from_secs(20), closed).await.expect("they are closed in time").unwrap();
    }
}
