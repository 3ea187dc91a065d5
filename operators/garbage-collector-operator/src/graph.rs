//! The graph of owners and dependents over every kind. Monitors feed it, workers read it.
//!
//! Pure and incremental: [`Graph::update`] takes one event and returns the attempts that follow. An owner that no monitor
//! has seen is a virtual node: only references claim that it exists, and an attempt checks that with the apiserver. The
//! graph may lag, so it never decides about an object.
//!
//! Upstream: `pkg/controller/garbagecollector/graph_builder.go`.

mod absent;
pub mod dot;
mod identity;
mod node;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use shared::api::intern::Text;
use shared::api::object::{Key, ResourceVersion, Uid};

use crate::objects::{Coordinates, Identity, ObjectKind, OwnerReference, PartialObject};
use absent::AbsentOwners;
use identity::{compare, next_identity};
use node::{Deleting, Dependents};
pub use node::{Node, Stage};

/// An event of a monitor, or the result of a read.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    Observed(&'a Arc<ObjectKind>, &'a PartialObject),
    Deleted(&'a Arc<ObjectKind>, &'a PartialObject),
    /// A monitor saw that an object was deleted whose last state this build cannot read.
    DeletedUnread(&'a Arc<ObjectKind>, &'a Key),
    /// A monitor has listed its kind: these are all objects, except those under the last keys, which this build cannot
    /// read.
    Listed(&'a Arc<ObjectKind>, &'a [Arc<PartialObject>], &'a BTreeSet<Key>),
    /// A read has shown that the object does not exist. (Upstream: a virtual delete event.)
    Absent(&'a Identity),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    /// Objects that may have to be deleted, or that wait for their dependents.
    pub attempt_to_delete: Vec<Uid>,
    /// The same after a back-off: the uid was just read under another identity.
    pub attempt_to_delete_later: Vec<Uid>,
    /// Objects whose dependents are to be orphaned.
    pub attempt_to_orphan: Vec<Uid>,
    /// Invalid references: a dependent, and how it refers to an owner that is in another namespace.
    pub invalid_namespace: Vec<(Identity, Coordinates)>,
}

/// All objects that were observed or are referred to, by uid.
#[derive(Debug, Default)]
pub struct Graph {
    nodes: BTreeMap<Uid, Node>,
    absent: AbsentOwners,
    restores: u64,
}

impl Graph {
    /// Applies one event.
    ///
    /// Upstream: `processGraphChanges`, `pkg/controller/garbagecollector/graph_builder.go`.
    pub fn update(&mut self, event: Event<'_>) -> Attempts {
        let mut attempts = Attempts::default();
        match event {
            Event::Observed(kind, object) => {
                let known = self.nodes.get(&object.uid).filter(|node| !node.is_virtual());
                // Two monitors may follow one object in two versions, and one of them may lag.
                if known.is_none_or(|node| node.resource_version <= object.resource_version) {
                    self.observe(kind, object, &mut attempts);
                }
            }
            Event::Deleted(kind, object) => self.delete(kind, object, &mut attempts),
            Event::DeletedUnread(kind, key) => {
                for uid in self.observed_of(kind, |node| node.identity.key() == *key) {
                    self.remove(uid, &mut attempts);
                }
            }
            Event::Listed(kind, live, unreadable) => self.list(kind, live, unreadable, &mut attempts),
            Event::Absent(identity) => self.find_absent(identity, &mut attempts),
        }
        attempts
    }

    /// The attempts that follow from the whole graph, as if every node were observed for the first time. An owner that
    /// is gone and still has dependents becomes a virtual node.
    pub fn resume(&mut self) -> Attempts {
        let mut attempts = Attempts::default();
        let uids: Vec<Uid> = self.nodes.keys().copied().collect();
        for uid in uids {
            let Some(node) = self.nodes.get(&uid) else { continue };
            if node.is_virtual() {
                attempts.attempt_to_delete.push(uid);
                continue;
            }
            let (owners, was) = (node.owners.clone(), node.was);
            self.add_to_owners(uid, &owners, &mut attempts);
            self.start_deleting(uid, Deleting::default(), was, &mut attempts);
        }
        attempts
    }

    pub fn node(&self, uid: Uid) -> Option<&Node> {
        self.nodes.get(&uid)
    }

    pub fn dependents(&self, uid: Uid) -> impl Iterator<Item = &Node> {
        let dependents = self.nodes.get(&uid).into_iter().flat_map(|node| node.dependents.iter());
        dependents.filter_map(|dependent| self.nodes.get(&dependent))
    }

    /// All nodes, by uid.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values()
    }

    /// The nodes whose uids come after this one, or all, by uid.
    pub fn nodes_after(&self, uid: Option<Uid>) -> impl Iterator<Item = &Node> {
        let after = uid.map_or(Bound::Unbounded, Bound::Excluded);
        self.nodes.range((after, Bound::Unbounded)).map(|(_, node)| node)
    }

    /// Whether this owner is known not to exist.
    pub fn is_absent(&self, owner: &Identity) -> bool {
        self.absent.contains(owner)
    }

    /// Whether a monitor saw that an owner of this object was deleted, which explains the object's deletion.
    pub fn saw_owner_go(&self, uid: Uid) -> bool {
        let Some(node) = self.nodes.get(&uid) else { return false };
        let was_seen = |reference: &Arc<OwnerReference>| {
            [node.identity.namespace.clone(), Text::default()]
                .into_iter()
                .any(|namespace| self.absent.was_seen(&Identity { object: reference.owner.clone(), namespace }))
        };
        node.saw_owner_go || node.owners.iter().any(was_seen)
    }

    /// How many objects of this kind have owners.
    pub fn owned(&self, kind: &ObjectKind) -> usize {
        self.nodes.values().filter(|node| !node.owners.is_empty() && *node.identity.object.kind == *kind).count()
    }

    /// Notes that this owner does not exist, or that this was used again.
    pub fn note_absent(&mut self, owner: Identity) {
        self.absent.add(owner, false);
    }

    /// Forgets all absent owners: a restored etcd may have them again.
    pub fn forget_absent(&mut self) {
        self.absent = AbsentOwners::default();
        self.restores += 1;
    }

    /// How often etcd was restored: reads before the last restore prove nothing.
    pub fn restores(&self) -> u64 {
        self.restores
    }

    fn observe(&mut self, kind: &Arc<ObjectKind>, object: &PartialObject, attempts: &mut Attempts) {
        let is_first = self.settle_identity(kind, object, attempts);
        let uid = object.uid;
        let deleting = Deleting::from(object);
        let stage = match (deleting.foreground && is_first, object.is_being_deleted) {
            (true, _) => Stage::DeletingDependents,
            (false, true) => Stage::BeingDeleted,
            (false, false) => Stage::Live,
        };
        let previous = if let Some(node) = self.nodes.get_mut(&uid) {
            node.stage = node.stage.max(stage);
            node.resource_version = object.resource_version;
            let previous = std::mem::replace(&mut node.was, deleting);
            if node.owners != object.owners {
                self.change_owners(uid, object, attempts);
            }
            previous
        } else {
            let node = Node {
                identity: identity_of(kind, object),
                stage,
                resource_version: object.resource_version,
                was: deleting,
                owners: object.owners.clone(),
                dependents: Dependents::None,
                saw_owner_go: false,
            };
            self.nodes.insert(uid, node);
            self.add_to_owners(uid, &object.owners, attempts);
            Deleting::default()
        };
        self.start_deleting(uid, previous, deleting, attempts);
    }

    /// Replaces an identity that came from references, or from another version of the kind, by the observed one. Returns
    /// whether this is the first observation.
    fn settle_identity(&mut self, kind: &Arc<ObjectKind>, object: &PartialObject, attempts: &mut Attempts) -> bool {
        let Some(node) = self.nodes.get_mut(&object.uid) else { return true };
        if !node.is_virtual() {
            if node.identity.object.kind != *kind {
                node.identity.object.kind = Arc::clone(kind);
            }
            return false;
        }
        node.stage = Stage::Live;
        let observed = identity_of(kind, object);
        if node.identity == observed {
            return true;
        }
        node.identity = observed.clone();
        for dependent in self.dependents(object.uid) {
            if !compare(dependent, &observed).disagrees {
                continue;
            }
            if !observed.namespace.is_empty() && dependent.identity.namespace != observed.namespace {
                attempts.report_invalid_namespace(dependent, object.uid);
            }
            attempts.attempt_to_delete.push(dependent.identity.object.uid);
        }
        true
    }

    fn change_owners(&mut self, uid: Uid, object: &PartialObject, attempts: &mut Attempts) {
        let Some(node) = self.nodes.get_mut(&uid) else { return };
        let old = std::mem::replace(&mut node.owners, object.owners.clone());
        // As upstream, the last of several references with one uid counts.
        let by_uid = |references: &[Arc<OwnerReference>]| -> BTreeMap<Uid, Arc<OwnerReference>> {
            references.iter().map(|reference| (reference.owner.uid, Arc::clone(reference))).collect()
        };
        let (before, after) = (by_uid(&old), by_uid(&object.owners));
        for (owner, reference) in &before {
            let still_blocks = after.get(owner).is_some_and(|reference| reference.blocks());
            if reference.blocks() && !still_blocks && self.nodes.contains_key(owner) {
                attempts.attempt_to_delete.push(*owner);
            }
        }
        let added: Vec<_> =
            object.owners.iter().filter(|reference| !before.contains_key(&reference.owner.uid)).cloned().collect();
        if let Some(node) = self.nodes.get_mut(&uid).filter(|_| !added.is_empty()) {
            node.saw_owner_go = false;
        }
        self.add_to_owners(uid, &added, attempts);
        for owner in before.keys().filter(|owner| !after.contains_key(owner)) {
            if let Some(owner) = self.nodes.get_mut(owner) {
                owner.dependents.remove(uid);
            }
        }
    }

    /// Upstream: `addDependentToOwners`, `pkg/controller/garbagecollector/graph_builder.go`.
    fn add_to_owners(&mut self, uid: Uid, owners: &[Arc<OwnerReference>], attempts: &mut Attempts) {
        let Some(namespace) = self.nodes.get(&uid).map(|node| node.identity.namespace.clone()) else { return };
        let mut is_suspicious = false;
        for reference in owners {
            let owner_uid = reference.owner.uid;
            let Some(owner) = self.nodes.get_mut(&owner_uid) else {
                self.nodes.insert(owner_uid, virtual_node(&reference.owner, &namespace, uid));
                attempts.attempt_to_delete.push(owner_uid);
                continue;
            };
            owner.dependents.insert(uid);
            if is_suspicious {
                continue;
            }
            let (identity, is_virtual) = (&owner.identity, owner.is_virtual());
            let elsewhere = identity.namespace != namespace;
            let is_namespaced = !identity.namespace.is_empty();
            is_suspicious = reference.owner != identity.object || (elsewhere && (is_namespaced || is_virtual));
            if is_namespaced
                && elsewhere
                && !is_virtual
                && let Some(node) = self.nodes.get(&uid)
            {
                attempts.report_invalid_namespace(node, owner_uid);
            }
        }
        if is_suspicious {
            attempts.attempt_to_delete.push(uid);
        }
    }

    /// Upstream: `processTransitions`, `pkg/controller/garbagecollector/graph_builder.go`.
    fn start_deleting(&mut self, uid: Uid, before: Deleting, now: Deleting, attempts: &mut Attempts) {
        if now.orphan && !before.orphan {
            attempts.attempt_to_orphan.push(uid);
        } else if now.foreground && !before.foreground {
            let Some(node) = self.nodes.get_mut(&uid) else { return };
            node.stage = Stage::DeletingDependents;
            attempts.attempt_to_delete.extend(node.dependents.iter());
            attempts.attempt_to_delete.push(uid);
        }
    }

    fn list(
        &mut self,
        kind: &Arc<ObjectKind>,
        live: &[Arc<PartialObject>],
        unreadable: &BTreeSet<Key>,
        attempts: &mut Attempts,
    ) {
        let listed: BTreeSet<Uid> = live.iter().map(|object| object.uid).collect();
        let gone = self.observed_of(kind, |node| {
            !listed.contains(&node.identity.object.uid) && !unreadable.contains(&node.identity.key())
        });
        for uid in gone {
            self.mark_unlisted(uid, kind, attempts);
        }
        for object in live {
            self.observe(kind, object, attempts);
        }
    }

    /// Handles an object that a list lacks: it was deleted unseen, or the list is older than its last event. If it has
    /// dependents, or an owner waits for it, it becomes virtual, so that an attempt reads it first.
    fn mark_unlisted(&mut self, uid: Uid, kind: &Arc<ObjectKind>, attempts: &mut Attempts) {
        let is_waiting =
            |owner: &Uid| self.nodes.get(owner).is_some_and(|node| node.stage == Stage::DeletingDependents);
        let matters = self.nodes.get(&uid).is_some_and(|node| {
            !node.dependents.is_empty() || node.owners.iter().any(|reference| is_waiting(&reference.owner.uid))
        });
        let Some(node) = self.nodes.get_mut(&uid).filter(|_| matters) else { return self.remove(uid, attempts) };
        // The version in which it was seen may no longer be served.
        node.identity.object.kind = Arc::clone(kind);
        (node.stage, node.was, node.resource_version) =
            (Stage::Virtual, Deleting::default(), ResourceVersion::default());
        attempts.attempt_to_delete.push(uid);
    }

    /// The observed objects of a kind, in any version.
    fn observed_of(&self, kind: &ObjectKind, which: impl Fn(&Node) -> bool) -> Vec<Uid> {
        let nodes = self.nodes.iter().filter(|(_, node)| !node.is_virtual() && is_same_kind(&node.identity, kind));
        nodes.filter(|(_, node)| which(node)).map(|(uid, _)| *uid).collect()
    }

    fn delete(&mut self, kind: &Arc<ObjectKind>, object: &PartialObject, attempts: &mut Attempts) {
        self.settle_identity(kind, object, attempts);
        self.remove(object.uid, attempts);
    }

    fn remove(&mut self, uid: Uid, attempts: &mut Attempts) {
        self.unlink(uid, attempts);
        let Some(node) = self.nodes.remove(&uid) else { return };
        if node.dependents.is_empty() {
            return;
        }
        let was_seen = !node.is_virtual();
        for dependent in node.dependents.iter() {
            if let Some(dependent) = self.nodes.get_mut(&dependent).filter(|_| was_seen) {
                dependent.saw_owner_go = true;
            }
            attempts.attempt_to_delete.push(dependent);
        }
        self.absent.add(node.identity, was_seen);
    }

    /// Removes an object from its owners; attempts those that wait for their dependents.
    fn unlink(&mut self, uid: Uid, attempts: &mut Attempts) {
        let Some(node) = self.nodes.get_mut(&uid) else { return };
        for reference in std::mem::take(&mut node.owners) {
            let Some(owner) = self.nodes.get_mut(&reference.owner.uid) else { continue };
            owner.dependents.remove(uid);
            if owner.stage == Stage::DeletingDependents {
                attempts.attempt_to_delete.push(reference.owner.uid);
            }
            // A standby attempts nothing, so nothing else would ever remove it.
            if owner.is_virtual() && owner.dependents.is_empty() && owner.owners.is_empty() {
                self.nodes.remove(&reference.owner.uid);
            }
        }
    }

    /// Handles an object that a read did not find. If some dependents mean another object by the same uid, these stay,
    /// and the other object is attempted next.
    fn find_absent(&mut self, absent: &Identity, attempts: &mut Attempts) {
        let uid = absent.object.uid;
        let Some(node) = self.nodes.get(&uid) else { return };
        let is_this = node.identity == *absent;
        if is_this && !node.is_virtual() {
            return self.remove(uid, attempts);
        }
        let (agree, disagree): (Vec<&Node>, Vec<&Node>) = {
            let compared = || self.dependents(uid).map(|dependent| (dependent, compare(dependent, absent)));
            let agree = compared().filter(|(_, found)| found.agrees).map(|(dependent, _)| dependent);
            let disagree = compared().filter(|(_, found)| found.disagrees).map(|(dependent, _)| dependent);
            (agree.collect(), disagree.collect())
        };
        if node.is_virtual() && disagree.is_empty() {
            if let Some(node) = self.nodes.get_mut(&uid) {
                node.identity = absent.clone();
            }
            return self.remove(uid, attempts);
        }
        let was_read = node.is_virtual() && is_this;
        let next = was_read.then(|| next_identity(disagree, absent)).flatten();
        if !agree.is_empty() {
            attempts.attempt_to_delete.extend(agree.iter().map(|dependent| dependent.identity.object.uid));
            self.absent.add(absent.clone(), false);
        }
        if was_read {
            self.unlink(uid, attempts);
        }
        if let Some(next) = next
            && let Some(node) = self.nodes.get_mut(&uid)
        {
            node.identity = next;
            attempts.attempt_to_delete_later.push(uid);
        }
    }
}

impl Attempts {
    fn report_invalid_namespace(&mut self, dependent: &Node, owner: Uid) {
        let reference = dependent.references_to(owner).next();
        let invalid = reference.map(|reference| (dependent.identity.clone(), reference.owner.clone()));
        self.invalid_namespace.extend(invalid);
    }
}

fn identity_of(kind: &Arc<ObjectKind>, object: &PartialObject) -> Identity {
    let object_identity = Coordinates { kind: Arc::clone(kind), name: Arc::from(object.key.name()), uid: object.uid };
    Identity { object: object_identity, namespace: Text::new(object.key.namespace()) }
}

fn virtual_node(owner: &Coordinates, namespace: &Text, dependent: Uid) -> Node {
    let mut dependents = Dependents::None;
    dependents.insert(dependent);
    Node {
        identity: Identity { object: owner.clone(), namespace: namespace.clone() },
        stage: Stage::Virtual,
        resource_version: ResourceVersion::default(),
        was: Deleting::default(),
        owners: Box::default(),
        dependents,
        saw_owner_go: false,
    }
}

fn is_same_kind(identity: &Identity, kind: &ObjectKind) -> bool {
    let known = &identity.object.kind;
    let group = |kind: &ObjectKind| kind.api_version.rsplit_once('/').map(|(group, _)| Text::new(group));
    **known == *kind || (known.kind == kind.kind && group(known) == group(kind))
}
