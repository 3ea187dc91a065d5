//! Requests to operators, over a port forwarded to the leader's pod or to a given address.
//!
//! An operator gets a token of an account, for operators alone ([`shared::api::explain::AUDIENCE`]), and never the
//! caller's credentials: one that was taken over could act as the caller.

#[cfg(test)]
pub(crate) mod fakes;
mod pod;
mod server;
#[cfg(test)]
mod tests;
mod tls;
mod token;

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client};
use rustls::pki_types::{CertificateDer, ServerName};
use serde::de::DeserializeOwned;
use shared::transport::clock::Clock;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

pub use self::server::{Server, Servers, parse_server, read_servers};

const TIMEOUT: Duration = Duration::from_secs(10);
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// The account of the process with all controllers, as in `manifests/one-process`.
const ONE_PROCESS: &str = "one-process-operator";
/// The end of the name of a family's process, its Lease and its account, as in `manifests/groups`.
const GROUP: &str = "-group-operator";

/// A refusal that a retry does not change.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// The replica to ask: the one that holds a Lease.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Leader {
    /// By this name, that of the Lease, `--server` gives its address.
    lease: String,
    /// The ServiceAccount of its pod.
    account: String,
    /// Its pod or, in the network of a node, the node; empty if nobody holds the Lease.
    pod: String,
}

impl Leader {
    pub(crate) fn of_operator(operator: &str, pod: &str) -> Self {
        Self { lease: operator.to_owned(), account: operator.to_owned(), pod: pod.to_owned() }
    }

    /// The process with several controllers that holds this common Lease.
    pub(crate) fn of_process(lease: &str, pod: &str) -> Self {
        let account = if lease.ends_with(GROUP) { lease } else { ONE_PROCESS };
        Self { lease: lease.to_owned(), account: account.to_owned(), pod: pod.to_owned() }
    }

    pub(crate) fn lease(&self) -> &str {
        &self.lease
    }

    pub(crate) fn account(&self) -> &str {
        &self.account
    }

    pub(crate) fn pod(&self) -> &str {
        &self.pod
    }

    pub(crate) fn is_process(&self) -> bool {
        self.account == ONE_PROCESS || self.account.ends_with(GROUP)
    }

    /// Whether it may be in the place of kube-controller-manager's static pod.
    pub(crate) fn is_all(&self) -> bool {
        self.account == ONE_PROCESS
    }
}

pub struct Reach {
    client: Client,
    namespace: String,
    servers: Servers,
    account: String,
    token: token::TokenCache,
    clock: Clock,
}

#[derive(Clone, Debug)]
pub struct ReachOptions {
    pub namespace: String,
    pub account: String,
    pub servers: Servers,
}

impl Default for ReachOptions {
    fn default() -> Self {
        let (namespace, account) = ("kube-system".to_owned(), "operators-viewer".to_owned());
        Self { namespace, account, servers: Servers::new() }
    }
}

impl Reach {
    pub fn new(client: Client, options: ReachOptions) -> Self {
        let ReachOptions { namespace, account, servers } = options;
        let (token, clock) = (token::TokenCache::default(), Clock::system());
        Self { client, namespace, servers, account, token, clock }
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }

    /// Whether the address for this Lease is given.
    pub fn knows(&self, lease: &str) -> bool {
        self.servers.contains_key(lease)
    }

    pub(crate) async fn token(&self) -> Result<String> {
        let new = async || self.new_token().await;
        self.token.get(None, self.clock.now(), &new).await
    }

    async fn new_token(&self) -> Result<token::Token> {
        token::request(&self.client, &self.namespace, &self.account).await
    }

    pub(crate) async fn ask<T: DeserializeOwned>(&self, leader: &Leader, path: &str) -> Result<T> {
        let answer = timeout(TIMEOUT, self.get(leader, path)).await;
        let body = answer.with_context(|| format!("no answer within {} s", TIMEOUT.as_secs()))??;
        serde_json::from_slice(&body).context("cannot parse the answer; its version may differ")
    }

    async fn get(&self, leader: &Leader, path: &str) -> Result<Bytes> {
        let new = async || self.new_token().await;
        let send = async |token: String| self.send(leader, (token.as_str(), path)).await;
        let (status, body) = self.token.send_with(self.clock.now(), &new, &send).await?;
        checked(status, body)
    }

    async fn send(&self, leader: &Leader, (token, path): (&str, &str)) -> Result<(StatusCode, Bytes)> {
        if let Some(server) = self.servers.get(&leader.lease) {
            let address = (server.host(), server.address.port_u16().unwrap_or_default());
            let stream =
                TcpStream::connect(address).await.with_context(|| format!("cannot connect to {}", server.address))?;
            return send(stream, server.certificate.clone(), token, path).await;
        }
        if leader.pod.is_empty() {
            bail!("no replica holds its Lease");
        }
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let (pod, port) = pod::find(&pods, leader).await?;
        let mut forwarder = pods.portforward(&pod, &[port]).await.map_err(|error| explained(&error, &pod))?;
        let stream = forwarder.take_stream(port).context("no stream for the forwarded port")?;
        let answer = send(stream, None, token, path).await;
        // The kubelet reports a refused connection beside the stream.
        let said = forwarder.take_error(port);
        forwarder.abort();
        match (answer, said) {
            (Err(error), Some(said)) => {
                let said = timeout(Duration::from_millis(200), said).await.ok().flatten();
                Err(said.map_or(error, |said| anyhow!("cannot forward a port to pod {pod}: {said}")))
            }
            (answer, _) => answer,
        }
    }
}

fn explained(error: &kube::Error, pod: &str) -> anyhow::Error {
    let said = error.to_string();
    if said.contains("403") {
        return anyhow!("you lack permission to forward a port to pod {pod} (get and create pods/portforward)");
    }
    anyhow!("cannot forward a port to pod {pod}: {said}")
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    certificate: Option<CertificateDer<'static>>,
    token: &str,
    path: &str,
) -> Result<(StatusCode, Bytes)> {
    let name = ServerName::try_from("localhost").context("invalid TLS name")?;
    let stream = tls::connector(certificate)?.connect(name, stream).await.context("TLS handshake failed")?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.context("HTTP handshake failed")?;
    let connection = tokio::spawn(connection);
    let request = Request::get(path)
        .header(http::header::HOST, "localhost")
        .header(http::header::AUTHORIZATION, format!("Bearer {token}"))
        .body(Empty::<Bytes>::new())
        .context("cannot make a request")?;
    let answer = sender.send_request(request).await.context("cannot send the request")?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), BYTES_MAX).collect().await;
    connection.abort();
    Ok((status, body.map_err(|error| anyhow!("cannot read the answer: {error}"))?.to_bytes()))
}

fn checked(status: StatusCode, body: Bytes) -> Result<Bytes> {
    match status {
        StatusCode::OK => Ok(body),
        StatusCode::UNAUTHORIZED => bail!(Refused("it rejected the token (401)".to_owned())),
        StatusCode::FORBIDDEN => {
            bail!(Refused(format!("permission denied (403): {}", String::from_utf8_lossy(&body).trim())))
        }
        StatusCode::NOT_FOUND => {
            bail!("no such page: its version is older, or it does not handle such objects (404)")
        }
        status => bail!("it answered {status}: {}", String::from_utf8_lossy(&body).trim()),
    }
}
