//! An apiserver and an operator for tests.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::{Reach, ReachOptions, Server, Servers};

pub(crate) const OPERATOR: &str = "a-operator";
const TOKEN: &str = "POST /api/v1/namespaces/kube-system/serviceaccounts/operators-viewer/token";

#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, request: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A client of an apiserver that answers `GET /path` and the like so, and makes tokens that name their audiences.
pub(crate) fn apiserver(answer: impl Fn(&str) -> (u16, Value) + Send + Sync + 'static) -> (Client, Log) {
    let (answer, log) = (Arc::new(answer), Log::default());
    let seen = log.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (answer, seen) = (Arc::clone(&answer), seen.clone());
        async move {
            let asked = format!("{} {}", request.method(), request.uri());
            seen.add(asked.clone());
            let body = request.into_body().collect_bytes().await?;
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            let (code, said) = match answer(&asked) {
                (404, _) if asked.starts_with(TOKEN) => (201, with_token(body)),
                answer => answer,
            };
            let mut response = Response::new(Body::from(said.to_string().into_bytes()));
            *response.status_mut() = StatusCode::from_u16(code)?;
            Ok::<_, tower::BoxError>(response)
        }
    });
    (Client::new(service, "default"), log)
}

fn with_token(mut request: Value) -> Value {
    let audiences = request["spec"]["audiences"].as_array().into_iter().flatten();
    let audiences: Vec<&str> = audiences.filter_map(Value::as_str).collect();
    request["status"] =
        json!({"token": format!("for {}", audiences.join(" ")), "expirationTimestamp": "2100-01-01T00:00:00Z"});
    request
}

pub(crate) fn refusal(code: u16) -> (u16, Value) {
    let reason = if code == 404 { "NotFound" } else { "" };
    (code, json!({"kind": "Status", "status": "Failure", "reason": reason, "code": code, "message": "no"}))
}

/// On loopback, with a certificate of its own; the log has the path and the credentials.
pub(crate) struct Operator {
    pub(crate) port: u16,
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) log: Log,
}

impl Operator {
    /// Gives this answer to everybody, until the runtime ends.
    pub(crate) async fn start(answer: Value) -> anyhow::Result<Self> {
        Self::answering(move |_| (200, answer.clone())).await
    }

    /// Answers by the path.
    pub(crate) async fn answering(
        answer: impl Fn(&str) -> (u16, Value) + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).map_err(anyhow::Error::msg)?;
        let certificate = made.cert.der().clone();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let (port, log) = (listener.local_addr()?.port(), Log::default());
        let (answer, seen) = (Arc::new(answer), log.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(stream) = acceptor.accept(stream).await else { continue };
                let (seen, answer) = (seen.clone(), Arc::clone(&answer));
                let service = service_fn(move |request: Request<Incoming>| {
                    let credentials = request.headers().get("authorization").and_then(|value| value.to_str().ok());
                    seen.add(format!("{} {}", request.uri(), credentials.unwrap_or_default()));
                    let (code, said) = answer(request.uri().path());
                    let mut answer = Response::new(Full::new(Bytes::from(said.to_string())));
                    *answer.status_mut() = StatusCode::from_u16(code).unwrap_or_default();
                    async { Ok::<_, Infallible>(answer) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Ok(Self { port, certificate, log })
    }

    pub(crate) fn reach(&self, client: Client, certificate: CertificateDer<'static>) -> anyhow::Result<Reach> {
        self.reach_under(OPERATOR, client, certificate)
    }

    /// By the address that is given for this Lease.
    pub(crate) fn reach_as(&self, lease: &str, client: Client) -> anyhow::Result<Reach> {
        self.reach_under(lease, client, self.certificate.clone())
    }

    fn reach_under(&self, lease: &str, client: Client, certificate: CertificateDer<'static>) -> anyhow::Result<Reach> {
        let servers = Servers::from([(lease.to_owned(), Server::pinned(self.port, certificate)?)]);
        Ok(Reach::new(client, ReachOptions { servers, ..ReachOptions::default() }))
    }
}
