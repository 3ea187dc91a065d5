//! The views of an object: its identity, its owners, and whether it is being deleted.
//!
//! The graph is made of [`PartialObject`]s; a [`LiveObject`] is read before each decision.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use shared::api::intern::{Interner, Text};
use shared::api::object::{Key, ObjectReference, ResourceVersion, Uid, Versioned, null_as_default};
use shared::api::resource::Resource;

/// The finalizer of an object whose dependents are deleted first.
pub const FOREGROUND_DELETION: &str = "foregroundDeletion";
/// The finalizer of an object whose dependents are to be orphaned.
pub const ORPHAN: &str = "orphan";

/// An apiVersion and a kind, as in references; one copy for all objects of the kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKind {
    /// For example `apps/v1`.
    pub api_version: Text,
    /// For example `ReplicaSet`.
    pub kind: Text,
}

static KINDS: LazyLock<Interner<ObjectKind>> = LazyLock::new(Interner::new);

impl ObjectKind {
    pub fn shared(api_version: &str, kind: &str) -> Arc<Self> {
        KINDS.intern_owned(Self { api_version: Text::new(api_version), kind: Text::new(kind) })
    }

    pub fn of(resource: &Resource) -> Arc<Self> {
        Self::shared(&resource.api_version(), &resource.kind)
    }
}

/// The owner that a reference names, without the reference's options.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Coordinates {
    pub kind: Arc<ObjectKind>,
    pub name: Arc<str>,
    pub uid: Uid,
}

/// One entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerReference {
    pub owner: Coordinates,
    /// The uid as it is written, if it is not a UUID: a patch must name it so.
    pub odd_uid: Option<Text>,
    pub controller: Option<bool>,
    /// Whether a foreground deletion of the owner waits for the dependent.
    pub block_owner_deletion: Option<bool>,
}

static REFERENCES: LazyLock<Interner<OwnerReference>> = LazyLock::new(Interner::new);

impl OwnerReference {
    /// The shared copy: thousands of pods of one owner have the same reference.
    pub fn shared(self) -> Arc<Self> {
        REFERENCES.intern_owned(self)
    }

    /// Whether a foreground deletion of the owner waits for the dependent.
    pub fn blocks(&self) -> bool {
        self.block_owner_deletion == Some(true)
    }

    pub fn uid_text(&self) -> Cow<'_, str> {
        self.odd_uid.as_deref().map_or_else(|| Cow::Owned(self.owner.uid.to_string()), Cow::Borrowed)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawReference<'a> {
    #[serde(borrow, default)]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    #[serde(default)]
    controller: Option<bool>,
    #[serde(default)]
    block_owner_deletion: Option<bool>,
}

impl From<RawReference<'_>> for OwnerReference {
    fn from(raw: RawReference<'_>) -> Self {
        let uid = Uid::parse(&raw.uid);
        let odd_uid = (uid.to_string() != raw.uid).then(|| Text::new(&raw.uid));
        let kind = ObjectKind::shared(&raw.api_version, &raw.kind);
        let owner = Coordinates { kind, name: Arc::from(&*raw.name), uid };
        Self { owner, odd_uid, controller: raw.controller, block_owner_deletion: raw.block_owner_deletion }
    }
}

/// The identity of an object, observed or claimed by a reference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    pub object: Coordinates,
    /// The namespace; `""` if the object is cluster-scoped or its namespace is not known.
    pub namespace: Text,
}

impl Identity {
    pub fn key(&self) -> Key {
        Key::new(&self.namespace, &self.object.name)
    }

    pub fn reference(&self, resource: Resource) -> ObjectReference {
        let (key, uid) = (self.key(), self.object.uid);
        ObjectReference { resource, key, uid, resource_version: ResourceVersion::default() }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.object.kind.kind, self.key())
    }
}

/// The state of one object, as a monitor sees it.
#[derive(Debug, PartialEq, Eq)]
pub struct PartialObject {
    pub key: Key,
    pub uid: Uid,
    pub resource_version: ResourceVersion,
    pub is_being_deleted: bool,
    /// Whether it has the finalizer [`ORPHAN`].
    pub has_orphan_finalizer: bool,
    /// Whether it has the finalizer [`FOREGROUND_DELETION`].
    pub has_foreground_finalizer: bool,
    pub owners: Box<[Arc<OwnerReference>]>,
}

impl Versioned for PartialObject {
    fn key(&self) -> &Key {
        &self.key
    }

    fn resource_version(&self) -> ResourceVersion {
        self.resource_version
    }
}

impl<'de> Deserialize<'de> for PartialObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Raw<'a> {
            #[serde(borrow)]
            metadata: RawMeta<'a>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct RawMeta<'a> {
            #[serde(borrow, default)]
            namespace: Cow<'a, str>,
            #[serde(borrow)]
            name: Cow<'a, str>,
            #[serde(default)]
            uid: Uid,
            #[serde(default)]
            resource_version: ResourceVersion,
            #[serde(borrow, default)]
            deletion_timestamp: Option<Cow<'a, str>>,
            #[serde(borrow, default)]
            finalizers: Option<Vec<Cow<'a, str>>>,
            #[serde(borrow, default)]
            owner_references: Option<Vec<RawReference<'a>>>,
        }
        let Raw { metadata: raw } = Raw::deserialize(deserializer)?;
        let has = |finalizer: &str| raw.finalizers.iter().flatten().any(|known| known == finalizer);
        Ok(Self {
            key: Key::new(&raw.namespace, &raw.name),
            uid: raw.uid,
            resource_version: raw.resource_version,
            is_being_deleted: raw.deletion_timestamp.is_some(),
            has_orphan_finalizer: has(ORPHAN),
            has_foreground_finalizer: has(FOREGROUND_DELETION),
            owners: raw.owner_references.into_iter().flatten().map(|raw| OwnerReference::from(raw).shared()).collect(),
        })
    }
}

/// An object read live; metadata that a write sends back is kept as it was written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct LiveObject {
    /// The only part that is read.
    pub metadata: LiveMeta,
}

/// The metadata of a [`LiveObject`].
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LiveMeta {
    pub uid: String,
    pub resource_version: String,
    /// Set while it is being deleted.
    pub deletion_timestamp: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub finalizers: Vec<String>,
    /// Its owners with every field they have, known to this build or not.
    #[serde(deserialize_with = "null_as_default")]
    pub owner_references: Vec<Value>,
}

impl LiveObject {
    pub fn uid(&self) -> Uid {
        Uid::parse(&self.metadata.uid)
    }

    pub fn is_being_deleted(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    pub fn has_finalizer(&self, finalizer: &str) -> bool {
        self.metadata.finalizers.iter().any(|known| known == finalizer)
    }

    /// Its owners, in their order.
    ///
    /// # Errors
    /// If this build cannot read one of them.
    pub fn owners(&self) -> serde_json::Result<Vec<Arc<OwnerReference>>> {
        let references = self.metadata.owner_references.iter();
        references.map(|value| Ok(OwnerReference::from(RawReference::deserialize(value)?).shared())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = r#"{"kind":"PartialObjectMetadata","metadata":{"name":"web-a","namespace":"default",
        "uid":"0b6cd1a8-9b7e-4a0e-9a53-0c7a3e1f2d4b","resourceVersion":"42","labels":{"a":"b"},
        "deletionTimestamp":"2026-01-02T03:04:05Z","finalizers":["x","foregroundDeletion"],
        "ownerReferences":[{"apiVersion":"v1","kind":"Other","name":"o","uid":"NOT a uuid","newField":1},
        {"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"11111111-2222-4333-8444-555555555555",
         "controller":true,"blockOwnerDeletion":true}]}}"#;

    #[test]
    fn reads_all_owners_and_both_finalizers() {
        let pod: PartialObject = serde_json::from_str(POD).unwrap();
        assert_eq!((pod.key.as_str(), pod.resource_version), ("default/web-a", ResourceVersion(42)));
        assert!(pod.is_being_deleted && pod.has_foreground_finalizer && !pod.has_orphan_finalizer);
        let owners: Vec<_> = pod.owners.iter().map(|owner| (owner.uid_text().into_owned(), owner.blocks())).collect();
        assert_eq!(
            owners,
            [("NOT a uuid".to_owned(), false), ("11111111-2222-4333-8444-555555555555".to_owned(), true)]
        );
    }

    #[test]
    fn a_live_object_keeps_what_this_build_does_not_know() {
        let pod: LiveObject = serde_json::from_str(POD).unwrap();
        assert_eq!(pod.metadata.owner_references[0]["newField"], 1);
        assert_eq!(pod.owners().unwrap().len(), 2);
        assert_eq!(pod.metadata.resource_version, "42");
        assert!(pod.has_finalizer("x") && pod.is_being_deleted());
        let bare: LiveObject = serde_json::from_str(r#"{"metadata":{"finalizers":null}}"#).unwrap();
        assert!(!bare.is_being_deleted() && bare.owners().unwrap().is_empty());
    }

    #[test]
    fn equal_references_are_one_allocation() {
        let (first, second): (PartialObject, PartialObject) =
            (serde_json::from_str(POD).unwrap(), serde_json::from_str(POD).unwrap());
        assert!(Arc::ptr_eq(&first.owners[1], &second.owners[1]));
    }
}
