//! Objects and references in a line, and the attempts of events as text.

use std::sync::Arc;

use garbage_collector_operator::graph::{Attempts, Event, Graph};
use garbage_collector_operator::objects::{Coordinates, Identity, ObjectKind, OwnerReference, PartialObject};
use shared::api::intern::Text;
use shared::api::object::{Key, ResourceVersion, Uid};

/// The uid that fixtures give to a name.
pub(crate) fn uid(name: &str) -> Uid {
    shared::testing::uid(name)
}

/// An object of a kind; `key` is `namespace/name` or `name`, and the name makes the uid.
#[derive(Clone, Debug)]
pub(crate) struct Thing {
    pub(crate) kind: Arc<ObjectKind>,
    pub(crate) uid: Uid,
    key: Key,
    version: u64,
    deleting: bool,
    orphan: bool,
    foreground: bool,
    owners: Vec<OwnerReference>,
}

pub(crate) fn thing(kind: &str, key: &str) -> Thing {
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    Thing {
        kind: ObjectKind::shared("v1", kind),
        uid: uid(name),
        key: Key::new(namespace, name),
        version: 1,
        deleting: false,
        orphan: false,
        foreground: false,
        owners: Vec::new(),
    }
}

impl Thing {
    /// Of another kind.
    pub(crate) fn of_kind(mut self, api_version: &str, kind: &str) -> Self {
        self.kind = ObjectKind::shared(api_version, kind);
        self
    }

    pub(crate) fn version(mut self, version: u64) -> Self {
        self.version = version;
        self
    }

    /// A state that is being deleted, with these of the two finalizers.
    pub(crate) fn deleting(mut self, finalizers: &[&str]) -> Self {
        self.deleting = true;
        self.orphan = finalizers.contains(&"orphan");
        self.foreground = finalizers.contains(&"foregroundDeletion");
        self
    }

    /// Adds a reference to an owner as it is.
    pub(crate) fn owned_by(self, owner: &Self) -> Self {
        let Coordinates { kind, name, uid } = owner.identity().object;
        self.reference(&kind, &name, uid, None)
    }

    pub(crate) fn blocking(self, owner: &Self) -> Self {
        let Coordinates { kind, name, uid } = owner.identity().object;
        self.reference(&kind, &name, uid, Some(true))
    }

    /// Adds a reference that may be wrong.
    pub(crate) fn reference(mut self, kind: &Arc<ObjectKind>, name: &str, uid: Uid, block: Option<bool>) -> Self {
        let owner = Coordinates { kind: Arc::clone(kind), name: Arc::from(name), uid };
        self.owners.push(OwnerReference { owner, odd_uid: None, controller: None, block_owner_deletion: block });
        self
    }

    pub(crate) fn identity(&self) -> Identity {
        let object = Coordinates { kind: Arc::clone(&self.kind), name: Arc::from(self.key.name()), uid: self.uid };
        Identity { object, namespace: Text::new(self.key.namespace()) }
    }

    pub(crate) fn object(&self) -> PartialObject {
        PartialObject {
            key: self.key.clone(),
            uid: self.uid,
            resource_version: ResourceVersion(self.version),
            is_being_deleted: self.deleting,
            has_orphan_finalizer: self.orphan,
            has_foreground_finalizer: self.foreground,
            owners: self.owners.iter().cloned().map(OwnerReference::shared).collect(),
        }
    }

    pub(crate) fn references(&self) -> impl Iterator<Item = &OwnerReference> {
        self.owners.iter()
    }

    pub(crate) fn starts_foreground(&self) -> bool {
        self.deleting && self.foreground
    }

    pub(crate) fn starts_orphan(&self) -> bool {
        self.deleting && self.orphan
    }
}

/// A graph, and the names behind its uids.
#[derive(Default)]
pub(crate) struct Scene {
    pub(crate) graph: Graph,
    names: Vec<String>,
}

impl Scene {
    pub(crate) fn observe(&mut self, thing: &Thing) -> String {
        self.know(thing);
        let attempts = self.graph.update(Event::Observed(&thing.kind, &thing.object()));
        self.text(&attempts)
    }

    pub(crate) fn delete(&mut self, thing: &Thing) -> String {
        let attempts = self.graph.update(Event::Deleted(&thing.kind, &thing.object()));
        self.text(&attempts)
    }

    pub(crate) fn absent(&mut self, identity: &Identity) -> String {
        let attempts = self.graph.update(Event::Absent(identity));
        self.text(&attempts)
    }

    pub(crate) fn list(&mut self, kind: &str, live: &[&Thing], unreadable: &[&str]) -> String {
        for thing in live {
            self.know(thing);
        }
        let objects: Vec<_> = live.iter().map(|thing| Arc::new(thing.object())).collect();
        let unreadable = unreadable.iter().map(|key| key.split_once('/').unwrap_or(("", key)));
        let unreadable = unreadable.map(|(namespace, name)| Key::new(namespace, name)).collect();
        let attempts = self.graph.update(Event::Listed(&ObjectKind::shared("v1", kind), &objects, &unreadable));
        self.text(&attempts)
    }

    /// The uids and identities in the graph; virtual ones in brackets.
    pub(crate) fn resume(&mut self) -> String {
        let attempts = self.graph.resume();
        self.text(&attempts)
    }

    pub(crate) fn nodes(&self) -> String {
        let is_virtual = |stage| stage == garbage_collector_operator::graph::Stage::Virtual;
        let mut nodes: Vec<String> = self
            .graph
            .nodes()
            .map(|node| if is_virtual(node.stage) { format!("({})", node.identity) } else { node.identity.to_string() })
            .collect();
        nodes.sort();
        nodes.join(", ")
    }

    fn know(&mut self, thing: &Thing) {
        self.names.push(thing.key.name().to_owned());
        self.names.extend(thing.owners.iter().map(|reference| reference.owner.name.to_string()));
    }

    fn name(&self, uid_: Uid) -> String {
        let known = self.names.iter().find(|name| uid(name) == uid_);
        known.cloned().unwrap_or_else(|| uid_.to_string())
    }

    fn text(&self, attempts: &Attempts) -> String {
        let Attempts { attempt_to_delete, attempt_to_delete_later, attempt_to_orphan, invalid_namespace } = attempts;
        let names = |uids: &[Uid]| {
            let mut names: Vec<String> = uids.iter().map(|uid| self.name(*uid)).collect();
            names.sort();
            names.dedup();
            names.join(" ")
        };
        let invalid: Vec<String> =
            invalid_namespace.iter().map(|(dependent, owner)| format!("{dependent} of {}", owner.name)).collect();
        let parts = [
            ("delete", names(attempt_to_delete)),
            ("later", names(attempt_to_delete_later)),
            ("orphan", names(attempt_to_orphan)),
            ("invalid", invalid.join(" ")),
        ];
        let parts = parts.into_iter().filter(|(_, names)| !names.is_empty());
        parts.map(|(what, names)| format!("{what}: {names}")).collect::<Vec<_>>().join("; ")
    }
}
