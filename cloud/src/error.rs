//! Why a call failed, and how that travels as a gRPC status.
//!
//! A reason is an `ErrorDetail` in the `google.rpc.Status` of the details, as every gRPC library writes and reads it. A
//! bare code is no reason: a proxy sends NOT_FOUND and UNIMPLEMENTED too.

use std::error::Error;
use std::time::Duration;

use prost::Message;
use prost::bytes::Bytes;
use tonic::{Code, Status};

use crate::messages::{ErrorDetail, Reason};

/// Why a call failed. The texts are upstream's, which are shown in events.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloudError {
    /// The cloud itself says that it has no such instance.
    #[error("instance not found")]
    InstanceNotFound,
    /// Somebody else does this, and nothing is wrong.
    #[error("implemented by alternate to cloud provider")]
    ImplementedElsewhere,
    /// The provider does not support this call.
    #[error("unimplemented")]
    NotSupported,
    /// The call is to be repeated after this time, and not earlier unless its object changes.
    #[error("{message}")]
    RetryAfter { after: Duration, message: String },
    /// The provider's words, or why it cannot be reached.
    #[error("{0}")]
    Failed(String),
}

/// `google.rpc.Status`, which the details of a status hold.
#[derive(Clone, PartialEq, Message)]
struct RichStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// A provider that asks to be called again at once is called again after this time.
const RETRY_MIN: Duration = Duration::from_secs(1);
const TYPE_URL: &str = "type.googleapis.com/cloud.v1.ErrorDetail";

impl CloudError {
    pub(crate) fn of_status(status: &Status) -> Self {
        let detail = detail(status.details()).unwrap_or_default();
        match detail.reason() {
            Reason::InstanceNotFound => Self::InstanceNotFound,
            Reason::ImplementedElsewhere => Self::ImplementedElsewhere,
            Reason::RetryAfter => Self::RetryAfter {
                after: Duration::from_millis(detail.retry_after_milliseconds).max(RETRY_MIN),
                message: status.message().to_owned(),
            },
            Reason::Unspecified if status.code() == Code::Unimplemented => Self::NotSupported,
            Reason::Unspecified => Self::Failed(words(status)),
        }
    }

    pub(crate) fn to_status(&self) -> Status {
        let (code, reason, after) = match self {
            Self::InstanceNotFound => (Code::NotFound, Reason::InstanceNotFound, Duration::ZERO),
            Self::ImplementedElsewhere => (Code::Unimplemented, Reason::ImplementedElsewhere, Duration::ZERO),
            Self::NotSupported => return Status::unimplemented(self.to_string()),
            Self::RetryAfter { after, message: _ } => (Code::Unavailable, Reason::RetryAfter, *after),
            Self::Failed(words) => return Status::unknown(words),
        };
        let retry_after_milliseconds = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        let detail = ErrorDetail { reason: reason.into(), retry_after_milliseconds };
        let any = Any { type_url: TYPE_URL.to_owned(), value: detail.encode_to_vec() };
        let rich = RichStatus { code: i32::from(code), message: self.to_string(), details: vec![any] };
        Status::with_details(code, self.to_string(), Bytes::from(rich.encode_to_vec()))
    }
}

fn detail(details: &[u8]) -> Option<ErrorDetail> {
    let RichStatus { code: _, message: _, details } = RichStatus::decode(details).ok()?;
    let detail = details.into_iter().find(|any| any.type_url == TYPE_URL)?;
    ErrorDetail::decode(&*detail.value).ok()
}

/// The message, and for an error of the connection what led to it.
fn words(status: &Status) -> String {
    let mut words = status.message().to_owned();
    let mut source = status.source();
    while let Some(error) = source {
        let text = error.to_string();
        if !words.contains(&text) {
            words = if words.is_empty() { text } else { format!("{words}: {text}") };
        }
        source = error.source();
    }
    if words.is_empty() { status.code().description().to_owned() } else { words }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_that_names_no_time_is_called_again_after_a_second() {
        let named = |after| CloudError::RetryAfter { after, message: "busy".to_owned() };
        let read = |after| CloudError::of_status(&named(after).to_status());
        assert_eq!(read(Duration::ZERO), named(Duration::from_secs(1)));
        assert_eq!(read(Duration::from_secs(90)), named(Duration::from_secs(90)));
    }

    #[test]
    fn every_error_is_read_as_it_was_written() {
        let after = Duration::from_millis(1500);
        for error in [
            CloudError::InstanceNotFound,
            CloudError::ImplementedElsewhere,
            CloudError::NotSupported,
            CloudError::RetryAfter { after, message: "quota exceeded".to_owned() },
            CloudError::Failed("no subnet".to_owned()),
        ] {
            assert_eq!(CloudError::of_status(&error.to_status()), error);
        }
    }

    #[test]
    fn a_bare_not_found_does_not_show_that_an_instance_is_gone() {
        let error = CloudError::of_status(&Status::not_found("no such page"));
        assert_eq!(error, CloudError::Failed("no such page".to_owned()));
    }

    #[test]
    fn a_bare_code_is_the_providers_words_or_its_description() {
        let cases = [(Status::unavailable(""), "The service is currently unavailable"), (Status::internal("x"), "x")];
        for (status, words) in cases {
            assert_eq!(CloudError::of_status(&status), CloudError::Failed(words.to_owned()));
        }
    }

    #[test]
    fn details_that_are_none_do_not_matter() {
        for details in [&b"\xff\xff"[..], b"", b"{}"] {
            let status = Status::with_details(Code::Aborted, "busy", Bytes::copy_from_slice(details));
            assert_eq!(CloudError::of_status(&status), CloudError::Failed("busy".to_owned()));
        }
    }
}
