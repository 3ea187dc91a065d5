//! One request, the errors that tell of it, and the gates before it.
//!
//! Left out: sending it.

use bytes::Bytes;
use http::{HeaderValue, Method};

use super::{Accept, REQUEST_TIMEOUT};
use crate::transport::api_error::{ApiError, chain};

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) content_type: Option<HeaderValue>,
    pub(super) accept: Accept,
    pub(crate) body: Bytes,
}

impl<'a> Call<'a> {
    pub(super) const fn get(path: &'a str, accept: Accept) -> Self {
        Self { method: Method::GET, path, content_type: None, accept, body: Bytes::new() }
    }

    pub(super) fn broken(&self, cause: &(dyn std::error::Error + 'static)) -> ApiError {
        ApiError::Transport { method: self.method.to_string(), path: self.path.to_owned(), cause: chain(cause) }
    }

    pub(super) fn too_large(&self, limit: usize) -> ApiError {
        ApiError::TooLarge { method: self.method.to_string(), path: self.path.to_owned(), limit }
    }

    pub(super) fn timed_out(&self) -> ApiError {
        ApiError::Timeout { method: self.method.to_string(), path: self.path.to_owned(), limit: REQUEST_TIMEOUT }
    }
}

/// Decides which requests may be sent. Asked first of all, and again after each wait.
pub(crate) trait Gate: Send + Sync {
    /// Refuses a request by an error, which its sender gets.
    fn check(&self, call: &Call<'_>) -> Result<(), ApiError>;
}
