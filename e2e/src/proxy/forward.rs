//! One request on its way: what the rules do to it, and the apiserver's answer.
//! Left out: upgrades (exec, port-forward) and retries.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use futures::TryStreamExt;
use http::header::{CONTENT_TYPE, HOST, RETRY_AFTER};
use http::request::Parts;
use http::{Request, Response, StatusCode, Uri, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::rules::{Action, Seen, Verdict};
use super::state::{Exchange, Noted, State};
use super::watches::{self, Body};

/// The apiserver. HTTP/1.1, so that watches share no connection and one that is held back holds back no other.
#[derive(Clone)]
pub(super) struct Upstream {
    server: String,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Upstream {
    pub(super) fn new(server: &str, ca: CertificateDer<'static>, provider: Arc<CryptoProvider>) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(ca).context("trust the cluster's authority")?;
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .context("choose TLS versions")?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http1().build();
        Ok(Self { server: server.to_owned(), client: Client::builder(TokioExecutor::new()).build(connector) })
    }

    async fn send(&self, head: &Parts, body: Bytes) -> io::Result<Response<Incoming>> {
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = head.method.clone();
        *request.uri_mut() = format!("{}{path}", self.server).parse::<Uri>().map_err(io::Error::other)?;
        *request.headers_mut() = head.headers.clone();
        // The client's name for the proxy; ours for the apiserver takes its place.
        request.headers_mut().remove(HOST);
        self.client.request(request).await.map_err(io::Error::other)
    }
}

#[derive(Clone)]
pub(super) struct Forwarder {
    state: Arc<State>,
    upstream: Upstream,
}

impl Forwarder {
    pub(super) fn new(state: Arc<State>, upstream: Upstream) -> Self {
        Self { state, upstream }
    }

    /// An error closes the connection (over HTTP/2, the stream) without an answer.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> io::Result<Response<Body>> {
        let (head, body) = request.into_parts();
        let exchange = self.note(&head);
        let seen = Seen {
            method: head.method.clone(),
            path: head.uri.path().to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            body: body.collect().await.map_err(io::Error::other)?.to_bytes(),
        };
        let response = self.act(&head, &seen, &exchange).await?;
        exchange.update(|exchange| exchange.status = Some(response.status()));
        Ok(response)
    }

    async fn act(&self, head: &Parts, seen: &Seen, exchange: &Noted) -> io::Result<Response<Body>> {
        match self.state.rules.action(seen) {
            None => self.forward(head, seen, exchange).await,
            Some(Action::Delay(delay)) => {
                sleep(delay).await;
                self.forward(head, seen, exchange).await
            }
            Some(Action::Reply { status, retry_after }) => refuse(status, retry_after),
            Some(Action::LoseResponse) => {
                self.forward_whole(head, seen, exchange).await?;
                Err(io::Error::other("the answer is lost"))
            }
            Some(Action::Before(hook)) => match hook(seen.clone()).await {
                Verdict::Continue => self.forward(head, seen, exchange).await,
                Verdict::Drop => Err(io::Error::other("the request is lost")),
            },
            Some(Action::After(hook)) => {
                let response = self.forward_whole(head, seen, exchange).await?;
                match hook(seen.clone()).await {
                    Verdict::Continue => Ok(response),
                    Verdict::Drop => Err(io::Error::other("the answer is lost")),
                }
            }
        }
    }

    async fn forward(&self, head: &Parts, seen: &Seen, exchange: &Noted) -> io::Result<Response<Body>> {
        let response = self.send(head, seen, exchange).await?;
        if !seen.is_watch() || !response.status().is_success() {
            return Ok(response.map(|body| body.map_err(io::Error::other).boxed_unsync()));
        }
        let commands = self.state.watches.open(&seen.path);
        Ok(response.map(|body| {
            let bytes = body.into_data_stream().map_err(io::Error::other);
            watches::pass_on(bytes, commands)
        }))
    }

    /// As [`Self::forward`], but returns only once the whole answer is here: then the apiserver has done its work.
    async fn forward_whole(&self, head: &Parts, seen: &Seen, exchange: &Noted) -> io::Result<Response<Body>> {
        let (head, body) = self.send(head, seen, exchange).await?.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        Ok(Response::from_parts(head, whole(body)))
    }

    async fn send(&self, head: &Parts, seen: &Seen, exchange: &Noted) -> io::Result<Response<Incoming>> {
        let mut response = self.upstream.send(head, seen.body.clone()).await?;
        exchange.update(|exchange| exchange.upstream_status = Some(response.status()));
        // Of the connection to the apiserver, and not allowed in HTTP/2.
        for name in ["connection", "transfer-encoding", "keep-alive"] {
            response.headers_mut().remove(name);
        }
        *response.version_mut() = Version::default();
        Ok(response)
    }

    fn note(&self, head: &Parts) -> Arc<Noted> {
        self.state.note(Exchange {
            at: Instant::now(),
            method: head.method.clone(),
            path: head.uri.path().to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            status: None,
            upstream_status: None,
        })
    }
}

fn refuse(status: StatusCode, retry_after: Option<Duration>) -> io::Result<Response<Body>> {
    let reason = match status {
        StatusCode::CONFLICT => "Conflict",
        StatusCode::GONE => "Expired",
        StatusCode::NOT_FOUND => "NotFound",
        StatusCode::UNAUTHORIZED => "Unauthorized",
        StatusCode::FORBIDDEN => "Forbidden",
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
        StatusCode::GATEWAY_TIMEOUT => "Timeout",
        _ => "InternalError",
    };
    let mut body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("{reason} by the fault proxy"), "reason": reason, "code": status.as_u16(),
    });
    let mut response = Response::builder().status(status).header(CONTENT_TYPE, "application/json");
    if let Some(wait) = retry_after {
        body["details"] = json!({ "retryAfterSeconds": wait.as_secs() });
        response = response.header(RETRY_AFTER, wait.as_secs());
    }
    response.body(whole(Bytes::from(body.to_string()))).map_err(io::Error::other)
}

fn whole(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}
