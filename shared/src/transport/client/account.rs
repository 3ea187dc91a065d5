//! Tokens of a ServiceAccount by TokenRequest, for a process whose controllers act as accounts of their own.
//!
//! Each request goes over a connection that is closed afterwards: it is needed once in most of an hour.
//! Left out: creating the account. Its rights come from a manifest, and so does it.
//!
//! Upstream: `DynamicControllerClientBuilder`,
//! staging/src/k8s.io/controller-manager/pkg/clientbuilder/client_builder_dynamic.go.

use std::time::Duration;

use http::HeaderValue;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::sleep;

use super::{Accept, Access, Client, ClientOptions, ConfigError};
use crate::api::json;
use crate::transport::api_error::ApiError;
use crate::transport::clock::jitter;

/// Upstream: `defaultExpirationSeconds`.
const EXPIRATION_SECONDS: u64 = 3600;
/// Upstream: `defaultLeewayPercent`: how much of its time a token has left when it is renewed.
const LEEWAY: f64 = 0.2;
/// The pause after a failed renewal.
const RETRY_PERIOD: Duration = Duration::from_secs(30);

/// The `Authorization` header of the moment.
pub type Tokens = watch::Receiver<HeaderValue>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub namespace: String,
    pub name: String,
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Nobody has installed the accounts.
    #[error(
        "there is no ServiceAccount {namespace}/{name}; `kubectl apply -k manifests/one-process/accounts` creates the \
         accounts of all controllers, with their roles"
    )]
    Missing { namespace: String, name: String },
    /// The apiserver gave none.
    #[error("cannot request a token for ServiceAccount {namespace}/{name}: {cause}")]
    Refused { namespace: String, name: String, cause: ApiError },
    #[error("the token of ServiceAccount {0} is not a header's value")]
    Unusable(String),
    #[error(transparent)]
    Client(#[from] ConfigError),
}

struct Granted {
    token: HeaderValue,
    lasts: Duration,
}

pub struct Requests {
    account: Account,
    connect: Box<dyn Fn() -> Result<Client, ConfigError> + Send + Sync>,
}

impl Requests {
    pub fn new(account: Account, access: Access, user_agent: String) -> Self {
        let Access { config, ca_file } = access;
        let connect = move || {
            let options =
                ClientOptions { user_agent: user_agent.clone(), ca_file: ca_file.clone(), ..ClientOptions::default() };
            Client::new(&config, options)
        };
        Self { account, connect: Box::new(connect) }
    }

    /// Requests through the clients that `connect` makes.
    #[cfg(test)]
    fn over(account: Account, connect: impl Fn() -> Client + Send + Sync + 'static) -> Self {
        Self { account, connect: Box::new(move || Ok(connect())) }
    }

    /// The first token, and a task that replaces it before it expires.
    ///
    /// # Errors
    /// When the first request fails.
    pub async fn start(self) -> Result<(Tokens, impl Future<Output = ()> + Send + 'static), TokenError> {
        let Granted { token, lasts } = self.request().await?;
        let (sender, tokens) = watch::channel(token);
        Ok((tokens, self.renew(sender, lasts)))
    }

    async fn renew(self, tokens: watch::Sender<HeaderValue>, mut lasts: Duration) {
        loop {
            sleep(lasts.mul_f64(1.0 - LEEWAY)).await;
            lasts = loop {
                match self.request().await {
                    Ok(Granted { token, lasts }) => {
                        tokens.send_replace(token);
                        break lasts;
                    }
                    Err(error) => tracing::warn!(%error, "cannot renew the token; using the previous one"),
                }
                sleep(jitter(RETRY_PERIOD, 1.0)).await;
            };
        }
    }

    async fn request(&self) -> Result<Granted, TokenError> {
        #[derive(Deserialize)]
        struct Answer {
            spec: Spec,
            status: Status,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Spec {
            /// As granted. The time of expiry would have to be compared with another clock.
            #[serde(default)]
            expiration_seconds: Option<u64>,
        }
        #[derive(Deserialize)]
        struct Status {
            token: String,
        }
        let Account { namespace, name } = self.account.clone();
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let body = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": { "expirationSeconds": EXPIRATION_SECONDS },
        });
        let answer = (self.connect)()?.create(&path, Accept::Object, json(&body)).await;
        let Answer { spec, status } = match answer {
            Ok(answer) => answer,
            Err(cause) if cause.is_not_found() => return Err(TokenError::Missing { namespace, name }),
            Err(cause) => return Err(TokenError::Refused { namespace, name, cause }),
        };
        let mut token = HeaderValue::try_from(format!("Bearer {}", status.token))
            .map_err(|_| TokenError::Unusable(format!("{namespace}/{name}")))?;
        token.set_sensitive(true);
        // A granted zero would renew without a pause.
        let lasts = Duration::from_secs(spec.expiration_seconds.unwrap_or(EXPIRATION_SECONDS).max(60));
        Ok(Granted { token, lasts })
    }
}

impl Access {
    /// The same apiserver without credentials.
    #[must_use]
    pub fn without_credentials(&self) -> Self {
        let mut access = self.clone();
        access.config.auth_info = kube::config::AuthInfo::default();
        access
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use bytes::Bytes;
    use http::{Request, Response};
    use http_body_util::Full;
    use kube::client::Body;
    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::process::serving::loopback;
    use crate::transport::client::connection_of;

    fn account() -> Account {
        Account { namespace: "kube-system".to_owned(), name: "ttl-operator".to_owned() }
    }

    /// Requests to a server that grants `token-1`, `token-3`, … for ten minutes each, and refuses the second request.
    fn requests() -> Requests {
        let count = Arc::new(AtomicU64::new(0));
        Requests::over(account(), move || {
            let count = Arc::clone(&count);
            Client::of_service(move || {
                let count = Arc::clone(&count);
                connection_of(tower::service_fn(move |request: Request<Body>| {
                    assert_eq!(
                        request.uri().path(),
                        "/api/v1/namespaces/kube-system/serviceaccounts/ttl-operator/token"
                    );
                    let n = count.fetch_add(1, Ordering::Relaxed) + 1;
                    let granted = format!(r#"{{"spec":{{"expirationSeconds":600}},"status":{{"token":"token-{n}"}}}}"#);
                    let mut answer = Response::new(Full::new(Bytes::from(granted)));
                    if n == 2 {
                        *answer.status_mut() = http::StatusCode::FORBIDDEN;
                    }
                    std::future::ready(Ok::<_, Infallible>(answer))
                }))
            })
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_replaced_before_it_expires_and_a_refusal_is_retried() {
        let (mut tokens, renewing) = requests().start().await.unwrap();
        assert_eq!(*tokens.borrow_and_update(), "Bearer token-1");
        let started = Instant::now();
        tokio::spawn(renewing);
        timeout(Duration::from_secs(590), tokens.changed()).await.expect("it is renewed in time").unwrap();
        assert_eq!(*tokens.borrow(), "Bearer token-3");
        assert!(started.elapsed() >= Duration::from_secs(480), "{:?}", started.elapsed());
    }

    #[tokio::test]
    async fn requests_carry_the_token_of_the_moment_and_nothing_of_the_process() {
        let address = loopback::serve(|request| {
            let token = request.headers().get(http::header::AUTHORIZATION).map(HeaderValue::to_str);
            loopback::answer(200, serde_json::to_string(token.unwrap().unwrap()).unwrap())
        })
        .await;
        let mut config = kube::Config::new(format!("http://{address}").parse().unwrap());
        config.auth_info.token = Some("the-process".to_owned().into());
        let Access { config, .. } = Access { config, ca_file: None }.without_credentials();
        let (sender, tokens) = watch::channel(HeaderValue::from_static("Bearer first"));
        let options = ClientOptions { tokens: Some(tokens), ..ClientOptions::default() };
        let client = Client::new(&config, options).unwrap();
        assert_eq!(client.get::<String>("/").await.unwrap(), "Bearer first");
        sender.send_replace(HeaderValue::from_static("Bearer second"));
        assert_eq!(client.get::<String>("/").await.unwrap(), "Bearer second");
    }

    #[tokio::test]
    async fn an_account_that_is_missing_is_named_with_where_it_comes_from() {
        let address = loopback::serve(|_| loopback::answer(404, r#"{"code":404,"message":"not found"}"#)).await;
        let config = kube::Config::new(format!("http://{address}").parse().unwrap());
        let requests = Requests::new(account(), Access { config, ca_file: None }, "test".to_owned());
        let error = requests.start().await.err().unwrap().to_string();
        assert!(error.starts_with("there is no ServiceAccount kube-system/ttl-operator; "), "{error}");
        assert!(error.contains("kubectl apply -k manifests/one-process/accounts"), "{error}");
    }
}
