//! The status that a request gets: a value made from the observation, the outcome and the time, and nothing else.
//!
//! Left out: the condition of an approval, which other controllers and people write.
//!
//! Upstream: `handle`, `pkg/controller/certificates/signer/signer.go`.

use data_encoding::BASE64;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use shared::api::condition::TRUE;
use shared::api::time::Time;
use shared::controllers::certificates::FAILED;

use crate::apply::{Outcome, Verdict};
use crate::objects::State;
use crate::observe::Observed;

const SIGNER_VALIDATION_FAILURE: &str = "SignerValidationFailure";

/// The field of the status that is written.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Status {
    /// The certificate: PEM, in base64.
    Certificate(String),
    /// All conditions.
    Conditions(Vec<Value>),
}

/// The change of the status; none if it stays as it is.
pub fn next_status(observed: &Observed, outcome: &Outcome, now: Timestamp) -> Option<Status> {
    let State::Approved(approved) = &observed.request.state else { return None };
    match outcome.verdict.as_ref()? {
        Verdict::Issued(pem) => Some(Status::Certificate(BASE64.encode(pem.as_bytes()))),
        Verdict::Failed(invalid) => {
            let failure = json!({
                "type": FAILED, "status": TRUE, "reason": SIGNER_VALIDATION_FAILURE, "message": invalid.to_string(),
                "lastUpdateTime": Time::of(now),
            });
            Some(Status::Conditions(approved.conditions.iter().cloned().chain([failure]).collect()))
        }
    }
}
