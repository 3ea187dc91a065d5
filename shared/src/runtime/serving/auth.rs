//! Who may see what: the apiserver is asked, by TokenReview and SubjectAccessReview, and its answers are kept for 10 s.
//!
//! As upstream's delegating authentication and authorization: no token means `system:anonymous`, members of
//! `system:masters` may see everything, and paths that are always allowed need no review.
//! Left out: client certificates, request headers of an aggregator, and retries: the next request asks again.
//!
//! Upstream: staging/src/k8s.io/apiserver/pkg/server/options/{authentication,authorization}.go.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method, StatusCode, Uri};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::{JSON, TEXT};
use crate::api::json;
use crate::runtime::client::{Accept, Client};

/// `CacheTTL`, `AllowCacheTTL` and `DenyCacheTTL`.
const KEPT: Duration = Duration::from_secs(10);
const KEPT_MAX: usize = 64;
/// `TokenRequestTimeout` and `ClientTimeout`.
const REVIEW_MAX: Duration = Duration::from_secs(10);

const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// Why a visitor gets something else than what was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Denied {
    /// The token is not valid, or nobody could say.
    Unauthorized,
    /// The visitor may not do this.
    Forbidden(String),
    /// Nobody could say.
    Unknown(String),
}

impl Denied {
    /// Code, content type and body, as upstream's.
    pub(super) fn into_parts(self) -> (StatusCode, &'static str, String) {
        let status = |code: StatusCode, reason: &str, message: &str| {
            let details = (code == StatusCode::FORBIDDEN).then_some(Empty {});
            let status = Status {
                kind: "Status",
                api_version: "v1",
                metadata: Empty {},
                outcome: "Failure",
                message,
                reason,
                details,
                code: code.as_u16(),
            };
            (code, JSON, String::from_utf8_lossy(&json(&status)).into_owned() + "\n")
        };
        match self {
            Self::Unauthorized => status(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized"),
            Self::Forbidden(message) => status(StatusCode::FORBIDDEN, "Forbidden", &message),
            Self::Unknown(message) => (StatusCode::INTERNAL_SERVER_ERROR, TEXT, format!("{message}\n")),
        }
    }
}

/// `metav1.Status` in upstream's order of fields.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    kind: &'a str,
    api_version: &'a str,
    metadata: Empty,
    #[serde(rename = "status")]
    outcome: &'a str,
    message: &'a str,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Empty>,
    code: u16,
}

#[derive(Serialize)]
struct Empty {}

/// `UserInfo` of a TokenReview; all of it goes on into the SubjectAccessReview.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct User {
    username: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl User {
    fn anonymous() -> Self {
        let groups = vec!["system:unauthenticated".to_owned()];
        Self { username: "system:anonymous".to_owned(), groups, ..Self::default() }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct TokenStatus {
    authenticated: bool,
    user: User,
    error: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AccessStatus {
    allowed: bool,
    reason: String,
    evaluation_error: String,
}

#[derive(Deserialize)]
struct Review<S> {
    status: S,
}

/// Asks, and remembers for a short time.
pub(super) struct Auth {
    client: Client,
    always_allowed: Vec<String>,
    users: Kept<TokenStatus>,
    accesses: Kept<AccessStatus>,
}

impl Auth {
    pub(super) fn new(client: Client, always_allowed: Vec<String>) -> Self {
        Self { client, always_allowed, users: Kept::default(), accesses: Kept::default() }
    }

    /// Whether whoever sent these headers may do this.
    pub(super) async fn check(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Denied> {
        let user = match bearer_token(headers) {
            Some(token) => self.user(token).await?,
            None => User::anonymous(),
        };
        let path = uri.path();
        if user.groups.iter().any(|group| group == "system:masters") || is_allowed(&self.always_allowed, path) {
            return Ok(());
        }
        let verb = method.as_str().to_ascii_lowercase();
        let access = self.access(&user, &verb, path).await.map_err(|error| {
            tracing::error!(error, "cannot review an access");
            Denied::Unknown(sanitized(&format!("Internal Server Error: {:?}: {error}", uri.to_string())))
        })?;
        if access.allowed {
            return Ok(());
        }
        if !access.evaluation_error.is_empty() {
            tracing::warn!(
                error = access.evaluation_error,
                user = user.username,
                path,
                "an access was reviewed in part"
            );
        }
        let message = sanitized(&format!("forbidden: User {:?} cannot {verb} path {path:?}", user.username));
        Err(Denied::Forbidden(match access.reason.as_str() {
            "" => message,
            reason => format!("{message}: {reason}"),
        }))
    }

    async fn user(&self, token: &str) -> Result<User, Denied> {
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
        let status = self.users.review(&self.client, TOKEN_REVIEWS, json(&review)).await;
        let status = status.map_err(|error| {
            tracing::error!(error, "cannot review a token");
            Denied::Unauthorized
        })?;
        if !status.error.is_empty() {
            tracing::debug!(error = status.error, "a token is not valid");
        }
        if status.authenticated { Ok(status.user) } else { Err(Denied::Unauthorized) }
    }

    async fn access(&self, user: &User, verb: &str, path: &str) -> Result<AccessStatus, String> {
        #[derive(Serialize)]
        struct Spec<'a> {
            user: &'a str,
            #[serde(skip_serializing_if = "str::is_empty")]
            uid: &'a str,
            groups: &'a [String],
            #[serde(skip_serializing_if = "BTreeMap::is_empty")]
            extra: &'a BTreeMap<String, Vec<String>>,
            #[serde(rename = "nonResourceAttributes")]
            attributes: Attributes<'a>,
        }
        #[derive(Serialize)]
        struct Attributes<'a> {
            path: &'a str,
            verb: &'a str,
        }
        let User { username, uid, groups, extra } = user;
        let spec = Spec { user: username, uid, groups, extra, attributes: Attributes { path, verb } };
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec});
        self.accesses.review(&self.client, ACCESS_REVIEWS, json(&review)).await
    }
}

/// Upstream: `AuthenticateRequest`, staging/src/k8s.io/apiserver/pkg/authentication/request/bearertoken/bearertoken.go.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.split(' ').next().unwrap_or(token);
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Upstream: `NewAuthorizer`, staging/src/k8s.io/apiserver/pkg/authorization/path/path.go.
fn is_allowed(always: &[String], path: &str) -> bool {
    let path = path.trim_start_matches('/');
    always.iter().map(|allowed| allowed.trim_start_matches('/')).any(|allowed| match allowed.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => path == allowed,
    })
}

/// Nothing that a browser could take for HTML.
fn sanitized(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Answers by what was asked, word for word.
struct Kept<S>(Mutex<BTreeMap<Bytes, (Instant, S)>>);

impl<S> Default for Kept<S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<S: Clone + for<'de> Deserialize<'de>> Kept<S> {
    async fn review(&self, client: &Client, path: &str, asked: Bytes) -> Result<S, String> {
        if let Some(known) = self.known(&asked) {
            return Ok(known);
        }
        let review = client.create::<Review<S>>(path, Accept::Object, asked.clone());
        let review = timeout(REVIEW_MAX, review).await.map_err(|_| format!("no answer within {REVIEW_MAX:?}"))?;
        let status = review.map_err(|error| error.to_string())?.status;
        self.keep(asked, status.clone());
        Ok(status)
    }

    fn known(&self, asked: &Bytes) -> Option<S> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(asked).filter(|(since, _)| since.elapsed() < KEPT).map(|(_, status)| status.clone())
    }

    fn keep(&self, asked: Bytes, status: S) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, (since, _)| since.elapsed() < KEPT);
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(asked, (Instant::now(), status));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bearer_token_is_read_as_upstream_does() {
        for (value, expected) in [
            ("Bearer abc", Some("abc")),
            ("bearer abc", Some("abc")),
            (" Bearer abc ", Some("abc")),
            ("Bearer abc def", Some("abc")),
            ("Bearer  abc", None),
            ("Bearer ", None),
            ("Bearer", None),
            ("Basic abc", None),
            ("", None),
        ] {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
            assert_eq!(bearer_token(&headers), expected, "{value:?}");
        }
        assert_eq!(bearer_token(&HeaderMap::new()), None);
    }

    #[test]
    fn paths_are_always_allowed_whole_or_by_prefix() {
        let always = ["/healthz".to_owned(), "livez".to_owned(), "/debug/*".to_owned()];
        for (path, expected) in [
            ("/healthz", true),
            ("/livez", true),
            ("/debug/decisions", true),
            ("/debug/", true),
            ("/debug", false),
            ("/healthz/leaderElection", false),
            ("/metrics", false),
        ] {
            assert_eq!(is_allowed(&always, path), expected, "{path}");
        }
    }

    #[test]
    fn denials_are_upstreams() {
        let (code, content_type, body) = Denied::Unauthorized.into_parts();
        assert_eq!((code.as_u16(), content_type), (401, "application/json"));
        assert_eq!(
            body,
            concat!(
                r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","#,
                r#""reason":"Unauthorized","code":401}"#,
                "\n"
            )
        );
        let (code, _, body) = Denied::Forbidden("forbidden: no".to_owned()).into_parts();
        assert_eq!(code.as_u16(), 403);
        assert!(body.contains(r#""message":"forbidden: no","reason":"Forbidden","details":{},"code":403}"#), "{body}");
    }
}
