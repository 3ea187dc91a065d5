//! Whether a claim is kept, loses users that have ended, or is deleted.
//!
//! What a pod or a PodGroup needs is planned in [`users`].
//!
//! Upstream: `syncClaim`, `pkg/controller/resourceclaim/controller.go`.

pub mod creation;
pub mod reasons;
pub mod users;

use std::fmt;

use shared::api::list::list;
use shared::api::object::Uid;
use shared::controllers::protection::State;
use shared::working::control::Preconditions;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::objects::PROTECTION;
use crate::objects::claim::Consumer;
use crate::observe::{Lookup, Observed, Owner, Standing};
use reasons::{Ended, Reason};

pub type Next = decisions::Next<Reason, Plan>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    Keep(Reason),
    Release(Release),
    /// Delete a claim whose pod does not need it any more.
    Delete {
        preconditions: Preconditions,
        reason: Reason,
    },
}

/// Remove users from a claim, and deallocate it and remove its finalizer if none is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// The uids of the users that lose it, as the claim has them.
    pub users: Vec<Box<str>>,
    pub deallocate: bool,
    pub remove_finalizer: bool,
    pub preconditions: Preconditions,
    pub reason: Reason,
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Keep(reason) | Self::Delete { reason, .. } | Self::Release(Release { reason, .. }) => reason.clone(),
        }
    }
}

/// Whether an object still uses the claim.
enum Use {
    Lasts,
    Over(Ended),
    /// A live read has to show it.
    Open,
}

/// The cache shows that an object is there, or that it has ended. Only its deletion or a live read shows that it is
/// gone.
fn use_by(uid: Uid, lookup: Lookup) -> Use {
    let standing = match lookup {
        _ if lookup.is_open(uid) => return Use::Open,
        Lookup::Foreign => return Use::Lasts,
        Lookup::Deleted => return Use::Over(Ended::Gone),
        Lookup::Cached(standing) | Lookup::Live(standing) => standing,
    };
    match standing {
        None => Use::Over(Ended::Gone),
        Some(Standing { uid: other, .. }) if other != uid => Use::Over(Ended::Replaced),
        Some(Standing { is_done: true, .. }) => Use::Over(Ended::Done),
        Some(Standing { is_done: false, .. }) => Use::Lasts,
    }
}

/// Plans the next stage. Each step is about exactly this state of the claim: a scheduler that reserves it at the same
/// time keeps it.
pub fn plan(observed: &Observed) -> Next {
    let Observed { claim, consumers, owner } = observed;
    let (mut users, mut ended, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for (consumer, lookup) in claim.reserved_for.iter().zip(consumers) {
        match use_by(consumer.uid(), *lookup) {
            Use::Lasts => users.push(consumer.to_string()),
            Use::Over(how) => ended.push((consumer, how)),
            Use::Open => open.push(consumer.to_string()),
        }
    }
    if !open.is_empty() {
        return Next::Ask(LiveRead { step: "read its users", reason: Reason::NotSeen { users: open } });
    }
    let preconditions = Preconditions::of(&claim.metadata);
    let state = PROTECTION.state(&claim.metadata);
    let is_unused = users.is_empty();
    let release = |ended: Vec<(&Consumer, Ended)>, reason: Reason| {
        let remove_finalizer = is_unused && matches!(state, State::Protected | State::Candidate);
        let users = ended.into_iter().map(|(consumer, _)| consumer.uid.clone()).collect();
        let deallocate = remove_finalizer && claim.is_allocated;
        Next::Execute(Plan::Release(Release { users, deallocate, remove_finalizer, preconditions, reason }))
    };
    if !ended.is_empty() {
        let reason =
            Reason::Ended { users: ended.iter().map(|(consumer, how)| (consumer.to_string(), *how)).collect() };
        return release(ended, reason);
    }
    if !is_unused {
        return Next::Execute(Plan::Keep(Reason::Reserved { users }));
    }
    match state {
        State::Candidate => release(ended, Reason::Unused),
        State::LetGo => Next::Execute(Plan::Keep(Reason::LetGo)),
        State::Protected | State::Unprotected => plan_unused(preconditions, claim.is_allocated, owner.as_ref()),
    }
}

/// Plans what becomes of a claim that is not reserved. One that was made for a pod is deleted before the pod is.
fn plan_unused(preconditions: Preconditions, is_allocated: bool, owner: Option<&Owner>) -> Next {
    let Some(owner) = owner else { return Next::Execute(Plan::Keep(Reason::NotReserved { is_allocated })) };
    let pod = owner.pod.name().to_owned();
    if owner.is_open() {
        return Next::Ask(LiveRead { step: "read its pod", reason: Reason::OwnerNotSeen { pod } });
    }
    let is_gone = matches!(owner.lookup, Lookup::Deleted | Lookup::Cached(None) | Lookup::Live(None));
    Next::Execute(match use_by(owner.uid, owner.lookup) {
        _ if is_gone => Plan::Keep(Reason::OwnerGone { pod }),
        Use::Over(how) => Plan::Delete { preconditions, reason: Reason::OwnerEnded { pod, how } },
        Use::Lasts | Use::Open => Plan::Keep(Reason::ForPod { pod, is_allocated }),
    })
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keep(reason) => write!(f, "keep ({reason})"),
            Self::Delete { reason, preconditions: _ } => write!(f, "delete ({reason})"),
            Self::Release(Release { users, deallocate, remove_finalizer, preconditions: _, reason }) => {
                let release = || format!("remove {} of its users", users.len());
                let steps = [
                    (!users.is_empty()).then(release),
                    deallocate.then(|| "deallocate it".to_owned()),
                    remove_finalizer.then(|| "remove the finalizer".to_owned()),
                ];
                let steps: Vec<String> = steps.into_iter().flatten().collect();
                write!(f, "{} ({reason})", list(&steps, String::clone))
            }
        }
    }
}
