//! The certificate of an approved request, without its serial number and signature, or why it gets none.
//!
//! Upstream: `handle`, `pkg/controller/certificates/signer/signer.go`; `Sign`,
//! `pkg/controller/certificates/authority/authority.go`.

pub mod policies;
pub mod verification;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use shared::api::intern::Text;
use shared::api::time::Time;
use shared::controllers::certificates::request::{Fault, Request};
use shared::working::decisions::{self, Reasoned};

use crate::objects::{Approved, Signer, State};
use crate::observe::Observed;
use crate::observe::pair::Pair;
use policies::{Expiry, Usages, Validity, usages, validity};
use verification::{Invalid, verify};

/// The decision about a request, with its reason.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Write nothing.
    Nothing(Reason),
    /// Write nothing, and retry.
    TryAgain {
        /// The end of the CA, which has expired.
        expiry: Expiry,
    },
    /// Add the condition Failed.
    Fail {
        /// The other conditions, which stay.
        conditions: Box<[Value]>,
        /// The difference between the request and those that its signer signs.
        invalid: Invalid,
    },
    /// Sign the certificate and write it.
    Sign {
        /// The signer.
        signer: Signer,
        /// The certificate.
        certificate: Box<Certificate>,
    },
}

/// A certificate, without its serial number and signature.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificate {
    /// The CA that signs it.
    pub pair: Arc<Pair>,
    /// The requested subject, alternative names and public key.
    pub request: Request,
    /// Its usages.
    pub usages: Usages,
    /// When it is valid.
    pub validity: Validity,
}

/// Why a request is signed or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// No flag names a file.
    Off,
    /// It has its certificate.
    Issued,
    /// It is not approved.
    NotApproved,
    /// It is denied.
    Denied,
    /// It has failed before.
    Failed,
    /// It belongs to another signer.
    OtherSigner,
    /// No flag names a file for its signer.
    NoFiles {
        /// The signer.
        signer: Signer,
    },
    /// It cannot be read.
    Unreadable {
        /// Why not.
        fault: Fault,
    },
    /// It asks for unknown usages.
    UnknownUsages {
        /// The unknown ones.
        usages: Vec<Text>,
    },
    /// The CA's certificate has expired.
    Expired {
        /// Its end.
        expiry: Expiry,
    },
    /// The signer does not sign such a request.
    Invalid {
        /// The difference.
        invalid: Invalid,
    },
    /// Its signer signs it.
    Valid {
        /// The signer.
        signer: Signer,
        /// The end of the certificate.
        not_after: Time,
    },
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Nothing(reason) => reason.clone(),
            Self::TryAgain { expiry } => Reason::Expired { expiry: *expiry },
            Self::Fail { invalid, .. } => Reason::Invalid { invalid: invalid.clone() },
            Self::Sign { signer, certificate } => {
                Reason::Valid { signer: *signer, not_after: certificate.validity.not_after }
            }
        }
    }
}

/// Decides on one request. No certificate is valid for longer than `longest`.
pub fn plan(observed: &Observed, longest: Duration, now: Timestamp) -> Plan {
    let Observed { request, pair } = observed;
    let approved = match &request.state {
        State::Issued => return Plan::Nothing(Reason::Issued),
        State::NotApproved => return Plan::Nothing(Reason::NotApproved),
        State::Denied => return Plan::Nothing(Reason::Denied),
        State::Failed => return Plan::Nothing(Reason::Failed),
        State::OtherSigner => return Plan::Nothing(Reason::OtherSigner),
        State::Approved(approved) => approved,
    };
    match pair {
        None => Plan::Nothing(Reason::NoFiles { signer: approved.signer }),
        Some(pair) => plan_of_approved(approved, pair, longest, now),
    }
}

fn plan_of_approved(approved: &Approved, pair: &Arc<Pair>, longest: Duration, now: Timestamp) -> Plan {
    let Approved { signer, request, usages: asked, expiration_seconds, conditions } = approved;
    let request = match Request::read_signed(request) {
        Ok(request) => request,
        Err(fault) => return Plan::Nothing(Reason::Unreadable { fault }),
    };
    if let Some(invalid) = verify(*signer, &request, asked) {
        return Plan::Fail { conditions: conditions.clone(), invalid };
    }
    let usages = match usages(asked) {
        Ok(usages) => usages,
        Err(unknown) => return Plan::Nothing(Reason::UnknownUsages { usages: unknown }),
    };
    match validity(*expiration_seconds, longest, pair.issuer.not_after, now) {
        Ok(validity) => {
            let certificate = Certificate { pair: Arc::clone(pair), request, usages, validity };
            Plan::Sign { signer: *signer, certificate: Box::new(certificate) }
        }
        Err(expiry) => Plan::TryAgain { expiry },
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        match self {
            Self::Nothing(_) => write!(f, "nothing ({reason})"),
            Self::TryAgain { .. } => write!(f, "try again ({reason})"),
            Self::Fail { .. } => write!(f, "fail ({reason})"),
            Self::Sign { .. } => write!(f, "sign ({reason})"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("no --cluster-signing-cert-file"),
            Self::Issued => f.write_str("has its certificate"),
            Self::NotApproved => f.write_str("not approved"),
            Self::Denied => f.write_str("denied"),
            Self::Failed => f.write_str("failed before"),
            Self::OtherSigner => f.write_str("for another signer"),
            Self::NoFiles { signer } => write!(f, "no files for {signer}"),
            Self::Unreadable { fault } => write!(f, "cannot be read: {fault}"),
            // As a list in Go's `%q`.
            Self::UnknownUsages { usages } => {
                let usages: Vec<String> = usages.iter().map(|usage| format!("{:?}", usage.as_str())).collect();
                write!(f, "unrecognized usage values: [{}]", usages.join(" "))
            }
            Self::Expired { expiry } => write!(f, "{expiry}"),
            Self::Invalid { invalid } => write!(f, "{invalid}"),
            Self::Valid { signer, not_after } => write!(f, "valid for {signer}, until {not_after}"),
        }
    }
}
