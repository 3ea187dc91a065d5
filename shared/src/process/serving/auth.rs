//! Authorization: asks the apiserver, by TokenReview and SubjectAccessReview, and keeps its answers for 10 s.
//!
//! Anybody can cause reviews, so they have a client of their own with a limit, and nothing else waits behind them.
//! Peers take turns under that limit, and a question is asked once however many wait for its answer. A token is kept as
//! a hash under a key of this process: a dump of its memory gives nobody a token. As upstream's
//! delegating authentication and authorization: no token means `system:anonymous`, members of `system:masters` may see
//! everything, and paths that are always allowed need no review. Beyond upstream's, a token may be for the audience
//! [`AUDIENCE`] alone.
//! Left out: client certificates, request headers of an aggregator, and retries: the next request asks again.
//!
//! Upstream: staging/src/k8s.io/apiserver/pkg/server/options/{authentication,authorization}.go.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode, Uri};
use ring::hmac;
use ring::rand::SystemRandom;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout};

use super::turns::Turns;
use super::{JSON, ServingError};
use crate::api::explain::{AUDIENCE, Subject};
use crate::api::json;
use crate::transport::api_error::ApiError;
use crate::transport::client::{Accept, Client, Limit};
use crate::working::control::AccessStatus;
use crate::working::control::review::{ACCESS_REVIEWS, Review};

/// `CacheTTL`, `AllowCacheTTL` and `DenyCacheTTL`.
const KEPT: Duration = Duration::from_secs(10);
/// More than [`REVIEWS`] lets through in that time, so that invented tokens displace no answer.
const KEPT_MAX: usize = 128;
/// `TokenRequestTimeout` and `ClientTimeout`.
const REVIEW_MAX: Duration = Duration::from_secs(10);
/// A scraper needs two reviews in 10 s. A visitor that asks for more waits, and the apiserver doesn't notice.
const REVIEWS: Limit = Limit { qps: 5.0, burst: 10 };
const REVIEWS_AT_ONCE: usize = 4;

const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

/// Why a visitor gets something else than what was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Denied {
    /// The token is not valid.
    Unauthorized,
    /// The visitor may not do this.
    Forbidden(String),
    /// Nobody could say, because the apiserver gave no answer in time.
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
            Self::Unknown(message) => status(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", &message),
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

#[derive(Clone, Copy)]
pub(super) enum Access<'a> {
    Path {
        verb: &'a str,
        path: &'a str,
    },
    /// Read what is said about an object, which who may get the object may.
    Object(&'a Subject),
}

impl fmt::Display for Access<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path { verb, path } => write!(f, "{verb} path {path:?}"),
            Self::Object(object) => write!(f, "get {object}"),
        }
    }
}

impl Serialize for Access<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, attributes) = match self {
            Self::Path { verb, path } => ("nonResourceAttributes", json!({"path": path, "verb": verb})),
            Self::Object(Subject { group, version, resource, namespace, name }) => {
                // That of a namespace is itself: a RoleBinding in it counts.
                // Upstream: `NewRequestInfo`, staging/src/k8s.io/apiserver/pkg/endpoints/request/requestinfo.go.
                let namespace = if group.is_empty() && resource == "namespaces" { name } else { namespace };
                let attributes = json!({"verb": "get", "group": group, "version": version, "resource": resource,
                    "namespace": namespace, "name": name});
                ("resourceAttributes", attributes)
            }
        };
        serializer.collect_map([(kind, attributes)])
    }
}

pub(super) struct Auth {
    reviewer: Arc<Reviewer>,
    always_allowed: Vec<String>,
    token_key: hmac::Key,
    users: Kept<TokenHash, TokenStatus>,
    /// By the review as it was sent: the user and the action.
    accesses: Kept<Bytes, AccessStatus>,
}

/// HMAC-SHA256.
type TokenHash = [u8; 32];

impl Auth {
    pub(super) fn new(client: &Client, always_allowed: Vec<String>) -> Result<Self, ServingError> {
        Ok(Self {
            reviewer: Arc::new(Reviewer { client: client.beside(Some(REVIEWS))?, turns: Turns::new(REVIEWS_AT_ONCE) }),
            always_allowed,
            token_key: hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
                .map_err(|_| ServingError::Randomness)?,
            users: Kept::default(),
            accesses: Kept::default(),
        })
    }

    /// Whether the sender of these headers, who connected from the address of `peer`, may do this.
    pub(super) async fn check(
        &self,
        peer: IpAddr,
        access: Access<'_>,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), Denied> {
        let user = match bearer_token(headers) {
            Some(token) => self.user(peer, token).await?,
            None => User::anonymous(),
        };
        let path = uri.path();
        if user.groups.iter().any(|group| group == "system:masters") || is_allowed(&self.always_allowed, path) {
            return Ok(());
        }
        let review = self.access(peer, &user, access).await.map_err(|error| {
            tracing::error!(error, "cannot review access");
            Denied::Unknown(sanitized(&format!("cannot review access: {error}")))
        })?;
        if review.allowed {
            return Ok(());
        }
        if !review.evaluation_error.is_empty() {
            tracing::warn!(
                error = review.evaluation_error,
                user = user.username,
                path,
                "access was only partly reviewed"
            );
        }
        let message = sanitized(&format!("forbidden: User {:?} cannot {access}", user.username));
        Err(Denied::Forbidden(match review.reason.as_str() {
            "" => message,
            reason => format!("{message}: {reason}"),
        }))
    }

    async fn user(&self, peer: IpAddr, token: &str) -> Result<User, Denied> {
        let status = self.review_token(peer, token).await.map_err(|error| {
            tracing::error!(error, "cannot review a token");
            Denied::Unknown(sanitized(&format!("cannot review the token: {error}")))
        })?;
        if !status.error.is_empty() {
            tracing::debug!(error = status.error, "invalid token");
        }
        if status.authenticated { Ok(status.user) } else { Err(Denied::Unauthorized) }
    }

    async fn review_token(&self, peer: IpAddr, token: &str) -> Result<TokenStatus, String> {
        let hash = self.token_hash(token);
        if let Some(known) = self.users.known(&hash) {
            return Ok(known);
        }
        let mut review =
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
        if is_for_operators(token) {
            review["spec"]["audiences"] = json!([AUDIENCE]);
        }
        self.reviewer.review(peer, TOKEN_REVIEWS, json(&review), || self.users.question(hash)).await
    }

    fn token_hash(&self, token: &str) -> TokenHash {
        let mut hash = TokenHash::default();
        hash.copy_from_slice(hmac::sign(&self.token_key, token.as_bytes()).as_ref());
        hash
    }

    async fn access(&self, peer: IpAddr, user: &User, access: Access<'_>) -> Result<AccessStatus, String> {
        #[derive(Serialize)]
        struct Spec<'a> {
            user: &'a str,
            #[serde(skip_serializing_if = "str::is_empty")]
            uid: &'a str,
            groups: &'a [String],
            #[serde(skip_serializing_if = "BTreeMap::is_empty")]
            extra: &'a BTreeMap<String, Vec<String>>,
            #[serde(flatten)]
            access: Access<'a>,
        }
        let User { username, uid, groups, extra } = user;
        let spec = Spec { user: username, uid, groups, extra, access };
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec});
        let asked = json(&review);
        if let Some(known) = self.accesses.known(&asked) {
            return Ok(known);
        }
        self.reviewer.review(peer, ACCESS_REVIEWS, asked.clone(), || self.accesses.question(asked)).await
    }
}

/// Upstream: `AuthenticateRequest`, staging/src/k8s.io/apiserver/pkg/authentication/request/bearertoken/bearertoken.go.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.split(' ').next().unwrap_or(token);
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Whether the token claims to be for operators. A review names the audience that it is verified for, and without one
/// that is the apiserver's own, which scrapers' tokens have; a false claim is refused either way.
fn is_for_operators(token: &str) -> bool {
    #[derive(Deserialize)]
    struct Claims {
        aud: Vec<String>,
    }
    let payload = token.split('.').nth(1).and_then(|payload| URL_SAFE_NO_PAD.decode(payload).ok());
    let claims = payload.and_then(|payload| serde_json::from_slice::<Claims>(&payload).ok());
    claims.is_some_and(|claims| claims.aud.iter().any(|audience| audience == AUDIENCE))
}

/// Upstream: `NewAuthorizer`, staging/src/k8s.io/apiserver/pkg/authorization/path/path.go.
fn is_allowed(always: &[String], path: &str) -> bool {
    let path = path.trim_start_matches('/');
    always.iter().map(|allowed| allowed.trim_start_matches('/')).any(|allowed| match allowed.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => path == allowed,
    })
}

fn sanitized(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

struct Reviewer {
    client: Client,
    turns: Turns,
}

impl Reviewer {
    /// The answer to the question that `question` gives once it is this peer's turn: by then another may have asked it.
    ///
    /// A visitor who leaves before the answer does not end this: reviews that are begun and dropped would use the limit
    /// up for those who wait.
    async fn review<S: for<'de> Deserialize<'de> + Clone + Send + Sync + 'static>(
        self: &Arc<Self>,
        peer: IpAddr,
        path: &'static str,
        asked: Bytes,
        question: impl FnOnce() -> Arc<Question<S>>,
    ) -> Result<S, String> {
        let late = |_| format!("no answer within {REVIEW_MAX:?}");
        let started = Instant::now();
        let place = timeout(REVIEW_MAX, self.turns.take(peer)).await.map_err(late)?;
        let (reviewer, question) = (Arc::clone(self), question());
        let review = tokio::spawn(async move {
            let ask = async {
                let review: Review<S> = reviewer.client.create(path, Accept::Object, asked).await?;
                Ok::<_, ApiError>(review.status)
            };
            let answer = question.answer.get_or_try_init(|| ask);
            let answer = timeout(REVIEW_MAX.saturating_sub(started.elapsed()), answer).await.map_err(late)?;
            drop(place);
            answer.cloned().map_err(|error| error.to_string())
        });
        review.await.map_err(|error| error.to_string())?
    }
}

/// What was asked of the apiserver, and its answer as soon as there is one.
struct Question<S> {
    asked: Instant,
    answer: OnceCell<S>,
}

impl<S> Question<S> {
    fn is_new(&self) -> bool {
        self.asked.elapsed() < KEPT
    }
}

/// The questions of the last seconds.
struct Kept<K, S>(Mutex<BTreeMap<K, Arc<Question<S>>>>);

impl<K, S> Default for Kept<K, S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord, S: Clone> Kept<K, S> {
    fn known(&self, asked: &K) -> Option<S> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(asked).filter(|question| question.is_new()).and_then(|question| question.answer.get().cloned())
    }

    fn question(&self, asked: K) -> Arc<Question<S>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, question| question.is_new());
        if kept.len() >= KEPT_MAX && !kept.contains_key(&asked) {
            kept.clear();
        }
        let new = || Arc::new(Question { asked: Instant::now(), answer: OnceCell::new() });
        Arc::clone(kept.entry(asked).or_insert_with(new))
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

    #[tokio::test]
    async fn a_token_is_kept_as_a_hash_that_tells_it_from_others() {
        let config = kube::Config::new("http://127.0.0.1:9".parse().unwrap());
        let client = Client::new(&config, crate::transport::client::ClientOptions::default()).unwrap();
        let [auth, other] = [(); 2].map(|()| Auth::new(&client, Vec::new()).unwrap());
        assert_eq!(auth.token_hash("a"), auth.token_hash("a"));
        assert_ne!(auth.token_hash("a"), auth.token_hash("b"));
        assert_ne!(auth.token_hash("a"), other.token_hash("a"), "another process has another key");
        let kept = TokenStatus { authenticated: true, ..TokenStatus::default() };
        auth.users.question(auth.token_hash("secret-token")).answer.set(kept).unwrap();
        let peer = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(auth.user(peer, "secret-token").await.unwrap().username, "");
        assert!(auth.user(peer, "another-token").await.is_err());
        let memory = format!("{:?}", auth.users.0.lock().unwrap().keys());
        assert!(!memory.contains("secret-token"), "{memory}");
    }

    #[test]
    fn what_a_browser_could_take_for_html_is_escaped() {
        assert_eq!(sanitized("<b>&"), "&lt;b&gt;&amp;");
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
