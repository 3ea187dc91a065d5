//! How an operator is asked: by a port forwarded to its leader's pod, or at an address that somebody gave.
//!
//! Left out: the questions.

mod on_node;
mod tls;
mod token;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Portforwarder;
use kube::config::AuthInfo;
use kube::{Api, Client};
use rustls::pki_types::ServerName;
use serde::de::DeserializeOwned;
use shared::runtime::clock::Clock;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// `--secure-port` of every operator in a pod.
const PORT: u16 = 10257;
const TIMEOUT: Duration = Duration::from_secs(10);
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Where operators are, other than in pods.
pub type Servers = BTreeMap<String, Uri>;

/// An operator does not answer this to this caller, however often it is asked.
#[derive(Debug)]
pub(crate) struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// The way to the operators.
pub struct Reach {
    client: Client,
    auth: AuthInfo,
    namespace: String,
    servers: Servers,
    account: String,
    token: token::Kept,
    clock: Clock,
}

/// The settings of the way to the operators.
#[derive(Clone, Debug)]
pub struct ReachOptions {
    /// Where their Leases and pods are.
    pub namespace: String,
    /// Whose token is taken where the kubeconfig has none.
    pub account: String,
    /// Operators outside of pods.
    pub servers: Servers,
}

impl Default for ReachOptions {
    fn default() -> Self {
        let (namespace, account) = ("kube-system".to_owned(), "operators-viewer".to_owned());
        Self { namespace, account, servers: Servers::new() }
    }
}

/// `deployment-operator=https://127.0.0.1:1234`.
pub fn parse_server(text: &str) -> Result<(String, Uri), String> {
    let (name, address) = text.split_once('=').ok_or("it is not OPERATOR=https://HOST:PORT")?;
    let address: Uri = address.trim().parse().map_err(|error| format!("{address}: {error}"))?;
    if address.scheme_str() != Some("https") || address.port_u16().is_none() {
        return Err(format!("{address}: it is not https://HOST:PORT"));
    }
    Ok((name.trim().to_owned(), address))
}

/// The file's lines, each as one `--server`.
pub fn read_servers(path: &Path) -> Result<Servers> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| parse_server(line).map_err(|error| anyhow!("{}: {line}: {error}", path.display()))).collect()
}

impl Reach {
    /// The way by this client, which was made from these credentials.
    pub fn new(client: Client, auth: AuthInfo, options: ReachOptions) -> Self {
        let ReachOptions { namespace, account, servers } = options;
        let (token, clock) = (token::Kept::default(), Clock::system());
        Self { client, auth, namespace, servers, account, token, clock }
    }

    /// Where the operators' Leases and pods are.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The operators that somebody gave an address of.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }

    /// Whether there is an address or a pod to ask.
    pub fn knows(&self, operator: &str) -> bool {
        self.servers.contains_key(operator)
    }

    /// The token that operators are shown.
    pub(crate) async fn token(&self) -> Result<String> {
        let new = async || self.new_token().await;
        self.token.get(None, self.clock.now(), &new).await
    }

    async fn new_token(&self) -> Result<token::Token> {
        match token::of_kubeconfig(&self.auth).await? {
            Some(token) => Ok(token),
            None => token::of_account(&self.client, &self.namespace, &self.account).await,
        }
    }

    /// The operator's answer; `pod` is its leader's.
    pub async fn ask<T: DeserializeOwned>(&self, operator: &str, pod: &str, path: &str) -> Result<T> {
        let answer = timeout(TIMEOUT, self.get(operator, pod, path)).await;
        let body = answer.with_context(|| format!("no answer within {} s", TIMEOUT.as_secs()))??;
        serde_json::from_slice(&body).context("its answer is not what this version understands")
    }

    async fn get(&self, operator: &str, pod: &str, path: &str) -> Result<Bytes> {
        let new = async || self.new_token().await;
        let send = async |token: String| self.send(operator, pod, (token.as_str(), path)).await;
        let (status, body) = self.token.show(self.clock.now(), &new, &send).await?;
        said(status, body)
    }

    /// Status and body of the answer to a client with this token.
    async fn send(&self, operator: &str, pod: &str, (token, path): (&str, &str)) -> Result<(StatusCode, Bytes)> {
        if let Some(server) = self.servers.get(operator) {
            let (host, port) = (server.host().unwrap_or_default(), server.port_u16().unwrap_or(PORT));
            let host = host.trim_matches(['[', ']']);
            let stream = TcpStream::connect((host, port)).await.with_context(|| format!("connect to {server}"))?;
            return send(stream, token, path).await;
        }
        if pod.is_empty() {
            bail!("nobody holds its Lease");
        }
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let (mut forwarder, port) = forward(&pods, operator, pod).await?;
        let stream = forwarder.take_stream(port).context("no stream to the port")?;
        let answer = send(stream, token, path).await;
        // The kubelet's error about a port that nobody listens on comes beside the stream.
        let said = forwarder.take_error(port);
        forwarder.abort();
        match (answer, said) {
            (Err(error), Some(said)) => {
                let said = timeout(Duration::from_millis(200), said).await.ok().flatten();
                Err(said.map_or(error, |said| anyhow!("forward a port to pod {pod}: {said}")))
            }
            (answer, _) => answer,
        }
    }
}

/// A port forwarded to the pod of this name, or to the operator's pod on the node of this name.
async fn forward(pods: &Api<Pod>, operator: &str, pod: &str) -> Result<(Portforwarder, u16)> {
    let error = match pods.portforward(pod, &[PORT]).await {
        Ok(forwarder) => return Ok((forwarder, PORT)),
        Err(error) => error,
    };
    if is_absent(&error)
        && let Some((pod, port)) = on_node::find(pods, operator, pod).await?
    {
        let forwarder = pods.portforward(&pod, &[port]).await.map_err(|error| explained(&error, &pod))?;
        return Ok((forwarder, port));
    }
    Err(explained(&error, pod))
}

fn is_absent(error: &kube::Error) -> bool {
    error.to_string().contains("404")
}

/// Why no port can be forwarded.
fn explained(error: &kube::Error, pod: &str) -> anyhow::Error {
    let said = error.to_string();
    if is_absent(error) {
        return anyhow!("its leader {pod} is no pod here; give its address with --server");
    }
    if said.contains("403") {
        return anyhow!("you may not forward a port to pod {pod} (create pods/portforward)");
    }
    anyhow!("forward a port to pod {pod}: {said}")
}

/// One request over this stream.
async fn send(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    token: &str,
    path: &str,
) -> Result<(StatusCode, Bytes)> {
    let name = ServerName::try_from("localhost").context("a name for TLS")?;
    let stream = tls::connector()?.connect(name, stream).await.context("TLS")?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.context("HTTP")?;
    let connection = tokio::spawn(connection);
    let request = Request::get(path)
        .header(http::header::HOST, "localhost")
        .header(http::header::AUTHORIZATION, format!("Bearer {token}"))
        .body(Empty::<Bytes>::new())
        .context("make a request")?;
    let answer = sender.send_request(request).await.context("send a request")?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), BYTES_MAX).collect().await;
    connection.abort();
    Ok((status, body.map_err(|error| anyhow!("read the answer: {error}"))?.to_bytes()))
}

/// The answer's body, or the error that its status means.
fn said(status: StatusCode, body: Bytes) -> Result<Bytes> {
    match status {
        StatusCode::OK => Ok(body),
        StatusCode::UNAUTHORIZED => bail!(Refused("it does not know the token's owner (401)".to_owned())),
        StatusCode::FORBIDDEN => {
            bail!(Refused(format!("you may not ask it this (403): {}", String::from_utf8_lossy(&body).trim())))
        }
        StatusCode::NOT_FOUND => {
            bail!("it does not answer this; its version is older, or it has nothing to do with it (404)")
        }
        status => bail!("it answered {status}: {}", String::from_utf8_lossy(&body).trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_checked_where_it_is_given() {
        assert_eq!(
            parse_server("a=https://127.0.0.1:1").map(|(name, at)| (name, at.port_u16())),
            Ok(("a".to_owned(), Some(1)))
        );
        assert!(parse_server("a").is_err());
        assert_eq!(parse_server("a=http://b:1"), Err("http://b:1/: it is not https://HOST:PORT".to_owned()));
        assert!(parse_server("a=https://b").is_err());
    }
}
