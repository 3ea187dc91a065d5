//! Credentials that change while the process runs, as client-go's: the files of a token, of a client certificate and of
//! the CA are read again, a credential plugin is run again, and new requests go over a new connection.
//!
//! Requests under way, such as a watch, go on over the old connection until they end.
//! Left out: expiry dates. The apiserver knows them best, and answers 401.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response, StatusCode};
use kube::client::Body;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tower::{BoxError, Service, ServiceExt};

use super::account::Tokens;
use super::transport::{AnswerBody, Connection, Interrupted};
use crate::transport::api_error::chain;

/// client-go's: how often files are looked at while all goes well.
const PERIOD: Duration = Duration::from_secs(60);
/// A plugin whose credentials are refused is not run more often than this.
const PLUGIN_PERIOD: Duration = Duration::from_secs(10);
/// So long a process may be refused before it is of no more use.
const REFUSED_MAX: Duration = Duration::from_secs(180);

/// Makes a connection with credentials that do not change.
type Connect = fn(&kube::Config) -> Result<Connection, kube::Error>;

#[derive(Clone)]
pub(super) struct Renewing {
    config: Arc<kube::Config>,
    token_file: Option<Arc<Path>>,
    /// Tokens that a task of this process requests; they go before any other.
    tokens: Option<Tokens>,
    ca_file: Option<Arc<Path>>,
    connect: Connect,
    state: Arc<AsyncMutex<State>>,
    /// Whether the last request was answered, so that the next one finds a connection that is set up.
    is_answered: Arc<AtomicBool>,
}

struct State {
    connection: Connection,
    connected: Instant,
    /// The contents of the certificate's files when the connection was made.
    certificate: Vec<Option<Vec<u8>>>,
    /// The CA by which the connection verifies the apiserver.
    ca: Option<Vec<Vec<u8>>>,
    token: Option<HeaderValue>,
    looked: Instant,
    /// Whether the last answer was that the credentials are not valid.
    is_refused: bool,
}

impl State {
    fn is_due(&self) -> bool {
        self.is_refused || self.looked.elapsed() >= PERIOD
    }
}

impl Renewing {
    /// The first connection is made here, so that credentials that cannot be used are found at once. The configuration
    /// has the content of `ca_file`, if its CA is from a file.
    pub(super) fn new(config: &kube::Config, ca_file: Option<&Path>, connect: Connect) -> Result<Self, kube::Error> {
        let mut config = config.clone();
        let token_file = config.auth_info.token_file.take().map(|file| Arc::from(PathBuf::from(file)));
        if token_file.is_some() {
            // client-go's order: the file goes first.
            config.auth_info.token = None;
        }
        let token = token_file.as_deref().map(read_token).transpose();
        let state = State {
            certificate: read_certificate(&config),
            ca: config.root_cert.clone(),
            connection: connect(&config)?,
            connected: Instant::now(),
            token: token.map_err(kube::Error::Service)?,
            looked: Instant::now(),
            is_refused: false,
        };
        let (config, state) = (Arc::new(config), Arc::new(AsyncMutex::new(state)));
        let ca_file = ca_file.map(Arc::from);
        Ok(Self { config, token_file, tokens: None, ca_file, connect, state, is_answered: Arc::default() })
    }

    /// Sends these tokens in the place of the configuration's.
    pub(super) fn with_tokens(self, tokens: Option<Tokens>) -> Self {
        Self { tokens, ..self }
    }

    async fn current(&self) -> (Connection, Option<HeaderValue>) {
        let mut state = self.state.lock().await;
        if state.is_due() {
            drop(state);
            // A request that gives up must not lose what a plugin answers: the plugin may not run again soon.
            let this = self.clone();
            let _ = tokio::spawn(async move { this.look().await }).await;
            state = self.state.lock().await;
        }
        let requested = self.tokens.as_ref().map(|tokens| tokens.borrow().clone());
        (state.connection.clone(), requested.or_else(|| state.token.clone()))
    }

    /// Files that cannot be read, or that do not fit together because they are just being written, leave all as it is.
    async fn look(&self) {
        let mut state = self.state.lock().await;
        // Another request may have looked meanwhile.
        if !state.is_due() {
            return;
        }
        let state = &mut *state;
        let was_refused = std::mem::replace(&mut state.is_refused, false);
        state.looked = Instant::now();
        match self.token_file.as_deref().map(read_token).transpose() {
            Ok(token) => state.token = token,
            Err(error) => tracing::warn!(error = chain(&*error), "cannot read the token; using the previous one"),
        }
        let certificate = read_certificate(&self.config);
        let is_replaced = certificate != state.certificate && certificate.iter().all(Option::is_some);
        let ca = self.ca_file.as_deref().and_then(read_ca).or_else(|| state.ca.clone());
        let has_plugin = self.config.auth_info.exec.is_some();
        let runs_plugin = has_plugin && was_refused && state.connected.elapsed() >= PLUGIN_PERIOD;
        if !is_replaced && !runs_plugin && ca == state.ca {
            return;
        }
        state.connected = Instant::now();
        let (mut config, connect) = ((*self.config).clone(), self.connect);
        config.root_cert.clone_from(&ca);
        // A plugin is a process that is waited for.
        let connection = tokio::task::spawn_blocking(move || connect(&config)).await;
        match connection.map_err(BoxError::from).and_then(|made| made.map_err(BoxError::from)) {
            Ok(connection) => {
                tracing::info!("credentials reloaded; opening a new connection");
                (state.connection, state.certificate, state.ca) = (connection, certificate, ca);
            }
            Err(error) => tracing::warn!(error = chain(&*error), "new credentials are invalid; keeping the old ones"),
        }
    }
}

impl Service<Request<Body>> for Renewing {
    type Response = Response<AnswerBody>;
    type Error = Interrupted;
    type Future = BoxFuture<'static, Result<Self::Response, Interrupted>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Interrupted>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let (connection, token) = this.current().await;
            if let Some(token) = token {
                request.headers_mut().insert(AUTHORIZATION, token);
            }
            let answering = connection.oneshot(request);
            let is_set_up = this.is_answered.load(Ordering::Relaxed);
            let answer = if is_set_up { answering.await } else { apart(answering).await };
            this.is_answered.store(answer.is_ok(), Ordering::Relaxed);
            let answer = answer?;
            if answer.status() == StatusCode::UNAUTHORIZED {
                this.state.lock().await.is_refused = true;
            }
            Ok(answer)
        })
    }
}

/// Sends in a task of its own. To set a connection up takes 30 KiB of stack, which would come on top of what the request's
/// task has used, and a page of the stack that was used once stays resident.
async fn apart<B>(answering: impl Future<Output = Result<B, Interrupted>> + Send + 'static) -> Result<B, Interrupted>
where
    B: Send + 'static,
{
    match AbortOnDropHandle::new(tokio::spawn(answering)).await {
        Ok(answer) => answer,
        Err(cause) => Err(Interrupted(cause.into())),
    }
}

/// Upstream: `fileTokenSource`, staging/src/k8s.io/client-go/transport/token_source.go.
fn read_token(path: &Path) -> Result<HeaderValue, BoxError> {
    let path_error = |cause: &dyn std::fmt::Display| format!("cannot use token file {}: {cause}", path.display());
    let text = std::fs::read_to_string(path).map_err(|cause| path_error(&cause))?;
    let token = text.trim();
    if token.is_empty() {
        return Err(path_error(&"file is empty").into());
    }
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|cause| path_error(&cause))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The contents of the certificate's and the key's files.
fn read_certificate(config: &kube::Config) -> Vec<Option<Vec<u8>>> {
    let files = [&config.auth_info.client_certificate, &config.auth_info.client_key];
    files.into_iter().flatten().map(|file| std::fs::read(file).ok()).collect()
}

/// The certificates of a bundle; none where one of them cannot be read, as in a file that is just being written.
///
/// Upstream: `atomicTransportHolder`, staging/src/k8s.io/client-go/transport/ca_rotation.go.
fn read_ca(path: &Path) -> Option<Vec<Vec<u8>>> {
    let text = std::fs::read(path).ok()?;
    let bundle: Result<Vec<Vec<u8>>, _> =
        CertificateDer::pem_slice_iter(&text).map(|read| read.map(|certificate| certificate.to_vec())).collect();
    bundle.ok().filter(|bundle| !bundle.is_empty())
}

/// Since when each answer was that the credentials are not valid.
#[derive(Default)]
pub(super) struct Refusals(Mutex<Option<Instant>>);

impl Refusals {
    pub(super) fn note(&self, code: StatusCode) {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *since = (code == StatusCode::UNAUTHORIZED).then(|| since.unwrap_or_else(Instant::now));
    }

    /// An error once it has been so for minutes.
    pub(super) fn check(&self) -> Result<(), String> {
        let since = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match since.map(|since| since.elapsed()).filter(|elapsed| *elapsed >= REFUSED_MAX) {
            Some(elapsed) => Err(format!("the apiserver has refused the credentials for {} s", elapsed.as_secs())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
