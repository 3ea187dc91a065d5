//! The HTTP client of a process: typed requests over one HTTP/2 connection, and more of them for many requests at once
//! and many watches, as client-go's.
//!
//! kube's configuration, authentication and TLS under our own stack, for four reasons: kube's connector speaks
//! HTTP/1.1 only (a burst of 500 creates would open 500 TLS connections), its default retries POST on 504 (which
//! duplicates objects), it sets no limit on how long a request may take, and it hands each request to another task.
//! Left out: retries other than waiting out a 429 that says how long, compression, proxies, and any typed API.

pub mod account;
mod bounded;
mod ca;
mod call;
mod connections;
mod credentials;
mod forms;
mod kubeconfig;
mod limiter;
pub(crate) mod list;
pub(crate) mod page;
mod reach;
mod spoken;
mod transport;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
// kube leaves it to its user to choose the version of the Kubernetes API; that is all this crate is here for.
use k8s_openapi as _;
use kube::client::Body;
use kube::config::KubeConfigOptions;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tower::ServiceExt;

use crate::api::protobuf;
use crate::api::resource::Resource;
use crate::transport::api_error::{ApiError, Status, chain};
use crate::transport::clock::jitter;
use account::Tokens;
use bounded::{ANSWER_BYTES_MAX, REFUSAL_BYTES_MAX, Unread, collect};
use ca::ca_file;
pub use ca::load_ca;
use call::JSON;
pub(crate) use call::{Call, Gate};
use connections::{Connections, Place, Purpose};
use credentials::{Refusals, Renewing};
pub use forms::{Accept, PatchType};
use kubeconfig::unusable;
use limiter::Limiter;
use list::Paged;
use reach::Reach;
pub use reach::{RETURN_SPREAD, soon_after};
use spoken::Spoken;
pub(crate) use transport::Connection;
#[cfg(any(test, feature = "testing"))]
pub(crate) use transport::connection_of;
use transport::{AnswerBody, connection};

/// How long a request may take, its answer included; a watch may go on for longer once it has started. Waiting for a
/// token or for a place in a connection does not count: nothing was sent, and so no answer is lost.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// client-go gives up after as many answers 429 to one request.
const MAX_WAITS: u32 = 10;
/// While the server cannot be reached, how often it is asked for a sign of life, and how long that may take.
const PROBE_PERIOD: Duration = Duration::from_millis(1500);
/// A path that everybody may read.
const PROBE_PATH: &str = "/version";

/// Told of every finished request: method, answer's code (none when no answer came), time to the answer's head.
pub type RequestObserver = Arc<dyn Fn(&Method, Option<StatusCode>, Duration) + Send + Sync>;

/// The settings of a [`Client`].
#[derive(Clone, Default)]
pub struct ClientOptions {
    /// The first word is the field manager the apiserver writes down.
    pub user_agent: String,
    /// Requests per second on average; none for no limit.
    pub qps: Option<f32>,
    /// Requests at once when `qps` limits.
    pub burst: u32,
    pub observer: Option<RequestObserver>,
    /// The file of the CA that verifies the apiserver: see [`Access::ca_file`].
    pub ca_file: Option<PathBuf>,
    pub tokens: Option<Tokens>,
}

/// How many requests may be sent.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// A second, on average.
    pub qps: f32,
    pub burst: u32,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The kubeconfig cannot be read or does not say enough.
    #[error("cannot use kubeconfig {path}: {cause}")]
    Kubeconfig { path: String, cause: String },
    /// Neither `--kubeconfig` nor `--master` was given and this process runs in no pod.
    #[error("neither --kubeconfig nor --master is set, and not running in a pod with a ServiceAccount: {0}")]
    NotInCluster(String),
    /// `--master` is no URL.
    #[error("invalid --master {url:?}: {cause}")]
    Master { url: String, cause: String },
    /// The credentials or the CA do not work.
    #[error("cannot set up the connection to {url}: {cause}")]
    Connection { url: String, cause: String },
}

#[derive(Clone, Debug)]
pub struct Access {
    /// Both, as kube knows them.
    pub config: kube::Config,
    /// The file of the CA that verifies the apiserver; none where the kubeconfig itself has the CA.
    pub ca_file: Option<PathBuf>,
}

/// Finds the apiserver and the credentials as upstream does: `kubeconfig`, where given; the pod's own ServiceAccount
/// otherwise; `master` overrides the address of either.
///
/// Upstream: `BuildConfigFromFlags`, staging/src/k8s.io/client-go/tools/clientcmd/client_config.go.
pub async fn load_config(kubeconfig: Option<&Path>, master: Option<&str>) -> Result<Access, ConfigError> {
    let read = kubeconfig.map(|path| Ok((path, kubeconfig::read(path)?))).transpose()?;
    let ca_file = ca_file(read.as_ref().map(|(_, read)| read), master);
    let mut config = match (read, master) {
        (Some((path, read)), _) => {
            if kubeconfig::current_cluster(&read).is_some_and(|cluster| cluster.proxy_url.is_some()) {
                return Err(unusable(path, "proxy-url is not supported"));
            }
            if let Some(provider) = kubeconfig::current_user(&read).and_then(|user| user.auth_provider.as_ref()) {
                return Err(unusable(path, &format!("no Auth Provider found for name {:?}", provider.name)));
            }
            let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
            config.map_err(|cause| unusable(path, &chain(&cause)))?
        }
        (None, Some(url)) => kube::Config::new(parse_master(url, "http")?),
        (None, None) => kube::Config::incluster().map_err(|cause| ConfigError::NotInCluster(chain(&cause)))?,
    };
    if let Some(url) = master {
        override_server(&mut config, url)?;
    }
    Ok(Access { config, ca_file })
}

/// Sets another address of the apiserver. Credentials are never sent over plain HTTP.
///
/// Upstream: `DefaultServerUrlFor`, staging/src/k8s.io/client-go/rest/url_utils.go, and `ClientConfig`,
/// staging/src/k8s.io/client-go/tools/clientcmd/client_config.go.
fn override_server(config: &mut kube::Config, master: &str) -> Result<(), ConfigError> {
    let kube::Config { auth_info: user, root_cert, accept_invalid_certs, .. } = &*config;
    let has_certificate = user.client_certificate.is_some() || user.client_certificate_data.is_some();
    let is_secure = root_cert.is_some() || has_certificate || *accept_invalid_certs;
    config.cluster_url = parse_master(master, if is_secure { "https" } else { "http" })?;
    config.tls_server_name = None;
    if config.cluster_url.scheme_str() == Some("http") {
        tracing::warn!(master, "plain HTTP: no credentials are sent");
        config.auth_info = kube::config::AuthInfo::default();
    }
    Ok(())
}

fn parse_master(url: &str, default_scheme: &str) -> Result<http::Uri, ConfigError> {
    let error = |cause: String| ConfigError::Master { url: url.to_owned(), cause };
    let with_scheme = if url.contains("://") { url.to_owned() } else { format!("{default_scheme}://{url}") };
    let uri: http::Uri = with_scheme.parse().map_err(|cause| error(chain(&cause)))?;
    if uri.host().is_none_or(str::is_empty) {
        return Err(error("no host".to_owned()));
    }
    Ok(uri)
}

type Connect = dyn Fn() -> Result<Connection, kube::Error> + Send + Sync;

/// Sends requests; cheap to clone, all clones have the same connections.
#[derive(Clone)]
pub struct Client {
    connect: Arc<Connect>,
    connections: Arc<Connections<Connection>>,
    host: Arc<str>,
    user_agent: HeaderValue,
    limiter: Option<Arc<Limiter>>,
    observer: Option<RequestObserver>,
    refusals: Arc<Refusals>,
    reach: Arc<Reach>,
    paged: Arc<Paged>,
    spoken: Arc<Spoken>,
    gates: Vec<Arc<dyn Gate>>,
    goes_ahead: bool,
}

impl Client {
    /// Sets the connection up; the first request opens it.
    ///
    /// # Errors
    /// When the configuration's CA, certificate, token or user agent cannot be used.
    pub fn new(config: &kube::Config, options: ClientOptions) -> Result<Self, ConfigError> {
        let url = config.cluster_url.to_string();
        let error = |cause: &(dyn std::error::Error + 'static)| ConfigError::Connection {
            url: url.clone(),
            cause: chain(cause),
        };
        let user_agent = HeaderValue::from_str(&options.user_agent).map_err(|cause| error(&cause))?;
        let (ca_file, tokens) = (options.ca_file, options.tokens);
        let first = connect(config, ca_file.as_deref(), tokens.clone()).map_err(|cause| error(&cause))?;
        Ok(Self {
            connections: Arc::new(Connections::new(first)),
            connect: Arc::new({
                let config = config.clone();
                move || connect(&config, ca_file.as_deref(), tokens.clone())
            }),
            host: config.cluster_url.authority().map_or("", |authority| authority.as_str()).into(),
            user_agent,
            limiter: options.qps.filter(|qps| *qps > 0.0).map(|qps| Arc::new(Limiter::new(qps, options.burst))),
            observer: options.observer,
            refusals: Arc::default(),
            reach: Arc::default(),
            paged: Arc::default(),
            spoken: Arc::default(),
            gates: Vec::new(),
            goes_ahead: false,
        })
    }

    /// Fails once the apiserver has said for minutes that the credentials are not valid: they are read again whenever
    /// they change, so that a new process is all that may help.
    pub fn check_credentials(&self) -> Result<(), String> {
        self.refusals.check()
    }

    /// A client with the same credentials on connections of its own, under a limit of its own or none: what goes over it
    /// waits behind nothing else.
    ///
    /// # Errors
    /// When the connection cannot be set up any more, such as when the file of a certificate is gone.
    pub fn beside(&self, limit: Option<Limit>) -> Result<Self, ConfigError> {
        let first = (self.connect)()
            .map_err(|cause| ConfigError::Connection { url: self.host.to_string(), cause: chain(&cause) })?;
        Ok(Self {
            connections: Arc::new(Connections::new(first)),
            limiter: limit.map(|limit| Arc::new(Limiter::new(limit.qps, limit.burst))),
            ..self.clone()
        })
    }

    /// The same client for one watch and for the requests of one task, one at a time. They wait neither for the limit nor
    /// for a place in a connection.
    #[must_use]
    pub fn ahead(&self) -> Self {
        Self { limiter: None, goes_ahead: true, ..self.clone() }
    }

    /// The same client with one gate more; a request is sent if all of them let it pass.
    #[must_use]
    pub(crate) fn behind(&self, gate: impl Gate + 'static) -> Self {
        let mut client = self.clone();
        client.gates.push(Arc::new(gate));
        client
    }

    /// Changes each time the server answers again after it could not be reached for a while.
    pub fn came_back(&self) -> watch::Receiver<u64> {
        self.reach.came_back()
    }

    /// Changes each time the server answers after a request or a watch has failed, however soon.
    pub(crate) fn gaps(&self) -> watch::Receiver<u64> {
        self.reach.gaps()
    }

    /// Notes that a watch has ended before its time, although in good order: so it does when its server stops.
    pub(crate) fn note_early_end(&self) {
        self.reach.fails();
    }

    /// Wakes the tasks that wait for the server's return, where something else than a request shows it.
    pub(crate) fn note_return(&self) {
        self.reach.returns();
    }

    /// Whenever a request has failed on its way, asks until an answer comes whether the server is there, so that its
    /// return is noticed although everybody waits out a back-off.
    pub(crate) async fn probe(self) {
        let mut failing = self.reach.failing_since();
        // The sender is this client's own: it does not go away.
        while failing.wait_for(Option::is_some).await.is_ok() {
            // The connections there are may be dead and not know it yet.
            let Ok(probe) = self.beside(None) else {
                sleep(PROBE_PERIOD).await;
                continue;
            };
            while failing.borrow_and_update().is_some() {
                // Only an answer of success ends this; a refusal is logged by those whom it concerns.
                let _ = timeout(PROBE_PERIOD, probe.get_bytes(PROBE_PATH, Accept::Object)).await;
                tokio::select! {
                    _ = failing.wait_for(Option::is_none) => {}
                    () = sleep(jitter(PROBE_PERIOD, 1.0)) => {}
                }
            }
        }
    }

    /// Sends requests to a service in this process instead of an apiserver.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn of_service(connect: impl Fn() -> Connection + Send + Sync + 'static) -> Self {
        Self {
            connections: Arc::new(Connections::new(connect())),
            connect: Arc::new(move || Ok(connect())),
            host: "in-process".into(),
            user_agent: HeaderValue::from_static("test"),
            limiter: None,
            observer: None,
            refusals: Arc::default(),
            reach: Arc::default(),
            paged: Arc::default(),
            spoken: Arc::default(),
            gates: Vec::new(),
            goes_ahead: false,
        }
    }

    /// From here on, asks for a resource in this version.
    pub(crate) fn speak(&self, served: &Resource) {
        self.spoken.note(served);
    }

    /// A resource in the version in which the apiserver serves it, as far as that was discovered.
    pub(crate) fn spoken<'a>(&self, resource: &'a Resource) -> Cow<'a, Resource> {
        self.spoken.of(resource)
    }

    /// The apiserver's host and port, as the `host` label of `rest_client_*` has it.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// GET, decoded. A read without resourceVersion is upstream's "live" read: the newest state there is.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiError> {
        self.get_as(path, Accept::Object).await
    }

    /// The same with a choice of the answer's form.
    pub async fn get_as<T: DeserializeOwned>(&self, path: &str, accept: Accept) -> Result<T, ApiError> {
        self.typed(Call::get(path, accept)).await
    }

    /// GET with a choice of the answer's form, as it came.
    pub async fn get_bytes(&self, path: &str, accept: Accept) -> Result<Bytes, ApiError> {
        self.whole(&Call::get(path, accept), ANSWER_BYTES_MAX).await
    }

    /// GET of one page of a list of such objects, which [`page::Page::read`] takes apart. It has at most `limit` bytes.
    async fn page_within(
        &self,
        path: &str,
        accept: Accept,
        resource: &Resource,
        limit: usize,
    ) -> Result<Bytes, ApiError> {
        let form = accept.of_list(resource);
        let answer = self.whole(&Call::get(path, form), limit).await;
        match instead_of(form, &answer) {
            Some(json) => self.whole(&Call::get(path, json), limit).await,
            None => answer,
        }
    }

    pub async fn create<T: DeserializeOwned>(&self, path: &str, accept: Accept, body: Bytes) -> Result<T, ApiError> {
        self.typed(Call { method: Method::POST, path, content_type: Some(JSON), accept, body }).await
    }

    pub async fn replace<T: DeserializeOwned>(&self, path: &str, accept: Accept, body: Bytes) -> Result<T, ApiError> {
        self.typed(Call { method: Method::PUT, path, content_type: Some(JSON), accept, body }).await
    }

    pub async fn patch<T: DeserializeOwned>(
        &self,
        path: &str,
        accept: Accept,
        kind: PatchType,
        body: Bytes,
    ) -> Result<T, ApiError> {
        let content_type = Some(kind.content_type());
        self.typed(Call { method: Method::PATCH, path, content_type, accept, body }).await
    }

    /// DELETE with `DeleteOptions` as JSON (or empty), the answer decoded: the object or the objects as they were, or a
    /// `Status`, which comes whole whatever was asked for.
    pub async fn delete<T: DeserializeOwned>(&self, path: &str, accept: Accept, options: Bytes) -> Result<T, ApiError> {
        let content_type = (!options.is_empty()).then_some(JSON);
        self.typed(Call { method: Method::DELETE, path, content_type, accept, body: options }).await
    }

    /// GET whose answer is read as it comes: a watch. Only the wait for the answer's head is limited in time.
    pub async fn stream(
        &self,
        path: &str,
        accept: Accept,
    ) -> Result<impl Stream<Item = Result<Bytes, ApiError>> + Send + Unpin + use<>, ApiError> {
        self.streamed(path, accept, Purpose::Watch).await
    }

    /// A watch of such objects, in the form in which an event costs least.
    pub(crate) async fn watch(
        &self,
        path: &str,
        accept: Accept,
        resource: &Resource,
    ) -> Result<impl Stream<Item = Result<Bytes, ApiError>> + Send + Unpin + use<>, ApiError> {
        let form = accept.of_watch(resource);
        let answer = self.stream(path, form).await;
        match instead_of(form, &answer) {
            Some(json) => self.stream(path, json).await,
            None => answer,
        }
    }

    /// The same of a whole list of such objects.
    async fn streamed_list(
        &self,
        path: &str,
        accept: Accept,
        resource: &Resource,
    ) -> Result<impl Stream<Item = Result<Bytes, ApiError>> + Send + Unpin + use<>, ApiError> {
        self.streamed(path, accept.of_list(resource), Purpose::Request).await
    }

    async fn streamed(
        &self,
        path: &str,
        accept: Accept,
        purpose: Purpose,
    ) -> Result<impl Stream<Item = Result<Bytes, ApiError>> + Send + Unpin + use<>, ApiError> {
        let call = Call::get(path, accept);
        let Answer { response, place, .. } = self.answer(&call, purpose).await?;
        let (method, path, reach) = (call.method.to_string(), path.to_owned(), Arc::clone(&self.reach));
        Ok(response.into_body().into_data_stream().map_err(move |cause| {
            // It keeps its place for as long as there is this closure.
            let _ = &place;
            // A process that only watches learns by this alone that the server has gone.
            reach.fails();
            ApiError::Transport { method: method.clone(), path: path.clone(), cause: chain(&cause) }
        }))
    }

    async fn typed<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T, ApiError> {
        let mut call = Call { accept: call.accept.of_object(), ..call };
        let mut answer = self.whole(&call, ANSWER_BYTES_MAX).await;
        // The server chooses a form before it does anything.
        if let Some(json) = instead_of(call.accept, &answer) {
            call.accept = json;
            answer = self.whole(&call, ANSWER_BYTES_MAX).await;
        }
        protobuf::read_object(&answer?).map_err(ApiError::unread(&call.method, call.path))
    }

    /// One answer of success with all its body, which has at most `limit` bytes.
    async fn whole(&self, call: &Call<'_>, limit: usize) -> Result<Bytes, ApiError> {
        let Answer { response, deadline, place: _place } = self.answer(call, Purpose::Request).await?;
        let body = timeout_at(deadline, collect(response.into_body(), limit)).await;
        body.map_err(|_| self.timed_out(call))?.map_err(|unread| self.unread(call, unread, limit))
    }

    /// One answer of success, or the error that the server's status tells.
    async fn answer(&self, call: &Call<'_>, purpose: Purpose) -> Result<Answer, ApiError> {
        self.check(call)?;
        let (mut left, mut waits) = (REQUEST_TIMEOUT, 0);
        loop {
            // As in client-go: a watch that had to wait behind writes would be late with what they do.
            if let Some(limiter) = self.limiter.as_ref().filter(|_| matches!(purpose, Purpose::Request)) {
                limiter.acquire().await;
            }
            let (connection, place) = self.place(purpose).await.map_err(|cause| call.broken(&cause))?;
            self.check(call)?;
            let deadline = Instant::now() + left;
            let response = timeout_at(deadline, self.send(connection, call)).await;
            let response = response.map_err(|_| self.timed_out(call))??;
            if response.status().is_success() {
                self.reach.answers();
                return Ok(Answer { response, place, deadline });
            }
            left = deadline.saturating_duration_since(Instant::now());
            // Where the time does not suffice for another try the refusal is the answer: nothing was done.
            let pause = retry_after(&response).filter(|_| waits < MAX_WAITS).filter(|pause| *pause < left);
            if let Some(pause) = pause {
                waits += 1;
                left -= pause;
                drop((response, place));
                sleep(pause).await;
                continue;
            }
            let code = response.status().as_u16();
            let body = timeout_at(deadline, collect(response.into_body(), REFUSAL_BYTES_MAX)).await;
            let body = match body.map_err(|_| self.timed_out(call))? {
                // The code says what happened.
                Err(Unread::TooLarge) => Bytes::new(),
                body => body.map_err(|unread| self.unread(call, unread, REFUSAL_BYTES_MAX))?,
            };
            return Err(ApiError::Status(Box::new(Status::from_body(code, &body))));
        }
    }

    async fn place(&self, purpose: Purpose) -> Result<(Connection, Place), kube::Error> {
        if self.goes_ahead {
            return Ok(self.connections.place_ahead());
        }
        self.connections.place(purpose, &*self.connect).await
    }

    /// Asks the gates about a write that goes elsewhere. They know it by a path such as the apiserver would have.
    pub(crate) fn may_write(&self, method: Method, path: &str) -> Result<(), ApiError> {
        self.check(&Call { method, ..Call::get(path, Accept::Object) })
    }

    fn check(&self, call: &Call<'_>) -> Result<(), ApiError> {
        self.gates.iter().try_for_each(|gate| gate.check(call))
    }

    fn broken(&self, call: &Call<'_>, cause: &(dyn std::error::Error + 'static)) -> ApiError {
        self.reach.fails();
        call.broken(cause)
    }

    fn unread(&self, call: &Call<'_>, unread: Unread, limit: usize) -> ApiError {
        match unread {
            Unread::Broken(cause) => self.broken(call, &*cause),
            Unread::TooLarge => call.too_large(limit),
        }
    }

    fn timed_out(&self, call: &Call<'_>) -> ApiError {
        self.reach.fails();
        call.timed_out()
    }

    async fn send(&self, connection: Connection, call: &Call<'_>) -> Result<Response<AnswerBody>, ApiError> {
        let mut request = Request::new(Body::from(call.body.clone()));
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = call.path.parse().map_err(|cause: http::uri::InvalidUri| call.broken(&cause))?;
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, self.user_agent.clone());
        headers.insert(ACCEPT, call.accept.media_type());
        if let Some(content_type) = &call.content_type {
            headers.insert(CONTENT_TYPE, content_type.clone());
        }
        let started = Instant::now();
        let answer = connection.oneshot(request).await;
        if let Some(observer) = &self.observer {
            observer(&call.method, answer.as_ref().ok().map(Response::status), started.elapsed());
        }
        let answer = answer.map_err(|cause| self.broken(call, &cause))?;
        self.refusals.note(answer.status());
        Ok(answer)
    }
}

/// JSON in this form's place, where a server does not go on to the next form that it was offered.
fn instead_of<A>(form: Accept, answer: &Result<A, ApiError>) -> Option<Accept> {
    let is_refused = answer.as_ref().is_err_and(|error| error.code() == Some(406));
    form.as_json().filter(|_| is_refused)
}

/// An answer whose body is still to come.
struct Answer {
    response: Response<AnswerBody>,
    /// To be kept until the body is read.
    place: Place,
    /// When the time of the whole request is over.
    deadline: Instant,
}

/// The pause a 429 asks for; none for any other answer, or where it does not say.
fn retry_after(answer: &Response<AnswerBody>) -> Option<Duration> {
    if answer.status() != StatusCode::TOO_MANY_REQUESTS {
        return None;
    }
    let seconds = answer.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn connect(config: &kube::Config, ca: Option<&Path>, tokens: Option<Tokens>) -> Result<Connection, kube::Error> {
    Ok(Connection::new(Renewing::new(config, ca, connection)?.with_tokens(tokens)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::serving::loopback;

    #[test]
    fn master_is_a_url_or_a_host() {
        assert_eq!(parse_master("127.0.0.1:8080", "http").unwrap().to_string(), "http://127.0.0.1:8080/");
        assert_eq!(parse_master("https://a:6443", "http").unwrap().to_string(), "https://a:6443/");
        assert!(
            parse_master("https://", "http").unwrap_err().to_string().starts_with("invalid --master \"https://\": ")
        );
    }

    #[test]
    fn credentials_go_to_no_master_without_tls() {
        let check = |is_insecure: bool, master: &str, expected: &str, has_token: bool| {
            let mut config = kube::Config::new("https://other:6443".parse().unwrap());
            config.auth_info.token = Some("secret".to_owned().into());
            config.tls_server_name = Some("other".to_owned());
            config.accept_invalid_certs = is_insecure;
            override_server(&mut config, master).unwrap();
            let kube::Config { cluster_url, auth_info, tls_server_name, .. } = config;
            let found = (cluster_url.to_string(), auth_info.token.is_some(), tls_server_name);
            assert_eq!(found, (expected.to_owned(), has_token, None), "{master}");
        };
        check(true, "10.0.0.1:6443", "https://10.0.0.1:6443/", true);
        check(false, "10.0.0.1:6443", "http://10.0.0.1:6443/", false);
        check(true, "http://10.0.0.1:6443", "http://10.0.0.1:6443/", false);
        check(false, "https://10.0.0.1:6443", "https://10.0.0.1:6443/", true);
    }

    #[tokio::test]
    async fn a_refusal_that_asks_for_too_long_a_pause_is_an_answer() {
        let address = loopback::serve(|_| {
            let mut answer = loopback::answer(429, r#"{"code":429,"reason":"TooManyRequests"}"#);
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(REQUEST_TIMEOUT.as_secs()));
            answer
        })
        .await;
        let config = kube::Config::new(format!("http://{address}").parse().unwrap());
        let client = Client::new(&config, ClientOptions::default()).unwrap();
        let error = client.get_bytes("/", Accept::Object).await.unwrap_err();
        assert!(error.is_too_many_requests() && !error.is_outcome_unknown(), "{error}");
    }

    #[tokio::test]
    async fn a_write_whose_answer_a_server_has_in_no_other_form_is_answered_as_json() {
        let address = loopback::serve(|request| {
            let accept = request.headers()[ACCEPT].to_str().unwrap_or_default();
            if accept.starts_with("application/vnd.kubernetes.protobuf") {
                return loopback::answer(406, r#"{"code":406,"reason":"NotAcceptable"}"#);
            }
            loopback::answer(201, r#"{"metadata":{"name":"a"}}"#)
        })
        .await;
        let config = kube::Config::new(format!("http://{address}").parse().unwrap());
        let client = Client::new(&config, ClientOptions::default()).unwrap();
        let created: serde_json::Value = client.create("/", Accept::Metadata, Bytes::new()).await.unwrap();
        assert_eq!(created["metadata"]["name"], "a");
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_a_token_is_no_lost_answer() {
        // Nobody listens there.
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let options = ClientOptions { qps: Some(0.01), burst: 1, ..ClientOptions::default() };
        let client = Client::new(&config, options).unwrap();
        for _ in 0..3 {
            let error = client.get_bytes("/", Accept::Object).await.unwrap_err();
            assert!(matches!(error, ApiError::Transport { .. }), "{error}");
        }
    }

    #[tokio::test]
    async fn a_watch_waits_for_no_token() {
        let address = loopback::serve(|_| loopback::stream(futures::stream::pending())).await;
        let config = kube::Config::new(format!("http://{address}").parse().unwrap());
        let options = ClientOptions { qps: Some(0.001), burst: 1, ..ClientOptions::default() };
        let client = Client::new(&config, options).unwrap();
        let limiter = client.limiter.clone().unwrap();
        limiter.acquire().await;
        let watch = client.stream("/api/v1/pods?watch=1", Accept::Object);
        assert!(timeout(Duration::from_secs(20), watch).await.expect("it begins in time").is_ok());
    }

    #[tokio::test]
    async fn the_servers_return_is_noticed_while_everybody_waits() {
        let paths = Arc::new(std::sync::Mutex::new(Vec::new()));
        let asked = Arc::clone(&paths);
        let address = loopback::serve(move |request| {
            asked.lock().unwrap().push(request.uri().path().to_owned());
            loopback::answer(200, "{}")
        })
        .await;
        let config = kube::Config::new(format!("http://{address}").parse().unwrap());
        let client = Client::new(&config, ClientOptions::default()).unwrap();
        let mut failing = client.reach.failing_since();
        let probing = tokio::spawn(client.clone().probe());
        client.reach.fails();
        let noticed = failing.wait_for(Option::is_none);
        timeout(Duration::from_secs(20), noticed).await.expect("it is noticed in time").unwrap();
        assert_eq!(*paths.lock().unwrap(), [PROBE_PATH]);
        assert!(!probing.is_finished());
    }

    #[tokio::test]
    async fn a_watch_that_breaks_is_a_sign_that_the_server_has_gone() {
        let (server, told) = tokio::sync::mpsc::unbounded_channel::<Bytes>();
        let told = std::sync::Mutex::new(Some(told));
        let address = loopback::serve(move |_| {
            let told = told.lock().unwrap().take();
            let lines = futures::stream::unfold(told, async |told| {
                let mut told = told?;
                Some((told.recv().await?, Some(told)))
            });
            let mut answer = loopback::stream(Box::pin(lines));
            answer.headers_mut().insert(http::header::CONTENT_LENGTH, HeaderValue::from_static("100"));
            answer
        })
        .await;
        let config = kube::Config::new(format!("http://{address}").parse().unwrap());
        let client = Client::new(&config, ClientOptions::default()).unwrap();
        server.send(Bytes::from_static(b"{}")).unwrap();
        let mut watch = client.stream("/api/v1/pods?watch=1", Accept::Object).await.unwrap();
        assert!(watch.try_next().await.unwrap().is_some() && client.reach.failing_since().borrow().is_none());
        drop(server);
        assert!(watch.try_next().await.is_err() && client.reach.failing_since().borrow().is_some());
    }

    #[tokio::test]
    async fn an_answer_that_is_too_large_is_not_read() {
        let address = loopback::serve(|request| {
            let code = if request.uri().path() == "/refused" { 409 } else { 200 };
            let mut answer = loopback::stream(futures::stream::pending());
            *answer.status_mut() = StatusCode::from_u16(code).unwrap();
            answer.headers_mut().insert(http::header::CONTENT_LENGTH, HeaderValue::from(ANSWER_BYTES_MAX + 1));
            answer
        })
        .await;
        let config = kube::Config::new(format!("http://{address}").parse().unwrap());
        let client = Client::new(&config, ClientOptions::default()).unwrap();
        let error = client.get_bytes("/list", Accept::Object).await.unwrap_err();
        assert_eq!(error.to_string(), "GET /list: the answer has more than 268435456 bytes");
        assert_eq!(client.get_bytes("/refused", Accept::Object).await.unwrap_err().code(), Some(409));
    }

    #[tokio::test]
    async fn a_broken_kubeconfig_is_named_in_the_error() {
        let missing = load_config(Some(Path::new("/does/not/exist")), None).await.unwrap_err().to_string();
        assert!(missing.starts_with("cannot use kubeconfig /does/not/exist: "), "{missing}");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "clusters: [").unwrap();
        let broken = load_config(Some(file.path()), None).await.unwrap_err().to_string();
        assert!(broken.contains(file.path().to_str().unwrap()) && broken.lines().count() == 1, "{broken}");
        let proxied = "{current-context: a, contexts: [{name: a, context: {cluster: a}}],
            clusters: [{name: a, cluster: {server: 'https://a', proxy-url: 'http://b'}}]}";
        std::fs::write(file.path(), proxied).unwrap();
        let error = load_config(Some(file.path()), None).await.unwrap_err().to_string();
        assert!(error.ends_with(": proxy-url is not supported"), "{error}");
    }
}
