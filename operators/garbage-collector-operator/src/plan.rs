//! The decision of one attempt, from the object and its owners as they were read.

pub mod orphan;
pub mod patches;
mod reasons;
mod unseen;

use std::fmt;
use std::sync::Arc;

use shared::api::object::Uid;
use shared::api::resource::Resource;
use shared::working::control::Propagation;
use shared::working::decisions::{self, Reasoned};

use crate::graph::Stage;
use crate::objects::{FOREGROUND_DELETION, Identity, LiveMeta, LiveObject, ORPHAN, OwnerReference};
use crate::observe::{Live, Observed, Owner, Owners, Present};
use crate::plan::patches::{Patch, drop_owners, unblock_owners};
pub use reasons::{Named, Reason};
use reasons::{cut, owner_name};

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub identity: Identity,
    pub action: Action,
    pub reason: Reason,
    /// When to retry after a success.
    pub retry: Retry,
}

/// When to attempt an object again although no event is about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    No,
    /// After the queue's back-off.
    Later,
    InTurn,
    /// When the apiserver serves other kinds, and meanwhile at ever longer intervals.
    WhenServed,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Nothing,
    /// Report to the graph that it does not exist.
    ReportAbsent,
    /// Attempt these dependents first.
    Attempt(Vec<Uid>),
    RemoveFinalizer(Resource, &'static str),
    Patch(Resource, Patch),
    /// Delete the object of this uid, after a change of its owners if one is given.
    Delete(Box<Delete>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    pub resource: Resource,
    pub live: LiveMeta,
    pub policy: Propagation,
    /// The patch that breaks a circle of dependents waiting for each other.
    pub unblock: Option<Patch>,
    /// Whether a user's change explains it: an owner waits for it, or a monitor saw that an owner was deleted.
    pub is_explained: bool,
}

pub fn plan(observed: &Observed) -> Plan {
    let (action, reason) = decide(observed);
    let retry = match &reason {
        Reason::Throttled | Reason::OwnersThrottled { .. } => Retry::InTurn,
        Reason::Unserved | Reason::OwnerUnserved { .. } => Retry::WhenServed,
        Reason::Unread { .. } => Retry::Later,
        Reason::NoNamespace
        | Reason::InvalidName
        | Reason::OwnerNamespaced { .. }
        | Reason::OwnerInvalidName { .. }
        | Reason::Absent
        | Reason::Unseen { .. }
        | Reason::OwnerUnseen { .. } => Retry::No,
        Reason::BeingDeleted
        | Reason::WaitsForDependents { .. }
        | Reason::DependentsGone
        | Reason::NoOwners
        | Reason::Owned { .. }
        | Reason::OwnersGone { .. }
        | Reason::OwnersWait { .. }
        | Reason::AllOwnersGone { .. } => {
            // Until a monitor has seen it, or it is known to be absent.
            if observed.stage == Stage::Virtual { Retry::Later } else { Retry::No }
        }
    };
    Plan { identity: observed.identity.clone(), action, reason, retry }
}

fn decide(observed: &Observed) -> (Action, Reason) {
    let dependents = &observed.dependents;
    let Present { resource, live, owners } = match &observed.live {
        Live::NotAsked => return (Action::Nothing, Reason::BeingDeleted),
        Live::Unserved => return (Action::Nothing, Reason::Unserved),
        Live::Unread(error) => return (Action::Nothing, Reason::Unread { error: cut(error) }),
        Live::Throttled => return (Action::Nothing, Reason::Throttled),
        Live::NoNamespace => return (Action::Nothing, Reason::NoNamespace),
        Live::InvalidName => return (Action::Nothing, Reason::InvalidName),
        Live::Absent => return (Action::ReportAbsent, Reason::Absent),
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
        Owners::Throttled { read, of } => Reason::OwnersThrottled { read: *read, of: *of },
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
        // In a circle, a dependent that waits for its own dependents may wait for this object.
        let unblock = dependents.any_deletes_dependents.then(|| unblock_owners(&live.metadata));
        return (delete(Propagation::Foreground, unblock), owners_wait());
    }
    // An earlier delete chose the policy by a finalizer.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Another object of the same name: the planned one is gone.
    Absent,
    /// The object changed, but not its owners: the decision still holds.
    SameOwners,
    /// The decision may no longer hold; or nothing changed, and admission refused the delete.
    Open,
}

/// Judges a conflict by the object's state `now`.
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
            Action::ReportAbsent => f.write_str("forget")?,
            Action::Attempt(dependents) => write!(f, "attempt {} dependents", dependents.len())?,
            Action::RemoveFinalizer(_, finalizer) => write!(f, "remove finalizer {finalizer}")?,
            Action::Patch(..) => f.write_str("drop owners")?,
            Action::Delete(delete) => {
                let unblock = if delete.unblock.is_some() { "unblock owners, " } else { "" };
                write!(f, "{unblock}delete {:?}", delete.policy)?;
            }
        }
        write!(f, " ({})", self.reason)?;
        f.write_str(match self.retry {
            Retry::No => "",
            Retry::Later => ", retry",
            Retry::InTurn => ", retry in its turn",
            Retry::WhenServed => ", retry when other kinds are served",
        })
    }
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

/// A decision from the graph alone; a sync reads live before it writes.
pub struct Foreseen(pub Plan);

impl fmt::Display for Foreseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(plan) = self;
        plan.fmt(f)?;
        match plan.action {
            Action::Nothing | Action::ReportAbsent | Action::Attempt(_) => Ok(()),
            Action::RemoveFinalizer(..) | Action::Patch(..) | Action::Delete(_) => {
                f.write_str(", if the apiserver confirms it")
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
