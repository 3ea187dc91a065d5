//! HTTPS for the kubelet, Prometheus and people: health is open to all, everything else needs permission, as upstream.
//!
//! It serves `/livez`, `/readyz`, `/healthz` (with `?verbose`, `?exclude=` and one path per check), `/debug/flags/v`,
//! the pages that [`Site::page`] adds, and `/why/…` to clients that may get the object. Every other request is
//! authenticated by TokenReview and authorized by SubjectAccessReview. Upstream reviews unknown paths too; here an
//! unknown path is answered with 404 first, because otherwise any client could cause any number of reviews.
//! Left out: HTTP/2 (it has been abused against other servers, and no client here needs it), client certificates,
//! profiling.

mod auth;
mod certificate;
mod health;
#[cfg(test)]
pub(crate) mod loopback;
mod places;
mod query;
mod turns;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::io::Errno;
use serde::Serialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::api::explain::{Subject, WHY_PATH};
use crate::api::json;
use crate::process::flags::ServingFlags;
use crate::process::telemetry::Verbosity;
use crate::transport::client::{Client, ConfigError};
use auth::{Access, Auth, Denied};
pub use certificate::CertificateError;
pub use health::{Checks, Health, Probe};
use places::{Places, Slot};
pub use query::Query;

pub const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// net/http's in upstream's servers: a header that takes longer is not read, an idle connection is closed.
const HEADER_MAX: Duration = Duration::from_secs(32);
const BODY_MAX: Duration = Duration::from_secs(10);
const BODY_BYTES_MAX: usize = 1024;
/// A connection ends after this time, however slowly the client reads. Scrapers reconnect.
const CONNECTION_MAX: Duration = Duration::from_secs(600);
const LAST_ANSWER_MAX: Duration = Duration::from_secs(30);
const BUFFER_BYTES_MAX: usize = 16 * 1024;

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServingError {
    /// `--tls-cert-file` or `--tls-private-key-file` cannot be used.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("cannot listen on {address} (--bind-address, --secure-port): {cause}")]
    Listen {
        /// `--bind-address` and `--secure-port`.
        address: SocketAddr,
        cause: io::Error,
    },
    #[error(transparent)]
    Client(#[from] ConfigError),
    /// The system gives no random bytes.
    #[error("no random bytes available")]
    Randomness,
}

type Content = UnsyncBoxBody<Bytes, Infallible>;
type Read = Box<dyn Fn(&Query) -> Content + Send + Sync>;

/// A page, made anew for each client that may GET its path.
pub(crate) struct Page {
    content_type: &'static str,
    read: Read,
}

impl Page {
    /// Each piece is made once the client has taken those before.
    pub(crate) fn in_pieces<P: Iterator<Item = String> + Send + 'static>(
        content_type: &'static str,
        read: impl Fn(&Query) -> P + Send + Sync + 'static,
    ) -> Self {
        let read = Box::new(move |query: &Query| {
            let pieces = stream::iter(read(query).map(|piece| Ok(Frame::data(Bytes::from(piece)))));
            StreamBody::new(pieces).boxed_unsync()
        });
        Self { content_type, read }
    }
}

type Explain = Box<dyn Fn(Subject, &Query) -> Answer + Send + Sync>;
type FindPage = Box<dyn Fn(&str) -> Option<Arc<Page>> + Send + Sync>;

enum Found<'a> {
    Page(Arc<Page>),
    Why(&'a Explain, Subject),
    Verbosity,
    NewVerbosity,
    Probe(Probe),
    Check(Probe, String),
}

pub struct Site {
    checks: Checks,
    verbosity: Verbosity,
    pages: BTreeMap<&'static str, Arc<Page>>,
    others: FindPage,
    why: Option<Explain>,
}

impl Site {
    pub fn new(checks: Checks, verbosity: Verbosity) -> Self {
        Self { checks, verbosity, pages: BTreeMap::new(), others: Box::new(|_| None), why: None }
    }

    /// Explains objects, as JSON or with `?format=text` as text.
    #[must_use]
    pub fn why<E: Serialize + fmt::Display>(mut self, explain: impl Fn(Subject) -> E + Send + Sync + 'static) -> Self {
        self.why = Some(Box::new(move |subject, query| explanation(&explain(subject), query)));
        self
    }

    /// Adds a page, made anew for each client that may GET its path.
    #[must_use]
    pub fn page(
        mut self,
        path: &'static str,
        content_type: &'static str,
        read: impl Fn(&Query) -> String + Send + Sync + 'static,
    ) -> Self {
        self.pages.insert(path, Arc::new(Page { content_type, read: Box::new(move |query| whole(read(query))) }));
        self
    }

    /// Adds the pages that this finds by their paths; it is asked for each request.
    #[must_use]
    pub(crate) fn others(mut self, find: impl Fn(&str) -> Option<Arc<Page>> + Send + Sync + 'static) -> Self {
        self.others = Box::new(find);
        self
    }

    /// The route of this path. Which paths exist is no secret, because the source names them.
    fn find(&self, method: &Method, path: &str) -> Result<Found<'_>, Answer> {
        let found = self.find_path(path).ok_or_else(Answer::not_found)?;
        match (method, found) {
            (&Method::GET | &Method::HEAD, found) => Ok(found),
            (&Method::PUT, Found::Verbosity) => Ok(Found::NewVerbosity),
            (_, _) => Err(Answer::text(StatusCode::METHOD_NOT_ALLOWED, "405 method not allowed\n")),
        }
    }

    fn find_path(&self, path: &str) -> Option<Found<'_>> {
        if let Some(page) = self.pages.get(path).cloned().or_else(|| (self.others)(path)) {
            return Some(Found::Page(page));
        }
        if let (Some(explain), Some(object)) = (&self.why, path.strip_prefix(WHY_PATH)) {
            return Some(Found::Why(explain, Subject::of_path(object)?));
        }
        match path.split('/').collect::<Vec<_>>()[..] {
            ["", "debug", "flags", "v"] => Some(Found::Verbosity),
            ["", probe] => Probe::named(probe).map(Found::Probe),
            ["", probe, ref check @ ..] => {
                let (probe, check) = (Probe::named(probe)?, check.join("/"));
                self.checks.has(probe, &check).then_some(Found::Check(probe, check))
            }
            _ => None,
        }
    }

    fn answer(&self, found: &Found<'_>, query: &Query, body: &[u8]) -> Response<Content> {
        let answer = match found {
            Found::Page(page) => return response(StatusCode::OK, page.content_type, (page.read)(query)),
            Found::Why(explain, object) => explain(object.clone(), query),
            Found::Verbosity => Answer::text(StatusCode::OK, self.verbosity.level().to_string()),
            Found::NewVerbosity => self.set_verbosity(body),
            Found::Probe(probe) => self.checks.answer(*probe, query),
            Found::Check(probe, check) => self.checks.answer_one(*probe, check).unwrap_or_else(Answer::not_found),
        };
        answer.into()
    }

    /// The code and the body that a visitor gets who may see everything.
    #[cfg(test)]
    pub(crate) async fn get(&self, address: &str) -> (u16, String) {
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let response = match self.find(&Method::GET, path) {
            Ok(found) => self.answer(&found, &Query::new(query), b""),
            Err(answer) => answer.into(),
        };
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (head.status.as_u16(), String::from_utf8_lossy(&body).into_owned())
    }

    /// Upstream: `StringFlagPutHandler`, staging/src/k8s.io/apiserver/pkg/server/routes/flags.go.
    fn set_verbosity(&self, body: &[u8]) -> Answer {
        let text = String::from_utf8_lossy(body);
        match text.trim().parse() {
            Ok(level) => {
                self.verbosity.set(level);
                Answer::text(StatusCode::OK, format!("successfully set klog.logging.verbosity to {level}"))
            }
            Err(_) => Answer::text(StatusCode::BAD_REQUEST, format!("error parsing {text:?} as a log level\n")),
        }
    }
}

fn explanation(explanation: &(impl Serialize + fmt::Display), query: &Query) -> Answer {
    if query.value("format") == Some("text") {
        return Answer::text(StatusCode::OK, explanation.to_string());
    }
    let body = String::from_utf8_lossy(&json(explanation)).into_owned() + "\n";
    Answer { code: StatusCode::OK, content_type: JSON, body }
}

struct Answer {
    code: StatusCode,
    content_type: &'static str,
    body: String,
}

impl Answer {
    fn text(code: StatusCode, body: impl Into<String>) -> Self {
        Self { code, content_type: TEXT, body: body.into() }
    }

    fn not_found() -> Self {
        Self::text(StatusCode::NOT_FOUND, "404 page not found\n")
    }
}

impl From<Denied> for Answer {
    fn from(denied: Denied) -> Self {
        let (code, content_type, body) = denied.into_parts();
        Self { code, content_type, body }
    }
}

impl From<Answer> for Response<Content> {
    fn from(answer: Answer) -> Self {
        response(answer.code, answer.content_type, whole(answer.body))
    }
}

fn response(code: StatusCode, content_type: &'static str, content: Content) -> Response<Content> {
    let mut response = Response::new(content);
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if code == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

fn whole(text: String) -> Content {
    Full::new(Bytes::from(text)).boxed_unsync()
}

/// A running server; dropping it ends it and its connections.
pub struct Server {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Starts to serve as the flags say; `None` if `--secure-port` is 0. Reviews are sent as `client`, over a
    /// connection of their own. Call it inside the tokio runtime.
    ///
    /// # Errors
    /// When the certificate cannot be used or the address not be listened on.
    pub async fn start(flags: &ServingFlags, site: Site, client: &Client) -> Result<Option<Self>, ServingError> {
        if flags.secure_port == 0 {
            return Ok(None);
        }
        let listener = listen(flags.bind_address, flags.secure_port).await?;
        Self::on(listener, flags, site, client).map(Some)
    }

    fn on(listener: TcpListener, flags: &ServingFlags, site: Site, client: &Client) -> Result<Self, ServingError> {
        let acceptor = TlsAcceptor::from(certificate::server_config(flags.certificate())?);
        let address = listener.local_addr().map_err(|cause| {
            let address = SocketAddr::new(flags.bind_address, flags.secure_port);
            ServingError::Listen { address, cause }
        })?;
        let auth = Auth::new(client, flags.authorization_always_allow_paths.clone())?;
        let visit = Arc::new(Visit { site, auth });
        tracing::info!(%address, "serving securely");
        Ok(Self { address, accepting: tokio::spawn(accept(listener, acceptor, visit)) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// An unspecified address means all addresses of both families, as in Go.
async fn listen(ip: IpAddr, port: u16) -> Result<TcpListener, ServingError> {
    if ip.is_unspecified()
        && let Ok(listener) = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await
    {
        return Ok(listener);
    }
    let address = SocketAddr::new(ip, port);
    TcpListener::bind(address).await.map_err(|cause| ServingError::Listen { address, cause })
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, visit: Arc<Visit>) {
    let places = Places::default();
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let (acceptor, visit, slot) = (acceptor.clone(), Arc::clone(&visit), places.take(peer.ip()));
                connections.spawn(async move {
                    tokio::select! {
                        () = serve(stream, acceptor, visit, &slot) => {}
                        () = slot.closed() => {}
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                if is_exhausted(&error) {
                    sleep(Duration::from_secs(1)).await;
                }
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Whether only waiting helps. Any other error, such as EPROTO, is one of the peer's, and is no reason to let others wait.
fn is_exhausted(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM))
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, visit: Arc<Visit>, slot: &Slot) {
    // As Go's: otherwise the first answer waits 40 ms until the client acknowledges the end of the handshake.
    let _ = stream.set_nodelay(true);
    let Ok(Ok(stream)) = timeout(HANDSHAKE_MAX, acceptor.accept(stream)).await else { return };
    let service = service_fn(move |request| {
        slot.asked();
        let visit = Arc::clone(&visit);
        async move { Ok::<_, Infallible>(visit.answer(slot.peer(), request).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_MAX)
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    if let Ok(outcome) = timeout(CONNECTION_MAX, connection.as_mut()).await {
        if let Err(error) = outcome {
            tracing::trace!(%error, "a connection broke");
        }
        return;
    }
    connection.as_mut().graceful_shutdown();
    // A client that has not read by then will not read.
    let _ = timeout(LAST_ANSWER_MAX, connection).await;
}

struct Visit {
    site: Site,
    auth: Auth,
}

impl Visit {
    async fn answer(&self, peer: IpAddr, request: Request<Incoming>) -> Response<Content> {
        let (head, body) = request.into_parts();
        // First, because it costs no review.
        let found = match self.site.find(&head.method, head.uri.path()) {
            Ok(found) => found,
            Err(answer) => return answer.into(),
        };
        let verb = head.method.as_str().to_ascii_lowercase();
        let access = match &found {
            Found::Why(_, object) => Access::Object(object),
            Found::Page(_) | Found::Verbosity | Found::NewVerbosity | Found::Probe(_) | Found::Check(..) => {
                Access::Path { verb: &verb, path: head.uri.path() }
            }
        };
        if let Err(denied) = self.auth.check(peer, access, &head.uri, &head.headers).await {
            return Answer::from(denied).into();
        }
        let Ok(Ok(body)) = timeout(BODY_MAX, Limited::new(body, BODY_BYTES_MAX).collect()).await else {
            return Answer::text(StatusCode::BAD_REQUEST, "the body is too long or too slow\n").into();
        };
        let query = Query::new(head.uri.query().unwrap_or_default());
        self.site.answer(&found, &query, &body.to_bytes())
    }
}

#[cfg(test)]
mod tests;
