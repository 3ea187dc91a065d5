//! One node of the graph: an object that was observed, or one that is only referred to. It keeps little: twenty thousand
//! nodes must fit into a few MiB.

use std::collections::BTreeSet;
use std::sync::Arc;

use shared::api::object::{ResourceVersion, Uid};

use crate::objects::{FOREGROUND_DELETION, Identity, ORPHAN, OwnerReference, PartialObject};

/// The stage of an object's life; it only advances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// A dependent refers to it, and no monitor has seen it.
    Virtual,
    Live,
    BeingDeleted,
    /// The same, and its dependents are deleted first.
    DeletingDependents,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its identity; a virtual node has that of a dependent's reference.
    pub identity: Identity,
    /// Whether it is virtual, alive or being deleted, and how.
    pub stage: Stage,
    pub(super) resource_version: ResourceVersion,
    /// Whether the last state was being deleted with the finalizer `orphan`, and with `foregroundDeletion`.
    pub(super) was: Deleting,
    pub owners: Box<[Arc<OwnerReference>]>,
    pub(super) dependents: Dependents,
    /// A monitor saw that one of its owners was deleted, and it got no new owner since.
    pub(super) saw_owner_go: bool,
}

impl Node {
    pub(super) fn is_virtual(&self) -> bool {
        self.stage == Stage::Virtual
    }

    pub(super) fn references_to(&self, uid: Uid) -> impl Iterator<Item = &Arc<OwnerReference>> {
        self.owners.iter().filter(move |reference| reference.owner.uid == uid)
    }

    /// The uid of this owner as it is written in the references. A patch must name it so: objects of an aggregated
    /// apiserver may have uids of any form.
    pub fn names_of(&self, owner: Uid) -> Vec<String> {
        let mut names: Vec<String> =
            self.references_to(owner).map(|reference| reference.uid_text().into_owned()).collect();
        names.dedup();
        names
    }

    /// Whether it is being deleted without its dependents.
    pub fn is_orphaning(&self) -> bool {
        self.was.orphan
    }

    /// The collector's own finalizers that its deletion waits for.
    pub fn finalizers(&self) -> impl Iterator<Item = &'static str> {
        let Deleting { orphan, foreground } = self.was;
        [(orphan, ORPHAN), (foreground, FOREGROUND_DELETION)].into_iter().filter(|(is, _)| *is).map(|(_, name)| name)
    }

    /// Whether it blocks a foreground deletion of this owner.
    pub fn blocks(&self, owner: Uid) -> bool {
        self.references_to(owner).any(|reference| reference.blocks())
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Deleting {
    pub(super) orphan: bool,
    pub(super) foreground: bool,
}

impl From<&PartialObject> for Deleting {
    fn from(object: &PartialObject) -> Self {
        let PartialObject { is_being_deleted, has_orphan_finalizer, has_foreground_finalizer, .. } = *object;
        Self {
            orphan: is_being_deleted && has_orphan_finalizer,
            foreground: is_being_deleted && has_foreground_finalizer,
        }
    }
}

/// The dependents of a node. Most have none, and most others one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Dependents {
    #[default]
    None,
    One(Uid),
    #[expect(clippy::box_collection, reason = "a node stays smaller by two words, and few nodes have many dependents")]
    Many(Box<BTreeSet<Uid>>),
}

impl Dependents {
    pub(super) fn insert(&mut self, uid: Uid) {
        match self {
            Self::None => *self = Self::One(uid),
            Self::One(only) if *only == uid => {}
            Self::One(only) => *self = Self::Many(Box::new(BTreeSet::from([*only, uid]))),
            Self::Many(many) => {
                many.insert(uid);
            }
        }
    }

    pub(super) fn remove(&mut self, uid: Uid) {
        match self {
            Self::None => {}
            Self::One(only) => {
                if *only == uid {
                    *self = Self::None;
                }
            }
            Self::Many(many) => {
                many.remove(&uid);
                if many.is_empty() {
                    *self = Self::None;
                }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::None
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Uid> + '_ {
        let (one, many) = match self {
            Self::None => (None, None),
            Self::One(only) => (Some(*only), None),
            Self::Many(many) => (None, Some(many.iter().copied())),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}
