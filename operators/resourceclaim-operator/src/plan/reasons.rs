//! Why a claim is kept, freed or deleted, and why a pod or PodGroup has to wait: values that programs read as JSON, and
//! people as text.
//!
//! Left out: what follows from a reason, which is the other rooms'.

use std::fmt;

use serde::Serialize;
use shared::api::list::list;
use shared::working::decisions;

/// Why something happens to a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    Reserved {
        users: Vec<String>,
    },
    /// The caches do not have these users.
    NotSeen {
        users: Vec<String>,
    },
    Ended {
        users: Vec<(String, Ended)>,
    },
    /// It is being deleted and unused.
    Unused,
    /// It is being deleted without the finalizer.
    LetGo,
    NotReserved {
        is_allocated: bool,
    },
    /// It was made for this pod, which may need it.
    ForPod {
        pod: String,
        is_allocated: bool,
    },
    /// The pod in the cache has its pod's name and another uid.
    OwnerNotSeen {
        pod: String,
    },
    OwnerGone {
        pod: String,
    },
    OwnerEnded {
        pod: String,
        how: Ended,
    },
}

/// How the use of a claim ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Ended {
    Gone,
    /// Another object has its name.
    Replaced,
    /// The pod has ended, or was deleted before it had a node.
    Done,
}

impl decisions::Reason for Reason {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let allocated = |is_allocated: &bool| if *is_allocated { "allocated" } else { "not allocated" };
        match self {
            Self::Reserved { users } => write!(f, "reserved for {}", list(users, String::clone)),
            Self::NotSeen { users } => write!(f, "not in the caches: {}", list(users, String::clone)),
            Self::Ended { users } => f.write_str(&list(users, |(user, how)| format!("{user} {how}"))),
            Self::Unused => f.write_str("being deleted and unused"),
            Self::LetGo => f.write_str("being deleted without the finalizer"),
            Self::NotReserved { is_allocated } => write!(f, "{}, not reserved", allocated(is_allocated)),
            Self::ForPod { pod, is_allocated } => {
                write!(f, "made for pod {pod}, which has not reserved it; {}", allocated(is_allocated))
            }
            Self::OwnerNotSeen { pod } => write!(f, "the cache has another pod {pod}"),
            Self::OwnerGone { pod } => {
                write!(f, "made for pod {pod}, which is gone; the garbage collector deletes the claim")
            }
            Self::OwnerEnded { pod, how } => write!(f, "made for pod {pod}, which {how}"),
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gone => "is gone",
            Self::Replaced => "was replaced",
            Self::Done => "has ended",
        })
    }
}

/// Why something happens to the claims of a pod or PodGroup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum UserReason {
    NoClaims,
    BeingDeleted,
    /// Its containers have ended, so it needs no claims.
    Done,
    /// Each of its claims is there and, if it is a pod, allocated and reserved for it.
    Complete,
    /// The entries that have no claim that can be used, and why.
    Waits {
        entries: Vec<(String, Wait)>,
    },
    /// The entries whose claims are made, recorded or reserved.
    Due {
        entries: Vec<String>,
    },
    /// A claim cannot be made for this entry.
    Failed {
        entry: String,
        failure: Failure,
    },
    LargeTemplate {
        template: String,
        bytes: usize,
    },
}

/// What an entry waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Wait {
    /// A user makes the claim.
    Claim {
        claim: String,
    },
    PodGroup {
        group: String,
    },
    /// The PodGroup gets the claim, for all of its pods.
    ClaimOfPodGroup {
        group: String,
    },
    /// The scheduler finds devices.
    Allocation {
        claim: String,
    },
    /// The scheduler reserves an allocated claim together with the node.
    Scheduling {
        claim: String,
    },
    /// Nobody can reserve a claim that is being deleted.
    Deletion {
        claim: String,
    },
}

/// Why a claim cannot be made from a template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Failure {
    /// The entry names neither a claim nor a template.
    Unsupported {
        message: String,
    },
    NoTemplate {
        template: String,
    },
    PrioritizedList,
    Unreadable {
        error: String,
    },
}

impl decisions::Reason for UserReason {}

impl fmt::Display for UserReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoClaims => f.write_str("no claims"),
            Self::BeingDeleted => f.write_str("being deleted"),
            Self::Done => f.write_str("it has ended"),
            Self::Complete => f.write_str("each claim is there"),
            Self::Waits { entries } => f.write_str(&list(entries, |(entry, wait)| format!("{entry}: {wait}"))),
            Self::Due { entries } => f.write_str(&list(entries, String::clone)),
            Self::Failed { entry, failure } => write!(f, "{entry}: {failure}"),
            Self::LargeTemplate { template, bytes } => {
                write!(f, "the {bytes} bytes of template {template} are not cached")
            }
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim { claim } => write!(f, "claim {claim} does not exist, and is not made from a template"),
            Self::PodGroup { group } => write!(f, "PodGroup {group} does not exist"),
            Self::ClaimOfPodGroup { group } => write!(f, "PodGroup {group} has no claim yet"),
            Self::Allocation { claim } => write!(f, "claim {claim} is not allocated"),
            Self::Scheduling { claim } => {
                write!(f, "claim {claim} is allocated, and not reserved yet by the scheduler")
            }
            Self::Deletion { claim } => write!(f, "claim {claim} is being deleted"),
        }
    }
}

/// The messages of the event, in upstream's words.
///
/// Upstream: `handleClaim`, `pkg/controller/resourceclaim/controller.go`.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { message } => f.write_str(message),
            Self::NoTemplate { template } => write!(
                f,
                "resource claim template {template:?}: resourceclaimtemplate.resource.k8s.io {template:?} not found"
            ),
            Self::PrioritizedList => {
                f.write_str("template includes a prioritized list of subrequests, but the feature is disabled")
            }
            Self::Unreadable { error } => write!(f, "cannot read the template: {error}"),
        }
    }
}
