//! A TLS proxy between one client and the apiserver that breaks what a network, an apiserver or an etcd can break, when a
//! test says so, and writes down every request that passed.
//!
//! [`Rule`]s act on requests, [`Proxy::freeze_watches`] and its like on watches that are open. Left out: the apiserver's
//! own state. A proxy cannot make a list stale, only keep what happened since from being seen.

mod forward;
mod rules;
mod state;
mod watches;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::cluster::Cluster;
use forward::{Forwarder, Upstream};
pub use rules::{Action, Hook, Pattern, Rule, Seen, Verdict};
pub use state::Exchange;
use state::State;
use watches::Command;

/// A running proxy; ends when dropped.
pub struct Proxy {
    port: u16,
    state: Arc<State>,
    /// Aborts its tasks when dropped, and with them all connections.
    _server: JoinSet<()>,
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
