//! A TLS proxy between one client and the apiserver that breaks what a network, an apiserver or an etcd can break, when a
//! test says so, and writes down every request that passed.
//!
//! [`Rule`]s act on requests, [`Proxy::freeze_watches`] and its like on watches that are open. Left out: the apiserver's
//! own state. A proxy cannot make a list stale, only keep what happened since from being seen.

mod forward;
mod rules;
mod watches;

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{Method, StatusCode};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use crate::cluster::Cluster;
use forward::{Forwarder, Upstream};
use rules::Rules;
pub use rules::{Action, Hook, Pattern, Rule, Seen, Verdict};
use watches::{Command, Watches};

/// A request that came by.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub at: Instant,
    pub method: Method,
    pub path: String,
    pub query: String,
    /// The answer the client got; none if it got none, or not yet.
    pub status: Option<StatusCode>,
    /// The answer the apiserver gave; none if it was not asked, or not yet.
    pub upstream_status: Option<StatusCode>,
}

impl Exchange {
    /// Whether it was meant to change something.
    pub fn is_write(&self) -> bool {
        rules::is_write(&self.method)
    }

    /// Whether it asked for the objects of a kind: a list, the first page of one, or a watch that begins with one.
    pub fn is_list(&self) -> bool {
        let has = |parameter: &str| self.query.split('&').any(|other| other.starts_with(parameter));
        let begins = !has("watch=1") && !has("continue=");
        self.method == Method::GET && is_collection(&self.path) && (begins || has("sendInitialEvents=true"))
    }
}

/// Whether a path names all objects of a kind, or those of one namespace.
fn is_collection(path: &str) -> bool {
    let mut segments = path.split('/').skip(1);
    match segments.next() {
        Some("api") => segments.next(),
        Some("apis") => segments.nth(1),
        _ => return false,
    };
    matches!(segments.collect::<Vec<_>>()[..], ["namespaces", _, _] | [_])
}

/// A running proxy; ends when dropped.
pub struct Proxy {
    port: u16,
    state: Arc<State>,
    /// Aborts its tasks when dropped, and with them all connections.
    _server: JoinSet<()>,
}

/// The state that the connections share with the test.
#[derive(Default)]
struct State {
    rules: Rules,
    watches: Watches,
    exchanges: Mutex<Vec<Arc<Noted>>>,
}

/// An exchange that may still get its answers.
struct Noted(Mutex<Exchange>);

impl Noted {
    fn update(&self, change: impl FnOnce(&mut Exchange)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn now(&self) -> Exchange {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl State {
    fn note(&self, exchange: Exchange) -> Arc<Noted> {
        let noted = Arc::new(Noted(Mutex::new(exchange)));
        self.exchanges().push(Arc::clone(&noted));
        noted
    }

    fn exchanges(&self) -> MutexGuard<'_, Vec<Arc<Noted>>> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proxy {
    /// A proxy before the apiserver of a local cluster. It belongs to the current runtime.
    pub async fn start(cluster: &Cluster) -> Result<Self> {
        let pki = cluster.pki()?;
        let mut tls = pki.tls("proxy")?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("open the proxy's port")?;
        let port = listener.local_addr().context("open the proxy's port")?.port();
        let state = Arc::new(State::default());
        let provider = Arc::clone(tls.crypto_provider());
        let upstream = Upstream::new(&cluster.server()?, pki.ca_der(), provider)?;
        let forwarder = Forwarder::new(Arc::clone(&state), upstream);
        let mut server = JoinSet::new();
        server.spawn(accept(listener, TlsAcceptor::from(Arc::new(tls)), forwarder));
        Ok(Self { port, state, _server: server })
    }

    /// Where it is: the server in the client's kubeconfig.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Applies `rule` from now on. Rules are asked in the order in which they were added; the first that fires counts.
    pub fn add(&self, rule: Rule) {
        self.state.rules.add(rule);
    }

    /// Forgets all rules, and lets all watches go on.
    pub fn clear(&self) {
        self.state.rules.clear();
        self.state.watches.thaw();
    }

    /// Holds back the events of the watches at `path`, the ones opened from now on included: the client's cache is stale.
    pub fn freeze_watches(&self, path: &str) {
        self.state.watches.freeze(Pattern::new(path));
    }

    /// Lets every watch go on, with all that was held back.
    pub fn thaw_watches(&self) {
        self.state.watches.thaw();
    }

    /// From now on events of the open watches at `path` come `delay` late.
    pub fn delay_watches(&self, path: &str, delay: Duration) -> usize {
        self.state.watches.command(&Pattern::new(path), &Command::Delay(delay))
    }

    /// Breaks the open watches at `path` off; how many there were.
    pub fn cut_watches(&self, path: &str) -> usize {
        self.state.watches.command(&Pattern::new(path), &Command::Cut)
    }

    /// Puts a line between two events of the open watches at `path`, such as one that cannot be decoded.
    pub fn inject_event(&self, path: &str, line: impl Into<Bytes>) -> usize {
        self.state.watches.command(&Pattern::new(path), &Command::Inject(line.into()))
    }

    /// Every request since the start or [`Self::forget_requests`], in the order in which they came.
    pub fn requests(&self) -> Vec<Exchange> {
        self.state.exchanges().iter().map(|noted| noted.now()).collect()
    }

    /// The requests of [`Self::requests`] that were meant to change something at `path`.
    pub fn writes(&self, path: &str) -> Vec<Exchange> {
        let path = Pattern::new(path);
        self.requests().into_iter().filter(|exchange| exchange.is_write() && path.matches(&exchange.path)).collect()
    }

    pub fn forget_requests(&self) {
        self.state.exchanges().clear();
    }
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, forwarder: Forwarder) {
    // Connections end with the proxy.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => { connections.spawn(serve(stream, tls.clone(), forwarder.clone())); }
                Err(error) => return eprintln!("the fault proxy cannot accept: {error}"),
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// A connection that breaks is nothing to report: breaking them is what the proxy is for.
async fn serve(stream: TcpStream, tls: TlsAcceptor, forwarder: Forwarder) {
    // As an apiserver's: otherwise every small answer is late.
    let _ = stream.set_nodelay(true);
    let Ok(stream) = tls.accept(stream).await else { return };
    let service = service_fn(move |request| {
        let forwarder = forwarder.clone();
        async move { forwarder.answer(request).await }
    });
    let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}
