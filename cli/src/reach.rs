//! Requests to operators, over a port forwarded to the leader's pod or to a given address.

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
use shared::transport::clock::Clock;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

const PORT: u16 = 10257;
const TIMEOUT: Duration = Duration::from_secs(10);
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Addresses of operators outside the cluster.
pub type Servers = BTreeMap<String, Uri>;

/// A refusal that a retry does not change.
#[derive(Debug)]
pub(crate) struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

pub struct Reach {
    client: Client,
    auth: AuthInfo,
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

/// Parses `deployment-operator=https://127.0.0.1:1234`.
pub fn parse_server(text: &str) -> Result<(String, Uri), String> {
    let (name, address) = text.split_once('=').ok_or("expected OPERATOR=https://HOST:PORT")?;
    let address: Uri = address.trim().parse().map_err(|error| format!("{address}: {error}"))?;
    if address.scheme_str() != Some("https") || address.port_u16().is_none() {
        return Err(format!("{address}: expected https://HOST:PORT"));
    }
    Ok((name.trim().to_owned(), address))
}

/// Reads a file with one `--server` a line.
pub fn read_servers(path: &Path) -> Result<Servers> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| parse_server(line).map_err(|error| anyhow!("{}: {line}: {error}", path.display()))).collect()
}

impl Reach {
    pub fn new(client: Client, auth: AuthInfo, options: ReachOptions) -> Self {
        let ReachOptions { namespace, account, servers } = options;
        let (token, clock) = (token::TokenCache::default(), Clock::system());
        Self { client, auth, namespace, servers, account, token, clock }
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }

    pub fn knows(&self, operator: &str) -> bool {
        self.servers.contains_key(operator)
    }

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

    pub async fn ask<T: DeserializeOwned>(&self, operator: &str, pod: &str, path: &str) -> Result<T> {
        let answer = timeout(TIMEOUT, self.get(operator, pod, path)).await;
        let body = answer.with_context(|| format!("no answer within {} s", TIMEOUT.as_secs()))??;
        serde_json::from_slice(&body).context("cannot parse the answer; its version may differ")
    }

    async fn get(&self, operator: &str, pod: &str, path: &str) -> Result<Bytes> {
        let new = async || self.new_token().await;
        let send = async |token: String| self.send(operator, pod, (token.as_str(), path)).await;
        let (status, body) = self.token.send_with(self.clock.now(), &new, &send).await?;
        checked(status, body)
    }

    async fn send(&self, operator: &str, pod: &str, (token, path): (&str, &str)) -> Result<(StatusCode, Bytes)> {
        if let Some(server) = self.servers.get(operator) {
            let (host, port) = (server.host().unwrap_or_default(), server.port_u16().unwrap_or(PORT));
            let host = host.trim_matches(['[', ']']);
            let stream =
                TcpStream::connect((host, port)).await.with_context(|| format!("cannot connect to {server}"))?;
            return send(stream, token, path).await;
        }
        if pod.is_empty() {
            bail!("no replica holds its Lease");
        }
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let (mut forwarder, port) = forward(&pods, operator, pod).await?;
        let stream = forwarder.take_stream(port).context("no stream for the forwarded port")?;
        let answer = send(stream, token, path).await;
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

/// Forwards a port to the pod, or to the operator's pod on the node of this name.
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

fn explained(error: &kube::Error, pod: &str) -> anyhow::Error {
    let said = error.to_string();
    if is_absent(error) {
        return anyhow!("its leader {pod} is not a pod of this cluster; set its address with --server");
    }
    if said.contains("403") {
        return anyhow!("you lack permission to forward a port to pod {pod} (create pods/portforward)");
    }
    anyhow!("cannot forward a port to pod {pod}: {said}")
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    token: &str,
    path: &str,
) -> Result<(StatusCode, Bytes)> {
    let name = ServerName::try_from("localhost").context("invalid TLS name")?;
    let stream = tls::connector()?.connect(name, stream).await.context("TLS handshake failed")?;
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
        assert_eq!(parse_server("a=http://b:1"), Err("http://b:1/: expected https://HOST:PORT".to_owned()));
        assert!(parse_server("a=https://b").is_err());
    }
}
