//! Whether a request is approved. None is denied: people and other controllers decide about the others.
//!
//! Upstream: `handle`, `pkg/controller/certificates/approver/sarapprove.go`.

mod recognizers;

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};
use shared::api::condition::TRUE;
use shared::controllers::certificates::APPROVED;
use shared::controllers::certificates::kubelet::Mismatch;
use shared::working::control::Preconditions;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::objects::{Fault, Permission};
use crate::observe::{Observed, Review};
use recognizers::{Recognized, recognize};

/// The reason of an approval. Upstream: `appendApprovalCondition`.
const AUTO_APPROVED: &str = "AutoApproved";

#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    Nothing(Reason),
    /// Write nothing, and review the requester again after a back-off.
    AskAgain {
        tried: Vec<Permission>,
    },
    Approve {
        permission: Permission,
        conditions: Vec<Value>,
        /// The observed state: a decision made meanwhile stays.
        preconditions: Preconditions,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    Issued,
    Approved,
    Denied,
    OtherSigner,
    Unreadable { fault: Fault },
    NotKubelets { mismatch: Mismatch },
    NotAllowed { tried: Vec<Permission> },
    Allowed { permission: Permission },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Question {
    HasOneOf { permissions: Vec<Permission> },
}

impl decisions::Reason for Reason {}
impl decisions::Reason for Question {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Nothing(reason) => reason.clone(),
            Self::AskAgain { tried } => Reason::NotAllowed { tried: tried.clone() },
            Self::Approve { permission, conditions: _, preconditions: _ } => {
                Reason::Allowed { permission: *permission }
            }
        }
    }
}

/// Plans the reviews of a request that may be approved.
pub fn plan_live_read(observed: &Observed) -> Option<LiveRead<Question>> {
    let Recognized { undecided: _, permissions } = recognize(&observed.request).ok()?;
    Some(LiveRead { step: "review the access of the requester", reason: Question::HasOneOf { permissions } })
}

pub fn plan(observed: &Observed) -> Plan {
    let Observed { request, reviews } = observed;
    let undecided = match recognize(request) {
        Ok(Recognized { undecided, permissions: _ }) => undecided,
        Err(reason) => return Plan::Nothing(reason),
    };
    let allowed = reviews.iter().find(|review| review.is_allowed);
    let Some(Review { permission, is_allowed: _ }) = allowed else {
        return Plan::AskAgain { tried: reviews.iter().map(|review| review.permission).collect() };
    };
    let approval =
        json!({ "type": APPROVED, "status": TRUE, "reason": AUTO_APPROVED, "message": permission.message() });
    Plan::Approve {
        permission: *permission,
        conditions: undecided.conditions.iter().cloned().chain([approval]).collect(),
        preconditions: Preconditions::of(&request.metadata),
    }
}

/// Permissions, named as upstream names them.
struct Listed<'a>(&'a [Permission]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().copied().map(Permission::subresource).collect();
        f.write_str(&names.join(", "))
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        match self {
            Self::Nothing(_) => write!(f, "nothing ({reason})"),
            Self::AskAgain { .. } => write!(f, "ask again ({reason})"),
            Self::Approve { .. } => write!(f, "approve ({reason})"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Issued => f.write_str("has its certificate"),
            Self::Approved => f.write_str("already approved"),
            Self::Denied => f.write_str("denied"),
            Self::OtherSigner => f.write_str("for another signer"),
            Self::Unreadable { fault } => write!(f, "cannot be read: {fault}"),
            Self::NotKubelets { mismatch } => write!(f, "not a kubelet's request: {mismatch}"),
            Self::NotAllowed { tried } => {
                write!(f, "recognized as {}, but subject access review was not approved", Listed(tried))
            }
            Self::Allowed { permission } => write!(f, "the requester may create {}", permission.subresource()),
        }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::HasOneOf { permissions } = self;
        write!(f, "recognized as {}", Listed(permissions))
    }
}
