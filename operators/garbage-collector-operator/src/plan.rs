//! Decides what one attempt does, from the object and its owners as read.
//!
//! Left out: reading, and what an error while reading means (a new attempt, always).

pub mod orphan;
pub mod patches;
mod reasons;
pub mod unseen;

use std::fmt;
use std::sync::Arc;

use shared::api::object::Uid;
use shared::api::resource::Resource;
use shared::runtime::control::Propagation;
use shared::runtime::decisions::{self, Reasoned};

use crate::graph::Stage;
use crate::objects::{FOREGROUND_DELETION, Identity, LiveMeta, LiveObject, ORPHAN, OwnerReference};
use crate::observe::{Live, Observed, Owner, Owners, Present};
use crate::plan::patches::{Patch, drop_owners, unblock_owners};
pub use reasons::{Named, Reason};
use reasons::{cut, owner_name};

/// A decision with its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Whom it is about.
    pub identity: Identity,
    /// The decision.
    pub action: Action,
    /// Why.
    pub reason: Reason,
    /// Whether to look again even if all goes well.
    pub look_again: LookAgain,
}

/// Whether an object is to be looked at again although nothing happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookAgain {
    /// An event will say when.
    No,
    /// After the queue's back-off.
    Later,
    /// Once the apiserver serves other kinds than now; and by itself more and more seldom.
    WhenServed,
}

/// The decision about an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Leave it alone.
    Nothing,
    /// Tell the graph that it does not exist.
    TellAbsent,
    /// Attempt these first.
    Attempt(Vec<Uid>),
    /// Take this finalizer away.
    RemoveFinalizer(Resource, &'static str),
    /// Change its owners.
    Patch(Resource, Patch),
    /// Delete exactly this object, after a change of its owners if there is one.
    Delete(Box<Delete>),
}

/// How an object is deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// Where it is served.
    pub resource: Resource,
    /// As it was read.
    pub live: LiveMeta,
    /// The propagation policy.
    pub policy: Propagation,
    /// The patch that breaks a circle of dependents waiting for each other.
    pub unblock: Option<Patch>,
    /// Whether a user's change explains it: an owner waits for it, or was seen to go.
    pub is_explained: bool,
}

/// Upstream: `attemptToDeleteItem`, `pkg/controller/garbagecollector/garbagecollector.go`.
pub fn plan(observed: &Observed) -> Plan {
    let (action, reason) = decide(observed);
    let look_again = match &reason {
        Reason::Unserved | Reason::OwnerUnserved { .. } => LookAgain::WhenServed,
        Reason::Unread { .. } => LookAgain::Later,
        Reason::NoNamespace
        | Reason::InvalidName
        | Reason::OwnerNamespaced { .. }
        | Reason::OwnerInvalidName { .. }
        | Reason::Absent
        | Reason::Unseen { .. }
        | Reason::OwnerUnseen { .. } => LookAgain::No,
        Reason::BeingDeleted
        | Reason::WaitsForDependents { .. }
        | Reason::DependentsGone
        | Reason::NoOwners
        | Reason::Owned { .. }
        | Reason::OwnersGone { .. }
        | Reason::OwnersWait { .. }
        | Reason::AllOwnersGone { .. } => {
            // Until a monitor has seen it, or it is known to be absent.
            if observed.stage == Stage::Virtual { LookAgain::Later } else { LookAgain::No }
        }
    };
    Plan { identity: observed.identity.clone(), action, reason, look_again }
}

fn decide(observed: &Observed) -> (Action, Reason) {
    let dependents = &observed.dependents;
    let Present { resource, live, owners } = match &observed.live {
        Live::NotAsked => return (Action::Nothing, Reason::BeingDeleted),
        Live::Unserved => return (Action::Nothing, Reason::Unserved),
        Live::Unread(error) => return (Action::Nothing, Reason::Unread { error: cut(error) }),
        Live::NoNamespace => return (Action::Nothing, Reason::NoNamespace),
        Live::InvalidName => return (Action::Nothing, Reason::InvalidName),
        Live::Absent => return (Action::TellAbsent, Reason::Absent),
        Live::Unseen { failing } => return (Action::Nothing, Reason::Unseen { failing: failing.as_deref().map(cut) }),
        Live::Present(present) => present.as_ref(),
    };
    if observed.stage == Stage::DeletingDependents {
        return if dependents.blocks > 0 {
            let named = Named::identities(dependents.blocks, &dependents.first_blocking);
            (Action::Attempt(dependents.blocking.clone()), Reason::WaitsForDependents { dependents: named })
        } else {
            (Action::RemoveFinalizer(resource.clone(), FOREGROUND_DELETION), Reason::DependentsGone)
        };
    }
    let reason = match owners {
        Owners::NotAsked => Reason::NoOwners,
        Owners::Unserved(kind) => {
            Reason::OwnerUnserved { api_version: kind.api_version.to_string(), kind: kind.kind.to_string() }
        }
        Owners::Unread(error) => Reason::Unread { error: cut(error) },
        Owners::Namespaced(reference) => Reason::OwnerNamespaced { owner: owner_name(reference) },
        Owners::InvalidName(reference) => {
            let owner = &reference.owner;
            Reason::OwnerInvalidName { kind: owner.kind.kind.to_string(), name: cut(&owner.name) }
        }
        Owners::Unseen { reference, failing } => {
            Reason::OwnerUnseen { owner: owner_name(reference), failing: failing.as_deref().map(cut) }
        }
        Owners::Known(owners) if owners.is_empty() => Reason::NoOwners,
        Owners::Known(owners) => return by_owners(observed, resource, live, owners),
    };
    (Action::Nothing, reason)
}

fn by_owners(
    observed: &Observed,
    resource: &Resource,
    live: &LiveObject,
    owners: &[(Arc<OwnerReference>, Owner)],
) -> (Action, Reason) {
    let Observed { dependents, saw_owner_go, .. } = observed;
    let named = |wanted: Owner| -> Named {
        owners.iter().filter(|(_, owner)| *owner == wanted).map(|(reference, _)| owner_name(reference)).collect()
    };
    let is = |wanted: Owner| owners.iter().any(|(_, owner)| *owner == wanted);
    let (absent, elsewhere) = (named(Owner::Dangling), named(Owner::Elsewhere));
    if is(Owner::Solid) {
        let gone = owners.iter().filter(|(_, owner)| *owner != Owner::Solid);
        let gone: Vec<String> = gone.map(|(reference, _)| reference.uid_text().into_owned()).collect();
        let stay = named(Owner::Solid);
        return if gone.is_empty() {
            (Action::Nothing, Reason::Owned { owners: stay })
        } else {
            let reason = Reason::OwnersGone { stay, absent, elsewhere, waiting: named(Owner::Waiting) };
            (Action::Patch(resource.clone(), drop_owners(&live.metadata, &gone)), reason)
        };
    }
    let delete = |policy, unblock| {
        let (resource, live, is_explained) =
            (resource.clone(), live.metadata.clone(), is(Owner::Waiting) || *saw_owner_go);
        Action::Delete(Box::new(Delete { resource, live, policy, unblock, is_explained }))
    };
    let owners_wait = || Reason::OwnersWait { owners: named(Owner::Waiting) };
    if is(Owner::Waiting) && dependents.any {
        // A dependent that waits for its own dependents may, in a circle, be waiting for this object.
        let unblock = dependents.any_deletes_dependents.then(|| unblock_owners(&live.metadata));
        return (delete(Propagation::Foreground, unblock), owners_wait());
    }
    // An earlier delete chose the policy by a finalizer; it stays.
    let policy = if live.has_finalizer(ORPHAN) {
        Propagation::Orphan
    } else if live.has_finalizer(FOREGROUND_DELETION) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    let reason = if is(Owner::Waiting) { owners_wait() } else { Reason::AllOwnersGone { absent, elsewhere } };
    (delete(policy, None), reason)
}

/// The state that a refused delete has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Another object of the same name: the planned one is gone.
    Absent,
    /// The object changed, but not its owners: the decision still holds.
    SameOwners,
    /// The decision may not hold any more; or nothing changed, and admission refused the delete.
    Open,
}

/// Judges a conflict by what is there `now`.
///
/// Upstream: `deleteObject`, `pkg/controller/garbagecollector/operations.go`.
pub fn judge_conflict(planned: &LiveMeta, now: &LiveMeta) -> Conflict {
    if now.uid != planned.uid {
        Conflict::Absent
    } else if now.resource_version != planned.resource_version && now.owner_references == planned.owner_references {
        Conflict::SameOwners
    } else {
        Conflict::Open
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.identity)?;
        match &self.action {
            Action::Nothing => f.write_str("nothing")?,
            Action::TellAbsent => f.write_str("forget")?,
            Action::Attempt(dependents) => write!(f, "attempt {} dependents", dependents.len())?,
            Action::RemoveFinalizer(_, finalizer) => write!(f, "remove finalizer {finalizer}")?,
            Action::Patch(..) => f.write_str("drop owners")?,
            Action::Delete(delete) => {
                let unblock = if delete.unblock.is_some() { "unblock owners, " } else { "" };
                write!(f, "{unblock}delete {:?}", delete.policy)?;
            }
        }
        write!(f, " ({})", self.reason)?;
        f.write_str(match self.look_again {
            LookAgain::No => "",
            LookAgain::Later => ", look again",
            LookAgain::WhenServed => ", look again when other kinds are served",
        })
    }
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

/// The decision from the graph alone; a sync reads live before it writes.
pub struct Foreseen(pub Plan);

impl fmt::Display for Foreseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(plan) = self;
        plan.fmt(f)?;
        match plan.action {
            Action::Nothing | Action::TellAbsent | Action::Attempt(_) => Ok(()),
            Action::RemoveFinalizer(..) | Action::Patch(..) | Action::Delete(_) => {
                f.write_str(", if the apiserver says the same")
            }
        }
    }
}

impl Reasoned for Foreseen {
    fn reason(&self) -> impl decisions::Reason {
        let Self(plan) = self;
        plan.reason()
    }
}
