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

#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    Nothing(Reason),
    TryAgain {
        expiry: Expiry,
    },
    Fail {
        conditions: Box<[Value]>,
        /// The difference between the request and those that its signer signs.
        invalid: Invalid,
    },
    Sign {
        signer: Signer,
        certificate: Box<Certificate>,
    },
}

/// A certificate, without its serial number and signature.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificate {
    pub pair: Arc<Pair>,
    pub request: Request,
    pub usages: Usages,
    pub validity: Validity,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    Off,
    Issued,
    NotApproved,
    Denied,
    /// It has failed before.
    Failed,
    OtherSigner,
    NoFiles {
        signer: Signer,
    },
    Unreadable {
        fault: Fault,
    },
    UnknownUsages {
        usages: Vec<Text>,
    },
    Expired {
        expiry: Expiry,
    },
    /// The signer does not sign such a request.
    Invalid {
        invalid: Invalid,
    },
    Valid {
        signer: Signer,
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
