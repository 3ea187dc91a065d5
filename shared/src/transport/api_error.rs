//! The errors of one request: a case for each that a caller branches on.
//!
//! Left out: retries. A 429 with `Retry-After` is waited out by [`crate::transport::client`]; everything else is tried
//! again by the queue.

use std::borrow::Cow;
use std::time::Duration;

use http::Method;
use serde::Deserialize;

use crate::api::object::null_as_default;
use crate::api::protobuf;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The apiserver's answer; printed as the answer's message, as upstream prints a `StatusError`.
    #[error("{0}")]
    Status(Box<Status>),
    /// No whole answer came: whether a write happened is unknown.
    #[error("{method} {path}: {cause}")]
    Transport {
        method: String,
        path: String,
        /// The transport's error with all its causes, in one line.
        cause: String,
    },
    /// No answer in time: whether a write happened is unknown.
    #[error("{method} {path}: no answer within {limit:?}")]
    Timeout { method: String, path: String, limit: Duration },
    #[error("{method} {path}: cannot read the answer: {cause}")]
    Decode {
        method: String,
        path: String,
        /// Where and why decoding stopped.
        cause: serde_json::Error,
    },
    /// The answer is longer than any that this build reads.
    #[error("{method} {path}: the answer has more than {limit} bytes")]
    TooLarge {
        method: String,
        path: String,
        /// How many bytes are read.
        limit: usize,
    },
    /// Nothing was sent, because no object can have this name: see [`crate::api::url::is_segment`]. The path would name
    /// something else.
    ///
    /// Upstream: `Name`, staging/src/k8s.io/client-go/rest/request.go.
    #[error("invalid resource name {0:?}")]
    InvalidName(String),
    /// Nothing was sent, because another replica may lead.
    #[error("not written: the lease of this replica has expired")]
    NotLeading,
    /// Nothing was sent, because this process runs as a shadow.
    #[error("not written: this is a shadow")]
    Shadow,
}

/// Shorter ways to treat the result of a request.
pub trait ResultExt<T> {
    /// `None` if the object is gone. Right for a write that has no purpose without its object: a deletion, or a patch
    /// of what was observed. Wrong for a live read and for a write that nothing else would repeat
    /// ([`Self::unless_absent`]), and for a create, which gets a 404 if its namespace is missing.
    fn unless_gone(self) -> Result<Option<T>, ApiError>;

    /// `None` if the apiserver says that the object does not exist. Any other 404 is an error: it comes from a proxy, or
    /// because the kind is not served at the moment, and says nothing about the object.
    fn unless_absent(self) -> Result<Option<T>, ApiError>;
}

impl<T> ResultExt<T> for Result<T, ApiError> {
    fn unless_gone(self) -> Result<Option<T>, ApiError> {
        none_if(self, ApiError::is_not_found)
    }

    fn unless_absent(self) -> Result<Option<T>, ApiError> {
        none_if(self, ApiError::is_object_not_found)
    }
}

fn none_if<T>(result: Result<T, ApiError>, is_none: fn(&ApiError) -> bool) -> Result<Option<T>, ApiError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_none(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The fields of `metav1.Status` that callers read.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    pub code: u16,
    /// One word that classifies the failure, such as `AlreadyExists`.
    pub reason: String,
    pub message: String,
    pub details: Option<StatusDetails>,
    #[serde(deserialize_with = "null_as_default")]
    pub metadata: StatusMeta,
}

/// The fields of the `metav1.ListMeta` of a failure that callers read.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct StatusMeta {
    /// Where a list goes on whose own token has expired, in the newest state; empty where the server offers nothing.
    #[serde(rename = "continue")]
    pub token: String,
}

/// The fields of `metav1.StatusDetails` that callers read.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusDetails {
    /// The object that the failure is about; empty if it is about no single one.
    pub name: String,
    pub causes: Vec<StatusCause>,
    /// Seconds to wait before asking again; 0 where the server does not say.
    pub retry_after_seconds: u32,
}

/// `metav1.StatusCause`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct StatusCause {
    /// One word that classifies the cause, such as `NamespaceTerminating`.
    pub reason: String,
    pub message: String,
    pub field: String,
}

impl Status {
    /// Reads the body of an unsuccessful answer, in any form that a request asks for. A body that is no `Status` becomes
    /// the message.
    pub fn from_body(code: u16, body: &[u8]) -> Self {
        let status = protobuf::read_object(body).ok().filter(|status: &Self| status.code != 0);
        status.unwrap_or_else(|| {
            let text = if protobuf::is_protobuf(body) { Cow::Borrowed("") } else { String::from_utf8_lossy(body) };
            let text = text.trim();
            let message = if text.is_empty() { format!("the server answered {code}") } else { text.to_owned() };
            Self { code, message, ..Self::default() }
        })
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.message.is_empty() { &self.reason } else { &self.message })
    }
}

impl ApiError {
    /// Makes the error of an answer to this request that cannot be decoded.
    pub(crate) fn unread<'a>(method: &'a Method, path: &'a str) -> impl Fn(serde_json::Error) -> Self + 'a {
        move |cause| Self::Decode { method: method.to_string(), path: path.to_owned(), cause }
    }

    /// Makes the error of an answer to this request that did not come to its end.
    pub(crate) fn cut(method: &Method, path: &str) -> Self {
        let cause = "the answer did not come to its end".to_owned();
        Self::Transport { method: method.to_string(), path: path.to_owned(), cause }
    }

    /// The apiserver's answer, if one came.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Status(status) => Some(status),
            Self::Transport { .. }
            | Self::Timeout { .. }
            | Self::Decode { .. }
            | Self::TooLarge { .. }
            | Self::InvalidName(_)
            | Self::NotLeading
            | Self::Shadow => None,
        }
    }

    /// The HTTP code of the answer, if one came.
    pub fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }

    /// One word for the failure, of a bounded set: what the apiserver calls it, or why there is no answer.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Status(status) => REASONS.into_iter().find(|reason| *reason == status.reason).unwrap_or(OTHER_REASON),
            Self::Transport { .. } => "Connection",
            Self::Timeout { .. } => "Timeout",
            Self::Decode { .. } | Self::TooLarge { .. } => "Unreadable",
            Self::InvalidName(_) => "NotFound",
            Self::NotLeading | Self::Shadow => "NotWritten",
        }
    }

    fn has_reason(&self, reason: &str) -> bool {
        self.status().is_some_and(|status| status.reason == reason)
    }

    /// The object is gone, or never was.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::InvalidName(_))
            || self.has_reason("NotFound")
            || (self.code() == Some(404) && self.has_reason(""))
    }

    /// The server serves the resource, and the object that the answer names does not exist. A 404 for an unknown path
    /// says nothing about the object, because its kind may be missing for a while. An object with an invalid name does
    /// not exist either.
    pub fn is_object_not_found(&self) -> bool {
        let details = self.status().and_then(|status| status.details.as_ref());
        let is_named = details.is_some_and(|details| !details.name.is_empty());
        matches!(self, Self::InvalidName(_)) || (self.has_reason("NotFound") && is_named)
    }

    /// A create met an object of the same name.
    pub fn is_already_exists(&self) -> bool {
        self.has_reason("AlreadyExists")
    }

    /// A precondition (uid, resourceVersion) did not hold.
    pub fn is_conflict(&self) -> bool {
        self.has_reason("Conflict")
    }

    pub fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }

    /// The credentials are not valid, or have expired.
    pub fn is_unauthorized(&self) -> bool {
        self.code() == Some(401)
    }

    /// The object, or a field of it, is not valid.
    pub fn is_invalid(&self) -> bool {
        self.code() == Some(422)
    }

    /// The resourceVersion or continue token is too old: list again.
    pub fn is_gone(&self) -> bool {
        self.code() == Some(410)
    }

    /// The server does not know this path or verb.
    pub fn is_method_not_supported(&self) -> bool {
        self.code() == Some(405)
    }

    /// The server is too busy.
    pub fn is_too_many_requests(&self) -> bool {
        self.code() == Some(429)
    }

    /// Whether a cause of the answer has this reason.
    ///
    /// Upstream: `HasStatusCause`, staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go.
    pub fn has_cause(&self, reason: &str) -> bool {
        let details = self.status().and_then(|status| status.details.as_ref());
        details.is_some_and(|details| details.causes.iter().any(|cause| cause.reason == reason))
    }

    /// A create was refused because its namespace is being deleted.
    pub fn is_namespace_terminating(&self) -> bool {
        self.has_cause("NamespaceTerminating")
    }

    /// Whether the error is only that a shadow does not write.
    pub fn is_shadows(error: &anyhow::Error) -> bool {
        error.chain().any(|cause| matches!(cause.downcast_ref(), Some(Self::Shadow)))
    }

    /// The same text for the same failure: without the path's query, of which parts are random.
    pub fn without_query(&self) -> String {
        let text = self.to_string();
        let Some((before, rest)) = text.split_once('?') else { return text };
        let (_, after) = rest.split_once(": ").unwrap_or(("", ""));
        format!("{before}: {after}")
    }

    /// Whether a write may have happened although it failed.
    pub fn is_outcome_unknown(&self) -> bool {
        match self {
            Self::Transport { .. } | Self::Timeout { .. } | Self::Decode { .. } | Self::TooLarge { .. } => true,
            Self::Status(status) => status.code >= 500 && !status.is_known_refusal(),
            Self::InvalidName(_) | Self::NotLeading | Self::Shadow => false,
        }
    }
}

impl Status {
    /// Whether an answer of 500 or more means that nothing was stored. Admission runs before storage, and a server that
    /// is not ready, or whose storage is not, stores nothing.
    fn is_known_refusal(&self) -> bool {
        let message = self.message.strip_prefix("Internal error occurred: ").unwrap_or(&self.message);
        match self.code {
            503 => self.reason == "ServiceUnavailable" && !message.starts_with(UNREACHED_SERVICE),
            code => code != 504 && ADMISSION_REFUSALS.iter().any(|refusal| message.starts_with(refusal)),
        }
    }
}

/// The reason of every failure that has none of its own.
pub(crate) const OTHER_REASON: &str = "Other";

/// The reasons that an apiserver gives. Another server may send any text, which must not become a label of a metric.
///
/// Upstream: `StatusReason`, staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go.
const REASONS: [&str; 19] = [
    "Unauthorized",
    "Forbidden",
    "NotFound",
    "AlreadyExists",
    "Conflict",
    "Gone",
    "Invalid",
    "ServerTimeout",
    "StoreReadError",
    "Timeout",
    "TooManyRequests",
    "BadRequest",
    "MethodNotAllowed",
    "NotAcceptable",
    "RequestEntityTooLarge",
    "UnsupportedMediaType",
    "InternalError",
    "Expired",
    "ServiceUnavailable",
];

/// The first words of refusals by admission, which may have any code.
///
/// Upstream: `ErrCallingWebhook`, staging/src/k8s.io/apiserver/pkg/util/webhook/error.go; `ToStatusErr`,
/// staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go; `Evaluate`,
/// staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go.
const ADMISSION_REFUSALS: [&str; 3] =
    ["failed calling webhook ", "admission webhook ", "resource quota evaluation timed out"];

/// The first words of the aggregator's error when the connection to another apiserver failed, perhaps after the request
/// was sent.
///
/// Upstream: `responder`, staging/src/k8s.io/kube-aggregator/pkg/apiserver/handler_proxy.go.
const UNREACHED_SERVICE: &str = "error trying to reach service";

/// All causes of an error in one line, without those that a longer one repeats.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: u16, body: &str) -> ApiError {
        ApiError::Status(Box::new(Status::from_body(code, body.as_bytes())))
    }

    #[test]
    fn classifies_the_servers_answers() {
        let quota = error(403, r#"{"kind":"Status","code":403,"reason":"Forbidden","message":"exceeded quota"}"#);
        assert!(quota.is_forbidden() && !quota.is_namespace_terminating());
        assert_eq!(quota.to_string(), "exceeded quota");
        let terminating = error(
            403,
            r#"{"code":403,"reason":"Forbidden","message":"m","details":{"causes":[{"reason":"NamespaceTerminating"}]}}"#,
        );
        assert!(terminating.is_namespace_terminating());
        assert!(error(409, r#"{"code":409,"reason":"AlreadyExists"}"#).is_already_exists());
        assert!(!error(409, r#"{"code":409,"reason":"AlreadyExists"}"#).is_conflict());
        assert!(error(409, r#"{"metadata":null,"code":409,"reason":"Conflict"}"#).is_conflict());
        assert!(error(404, "404 page not found\n").is_not_found());
        let gone: Result<(), ApiError> = Err(error(404, r#"{"code":404,"reason":"NotFound"}"#));
        assert!(matches!(gone.unless_gone(), Ok(None)));
        let refused: Result<(), ApiError> = Err(error(409, r#"{"code":409,"reason":"Conflict"}"#));
        assert!(refused.unless_gone().is_err_and(|error| error.is_conflict()));
        assert_eq!(error(502, "").to_string(), "the server answered 502");
        let path = "/api/v1/pods?watch=1&timeoutSeconds=417".to_owned();
        let refused = ApiError::Transport { method: "GET".to_owned(), path, cause: "connection refused".to_owned() };
        assert_eq!(refused.without_query(), "GET /api/v1/pods: connection refused");
    }

    #[test]
    fn the_reason_of_a_failure_is_one_of_few_words() {
        assert_eq!(error(409, r#"{"code":409,"reason":"Conflict"}"#).reason(), "Conflict");
        assert_eq!(error(503, r#"{"code":503,"reason":"ServiceUnavailable"}"#).reason(), "ServiceUnavailable");
        assert_eq!(error(500, r#"{"code":500,"reason":"pod web-7f failed at 12:01"}"#).reason(), "Other");
        assert_eq!(error(502, "Bad Gateway").reason(), "Other");
        let (method, path) = ("GET".to_owned(), "/api".to_owned());
        let broken = ApiError::Transport { method: method.clone(), path: path.clone(), cause: String::new() };
        assert_eq!(broken.reason(), "Connection");
        let late = ApiError::Timeout { method: method.clone(), path: path.clone(), limit: Duration::from_secs(30) };
        assert_eq!(late.reason(), "Timeout");
        assert_eq!(ApiError::TooLarge { method, path, limit: 1 }.reason(), "Unreadable");
        assert_eq!(ApiError::NotLeading.reason(), "NotWritten");
    }

    #[test]
    fn only_an_answer_that_names_an_object_shows_that_it_does_not_exist() {
        for (code, body, is_absent) in [
            (404, r#"{"code":404,"reason":"NotFound","details":{"name":"a","kind":"pods"}}"#, true),
            (404, "404 page not found\n", false),
            (404, r#"{"code":404,"reason":"NotFound","message":"no such path"}"#, false),
            (404, r#"{"code":404,"reason":"NotFound","details":{"kind":"pods"}}"#, false),
            (409, r#"{"code":409,"reason":"Conflict","details":{"name":"a","kind":"pods"}}"#, false),
            (503, "", false),
        ] {
            let read: Result<(), ApiError> = Err(error(code, body));
            assert_eq!(read.unless_absent().is_ok_and(|read| read.is_none()), is_absent, "{code} {body}");
        }
    }

    /// Whether a write with this answer may have happened.
    #[track_caller]
    fn check(code: u16, reason: &str, message: &str, expected: bool) {
        let status = Status { code, reason: reason.to_owned(), message: message.to_owned(), ..Status::default() };
        let error = ApiError::Status(Box::new(status));
        assert_eq!(error.is_outcome_unknown(), expected, "{code} {reason}: {message}");
    }

    #[test]
    fn a_known_refusal_is_no_doubt() {
        for code in [400, 401, 403, 404, 405, 408, 409, 410, 415, 422, 429] {
            check(code, "", "no", false);
        }
        let dial = r#"failed to call webhook: Post "https://127.0.0.1:1/?timeout=1s": dial tcp: connection refused"#;
        let webhook = format!(r#"failed calling webhook "dead.example.com": {dial}"#);
        check(500, "InternalError", &format!("Internal error occurred: {webhook}"), false);
        check(500, "InternalError", &webhook, false);
        let late = r#"failed calling webhook "slow": failed to call webhook: context deadline exceeded"#;
        check(500, "InternalError", &format!("Internal error occurred: {late}"), false);
        check(500, "", r#"admission webhook "strict.example.com" denied the request: not today"#, false);
        check(502, "", r#"admission webhook "strict.example.com" denied the request without explanation"#, false);
        check(500, "InternalError", "Internal error occurred: resource quota evaluation timed out", false);
        check(503, "ServiceUnavailable", "apiserver not ready", false);
        check(503, "ServiceUnavailable", "the server is currently unable to handle the request", false);
        assert!(!ApiError::NotLeading.is_outcome_unknown() && !ApiError::Shadow.is_outcome_unknown());
    }

    #[test]
    fn what_may_have_been_stored_before_it_failed_is_in_doubt() {
        check(500, "InternalError", "Internal error occurred: etcdserver: request timed out", true);
        check(500, "ServerTimeout", "The create operation against pods could not be completed at this time", true);
        check(500, "InternalError", "Internal error occurred: conversion webhook for example.com/v1 failed", true);
        check(500, "", "the message of a user says: failed calling webhook ", true);
        check(502, "", "Bad Gateway", true);
        check(503, "", "upstream connect error or disconnect/reset before headers", true);
        check(503, "ServiceUnavailable", "error trying to reach service: EOF", true);
        check(504, "Timeout", "Timeout: request did not complete within the allotted timeout", true);
        check(504, "Timeout", r#"admission webhook "a proxy in between says so""#, true);
        let (method, path) = ("POST".to_owned(), "/api/v1/namespaces/ns/pods".to_owned());
        let cause = "connection reset".to_owned();
        let broken = ApiError::Transport { method: method.clone(), path: path.clone(), cause };
        let late = ApiError::Timeout { method: method.clone(), path: path.clone(), limit: Duration::from_secs(30) };
        let odd = ApiError::Decode { method, path, cause: serde_json::from_str::<u8>("x").unwrap_err() };
        for error in [broken, late, odd] {
            assert!(error.is_outcome_unknown(), "{error}");
        }
    }
}
