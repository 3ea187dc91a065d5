//! What one attempt does, from what was read of the object and its owners.
//!
//! Left out: reading, and what an error while reading means (a new attempt, always).

pub mod orphan;
pub mod patches;

use std::fmt;
use std::sync::Arc;

use shared::api::object::Uid;
use shared::api::resource::Resource;
use shared::runtime::control::Propagation;

use crate::graph::Stage;
use crate::objects::{FOREGROUND_DELETION, Identity, LiveMeta, LiveObject, ORPHAN, ObjectKind, OwnerReference};
use crate::observe::{Dependents, Live, Observed, Owner, Owners, Present};
use crate::plan::patches::{Patch, drop_owners, unblock_owners};

/// What to do, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Whom it is about.
    pub identity: Identity,
    /// What to do.
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

/// What to do with an object.
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
    /// What becomes of its dependents.
    pub policy: Propagation,
    /// What breaks a circle of dependents that wait for each other.
    pub unblock: Option<Patch>,
}

/// Why something is done, or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is being deleted already.
    BeingDeleted,
    /// Its kind is not served.
    Unserved,
    /// The apiserver left a question open.
    Unread(String),
    /// It names no namespace.
    NoNamespace,
    /// It does not exist.
    Absent,
    /// Dependents hold it back.
    WaitsForDependents,
    /// No dependent holds it back.
    DependentsGone,
    /// It has no owners.
    NoOwners,
    /// An owner's kind is not served.
    OwnerUnserved(Arc<ObjectKind>),
    /// No object can have its name.
    InvalidName,
    /// An owner lives in a namespace, and the object in none.
    OwnerNamespaced(Arc<OwnerReference>),
    /// No object can have the name of an owner.
    OwnerInvalidName(Arc<OwnerReference>),
    /// All its owners stay.
    Owned,
    /// Some of its owners stay, so many others do not.
    OwnersGone(usize),
    /// Its owners wait for it.
    OwnersWait,
    /// It has no owners any more.
    AllOwnersGone,
}

/// Upstream: `attemptToDeleteItem`, `pkg/controller/garbagecollector/garbagecollector.go`.
pub fn plan(observed: &Observed) -> Plan {
    let (action, reason) = decide(observed);
    let look_again = match &reason {
        Reason::Unserved | Reason::OwnerUnserved(_) => LookAgain::WhenServed,
        Reason::Unread(_) => LookAgain::Later,
        Reason::NoNamespace
        | Reason::InvalidName
        | Reason::OwnerNamespaced(_)
        | Reason::OwnerInvalidName(_)
        | Reason::Absent => LookAgain::No,
        Reason::BeingDeleted
        | Reason::WaitsForDependents
        | Reason::DependentsGone
        | Reason::NoOwners
        | Reason::Owned
        | Reason::OwnersGone(_)
        | Reason::OwnersWait
        | Reason::AllOwnersGone => {
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
        Live::Unread(error) => return (Action::Nothing, Reason::Unread(error.clone())),
        Live::NoNamespace => return (Action::Nothing, Reason::NoNamespace),
        Live::InvalidName => return (Action::Nothing, Reason::InvalidName),
        Live::Absent => return (Action::TellAbsent, Reason::Absent),
        Live::Present(present) => present.as_ref(),
    };
    if observed.stage == Stage::DeletingDependents {
        return if dependents.any_blocks {
            (Action::Attempt(dependents.blocking.clone()), Reason::WaitsForDependents)
        } else {
            (Action::RemoveFinalizer(resource.clone(), FOREGROUND_DELETION), Reason::DependentsGone)
        };
    }
    match owners {
        Owners::NotAsked => (Action::Nothing, Reason::NoOwners),
        Owners::Unserved(kind) => (Action::Nothing, Reason::OwnerUnserved(Arc::clone(kind))),
        Owners::Unread(error) => (Action::Nothing, Reason::Unread(error.clone())),
        Owners::Namespaced(reference) => (Action::Nothing, Reason::OwnerNamespaced(Arc::clone(reference))),
        Owners::InvalidName(reference) => (Action::Nothing, Reason::OwnerInvalidName(Arc::clone(reference))),
        Owners::Known(owners) if owners.is_empty() => (Action::Nothing, Reason::NoOwners),
        Owners::Known(owners) => by_owners(resource, live, owners, dependents),
    }
}

fn by_owners(
    resource: &Resource,
    live: &LiveObject,
    owners: &[(Arc<OwnerReference>, Owner)],
    dependents: &Dependents,
) -> (Action, Reason) {
    let is = |wanted: Owner| owners.iter().any(|(_, owner)| *owner == wanted);
    if is(Owner::Solid) {
        let gone = owners.iter().filter(|(_, owner)| *owner != Owner::Solid);
        let gone: Vec<String> = gone.map(|(reference, _)| reference.uid_text().into_owned()).collect();
        return if gone.is_empty() {
            (Action::Nothing, Reason::Owned)
        } else {
            (Action::Patch(resource.clone(), drop_owners(&live.metadata, &gone)), Reason::OwnersGone(gone.len()))
        };
    }
    let delete = |policy, unblock| {
        Action::Delete(Box::new(Delete { resource: resource.clone(), live: live.metadata.clone(), policy, unblock }))
    };
    if is(Owner::Waiting) && dependents.any {
        // A dependent that waits for its own dependents may, in a circle, be waiting for this object.
        let unblock = dependents.any_deletes_dependents.then(|| unblock_owners(&live.metadata));
        return (delete(Propagation::Foreground, unblock), Reason::OwnersWait);
    }
    // What was asked for when the object was deleted before stays as it was.
    let policy = if live.has_finalizer(ORPHAN) {
        Propagation::Orphan
    } else if live.has_finalizer(FOREGROUND_DELETION) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    (delete(policy, None), if is(Owner::Waiting) { Reason::OwnersWait } else { Reason::AllOwnersGone })
}

/// What a delete that met another state has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Another object of the same name: the planned one is gone.
    Absent,
    /// Something changed, but not its owners: what was decided still holds.
    SameOwners,
    /// What was decided may not hold any more; or nothing changed, and somebody has refused.
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

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeingDeleted => f.write_str("is being deleted"),
            Self::Unserved => f.write_str("its kind is not served"),
            Self::Unread(error) => f.write_str(error),
            Self::NoNamespace => f.write_str("nobody says in which namespace it is"),
            Self::InvalidName => f.write_str("no object can have its name"),
            Self::Absent => f.write_str("does not exist"),
            Self::WaitsForDependents => f.write_str("waits for dependents"),
            Self::DependentsGone => f.write_str("no dependent holds it back"),
            Self::NoOwners => f.write_str("has no owners"),
            Self::OwnerUnserved(kind) => write!(f, "{} {} of an owner is not served", kind.api_version, kind.kind),
            Self::OwnerNamespaced(reference) => {
                let owner = &reference.owner;
                write!(
                    f,
                    "cluster-scoped objects cannot refer to namespaced owners: {} {}",
                    owner.kind.kind, owner.name
                )
            }
            Self::OwnerInvalidName(reference) => {
                let owner = &reference.owner;
                write!(f, "no owner can have this name: {} {:?}", owner.kind.kind, owner.name)
            }
            Self::Owned => f.write_str("is owned"),
            Self::OwnersGone(count) => write!(f, "{count} of its owners are gone"),
            Self::OwnersWait => f.write_str("its owners wait for it"),
            Self::AllOwnersGone => f.write_str("all its owners are gone"),
        }
    }
}
