//! The two changes of a request's status: its certificate, or the condition Failed.
//!
//! Upstream: `handle`, `pkg/controller/certificates/signer/signer.go`.

use data_encoding::BASE64;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use shared::api::condition::TRUE;
use shared::api::time::Time;
use shared::controllers::certificates::FAILED;

use crate::plan::verification::Invalid;

const SIGNER_VALIDATION_FAILURE: &str = "SignerValidationFailure";

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Status {
    /// The certificate: PEM, in base64.
    Certificate(String),
    Conditions(Vec<Value>),
}

pub fn issued(certificate: &str) -> Status {
    Status::Certificate(BASE64.encode(certificate.as_bytes()))
}

/// The status of a request that its signer refuses; it keeps the other conditions.
pub fn failed(conditions: &[Value], invalid: &Invalid, now: Timestamp) -> Status {
    let failure = json!({
        "type": FAILED, "status": TRUE, "reason": SIGNER_VALIDATION_FAILURE, "message": invalid.to_string(),
        "lastUpdateTime": Time::of(now),
    });
    Status::Conditions(conditions.iter().cloned().chain([failure]).collect())
}
