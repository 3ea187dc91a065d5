//! Lean views: what every cached object has (key, uid, resourceVersion, labels, controller), in about a hundred bytes.
//!
//! An operator's `objects.rs` declares one struct per kind with a [`Meta`] and exactly the fields it reads.
//! Left out: managedFields, ownerReferences other than the controller's, and annotations unless a view asks for them.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, LazyLock};

use serde::de::{DeserializeOwned, IgnoredAny, MapAccess};
use serde::{Deserialize, Deserializer, Serialize};

use crate::api::intern::{Interner, Text};
use crate::api::labels::Labels;
use crate::api::resource::Resource;
use crate::api::time::Time;

/// A view of one kind: how an operator sees it.
pub trait Object: DeserializeOwned + Send + Sync + 'static {
    /// The type that its annotations are read into.
    type Annotations: Send + Sync;
    /// The lean metadata.
    fn meta(&self) -> &Meta<Self::Annotations>;
}

/// An object that can be followed without being cached: all it needs is a key and a version.
pub trait Versioned: DeserializeOwned + Send + Sync + 'static {
    /// Namespace and name.
    fn key(&self) -> &Key;
    /// The version of this state.
    fn resource_version(&self) -> ResourceVersion;
}

impl<T: Object> Versioned for T {
    fn key(&self) -> &Key {
        &self.meta().key
    }

    fn resource_version(&self) -> ResourceVersion {
        self.meta().resource_version
    }
}

/// A view of a kind that is known at build time.
pub trait Kind: Object {
    /// Where the apiserver serves it.
    const RESOURCE: Resource;
    /// The same, to be kept without a copy.
    const STATIC_RESOURCE: &'static Resource = &Self::RESOURCE;

    /// This object as the controller of others.
    fn owner(&self) -> Owner {
        let meta = self.meta();
        Owner { resource: Self::RESOURCE, key: meta.key.clone(), uid: meta.uid, being_deleted: meta.is_being_deleted() }
    }

    /// This state of the object, for events about it.
    fn reference(&self) -> ObjectReference {
        let meta = self.meta();
        let (key, uid, resource_version) = (meta.key.clone(), meta.uid, meta.resource_version);
        ObjectReference { resource: Self::RESOURCE, key, uid, resource_version }
    }
}

/// Makes a struct with a field `metadata` the view of a kind: `view!(Job, JOBS)`, and with the type that its
/// annotations are read into `view!(Service, SERVICES, TopologyMode)`.
#[macro_export]
macro_rules! view {
    ($view:ty, $resource:expr) => {
        $crate::view!($view, $resource, $crate::api::object::NoAnnotations);
    };
    ($view:ty, $resource:expr, $annotations:ty) => {
        impl $crate::api::object::Object for $view {
            type Annotations = $annotations;
            fn meta(&self) -> &$crate::api::object::Meta<$annotations> {
                &self.metadata
            }
        }

        impl $crate::api::object::Kind for $view {
            const RESOURCE: $crate::api::resource::Resource = $resource;
        }
    };
}

/// One state of an object, as an event names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectReference {
    /// Its kind.
    pub resource: Resource,
    /// Namespace and name.
    pub key: Key,
    /// The object's identity.
    pub uid: Uid,
    /// The version of this state.
    pub resource_version: ResourceVersion,
}

impl ObjectReference {
    /// The reference without a version, as in some of upstream's events.
    #[must_use]
    pub fn without_version(self) -> Self {
        Self { resource_version: ResourceVersion::default(), ..self }
    }
}

/// For `deserialize_with`: a field that is `null`, as Go writes an empty list or map, is as one that is absent.
pub fn null_as_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// `namespace/name`, or `name` for what lives in no namespace: one allocation, shared by caches, indices and queues.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

impl Key {
    /// The key of an object; `namespace` is `""` for a cluster-scoped one.
    pub fn new(namespace: &str, name: &str) -> Self {
        if namespace.is_empty() {
            return Self(Arc::from(name));
        }
        let mut text = String::with_capacity(namespace.len() + 1 + name.len());
        text.push_str(namespace);
        text.push('/');
        text.push_str(name);
        Self(Arc::from(text))
    }

    /// The namespace, `""` if there is none.
    pub fn namespace(&self) -> &str {
        self.0.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(_, name)| name)
    }

    /// `namespace/name`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// A uid in 16 bytes. The apiserver makes all uids as UUIDs; a reference may name anything, and what is no UUID becomes
/// a value that equals no real uid (its version digit is `f`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uid([u8; 16]);

impl Uid {
    const NOT_A_UUID: u128 = 0xf << 76;

    /// Reads the canonical form, 36 characters in lower case.
    pub fn parse(text: &str) -> Self {
        Self(canonical_uuid(text).unwrap_or_else(|| Self::foreign(text)).to_be_bytes())
    }

    fn foreign(text: &str) -> u128 {
        // FNV-1a, 128 bits.
        let hash = text.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        });
        hash | Self::NOT_A_UUID
    }
}

fn canonical_uuid(text: &str) -> Option<u128> {
    if text.len() != 36 {
        return None;
    }
    text.bytes().enumerate().try_fold(0_u128, |value, (at, byte)| match (at, byte) {
        (8 | 13 | 18 | 23, b'-') => Some(value),
        (8 | 13 | 18 | 23, _) => None,
        (_, b'0'..=b'9') => Some((value << 4) | u128::from(byte - b'0')),
        (_, b'a'..=b'f') => Some((value << 4) | u128::from(byte - b'a' + 10)),
        _ => None,
    })
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = u128::from_be_bytes(self.0);
        let part = |shift: u32, digits: u32| (value >> shift) & ((1 << (4 * digits)) - 1);
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            part(96, 8),
            part(80, 4),
            part(64, 4),
            part(48, 4),
            part(0, 12)
        )
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Uid {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Uid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text_visitor(deserializer, "a uid", |text| Ok(Self::parse(text)))
    }
}

/// A resourceVersion, compared as a number (KEP-5504). 0 when absent or not a number: older than everything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ResourceVersion(pub u64);

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Serialize for ResourceVersion {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ResourceVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text_visitor(deserializer, "a resourceVersion", |text| Ok(Self(text.parse().unwrap_or(0))))
    }
}

fn text_visitor<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expecting: &'static str,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    struct Visitor<F>(&'static str, F);
    impl<T, F: FnOnce(&str) -> Result<T, String>> serde::de::Visitor<'_> for Visitor<F> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
            (self.1)(text).map_err(E::custom)
        }
    }
    deserializer.deserialize_str(Visitor(expecting, read))
}

/// The object for which a controller claims others, such as one ReplicaSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its kind.
    pub resource: Resource,
    /// Its namespace and name.
    pub key: Key,
    /// Its identity.
    pub uid: Uid,
    /// Whether deletionTimestamp is set. Such an owner keeps its objects and adopts no others.
    pub being_deleted: bool,
}

/// The one ownerReference with `controller: true`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ControllerRef {
    /// For example `apps/v1`.
    pub api_version: Text,
    /// For example `ReplicaSet`.
    pub kind: Text,
    /// The controller's name, in the object's own namespace.
    pub name: Text,
    /// The controller's uid.
    pub uid: Uid,
}

static CONTROLLERS: LazyLock<Interner<ControllerRef>> = LazyLock::new(Interner::new);

impl ControllerRef {
    /// The shared copy of this reference.
    pub fn shared(self) -> Arc<Self> {
        CONTROLLERS.intern_owned(self)
    }
}

/// Reads no annotation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoAnnotations;

impl<'de> Deserialize<'de> for NoAnnotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

/// The metadata every view keeps; `A` is what the view reads from the annotations.
#[derive(Clone, Debug, PartialEq)]
pub struct Meta<A = NoAnnotations> {
    /// Namespace and name.
    pub key: Key,
    /// The object's identity: a name may come back, a uid does not.
    pub uid: Uid,
    /// The version of this state.
    pub resource_version: ResourceVersion,
    /// Counts changes of the spec; 0 where the kind has none.
    pub generation: i64,
    /// When it was created; `None` only for objects built by hand.
    pub creation: Option<Time>,
    /// Set while it is being deleted.
    pub deletion: Option<Time>,
    /// How many seconds before that its end began; 0 where it has none.
    pub deletion_grace_seconds: i64,
    /// Its labels.
    pub labels: Labels,
    /// The annotations that the view reads.
    pub annotations: A,
    /// The ownerReference with `controller: true`.
    pub controller: Option<Arc<ControllerRef>>,
    /// Its finalizers.
    pub finalizers: Box<[Text]>,
}

impl<A> Meta<A> {
    /// The namespace, `""` if there is none.
    pub fn namespace(&self) -> &str {
        self.key.namespace()
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.key.name()
    }

    /// Whether deletionTimestamp is set.
    pub fn is_being_deleted(&self) -> bool {
        self.deletion.is_some()
    }

    /// The uid of the controller.
    pub fn controller_uid(&self) -> Option<Uid> {
        self.controller.as_ref().map(|controller| controller.uid)
    }

    /// Whether the controller is the object of this uid.
    pub fn is_controlled_by(&self, uid: Uid) -> bool {
        self.controller_uid() == Some(uid)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawOwner<'a> {
    #[serde(borrow, default)]
    api_version: std::borrow::Cow<'a, str>,
    #[serde(borrow, default)]
    kind: std::borrow::Cow<'a, str>,
    #[serde(borrow, default)]
    name: std::borrow::Cow<'a, str>,
    #[serde(default)]
    uid: Uid,
    #[serde(default)]
    controller: Option<bool>,
}

struct RawMeta<A> {
    namespace: String,
    name: String,
    meta: Meta<A>,
}

impl<'de, A: Deserialize<'de> + Default> Deserialize<'de> for Meta<A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("ObjectMeta", FIELDS, MetaVisitor(PhantomData))
    }
}

struct MetaVisitor<A>(PhantomData<A>);

impl<'de, A: Deserialize<'de> + Default> serde::de::Visitor<'de> for MetaVisitor<A> {
    type Value = Meta<A>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Meta<A>, M::Error> {
        let mut raw = RawMeta { namespace: String::new(), name: String::new(), meta: Meta::default() };
        while let Some(field) = map.next_key::<Field>()? {
            raw.read(field, &mut map)?;
        }
        if raw.name.is_empty() {
            return Err(serde::de::Error::missing_field("name"));
        }
        raw.meta.key = Key::new(&raw.namespace, &raw.name);
        Ok(raw.meta)
    }
}

/// The names of `Field`.
const FIELDS: &[&str] = &[
    "namespace",
    "name",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
];

#[derive(Clone, Copy, Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Field {
    Namespace,
    Name,
    Uid,
    ResourceVersion,
    Generation,
    CreationTimestamp,
    DeletionTimestamp,
    DeletionGracePeriodSeconds,
    Labels,
    Annotations,
    OwnerReferences,
    Finalizers,
    #[serde(other)]
    Unread,
}

impl<A> RawMeta<A> {
    fn read<'de, M: MapAccess<'de>>(&mut self, field: Field, map: &mut M) -> Result<(), M::Error>
    where
        A: Deserialize<'de> + Default,
    {
        let meta = &mut self.meta;
        match field {
            Field::Namespace => self.namespace = map.next_value()?,
            Field::Name => self.name = map.next_value()?,
            Field::Uid => meta.uid = map.next_value()?,
            Field::ResourceVersion => meta.resource_version = map.next_value()?,
            Field::Generation => meta.generation = map.next_value()?,
            Field::CreationTimestamp => meta.creation = map.next_value()?,
            Field::DeletionTimestamp => meta.deletion = map.next_value()?,
            Field::DeletionGracePeriodSeconds => {
                meta.deletion_grace_seconds = map.next_value::<Option<i64>>()?.unwrap_or_default();
            }
            Field::Labels => meta.labels = map.next_value()?,
            Field::Annotations => meta.annotations = map.next_value::<Option<A>>()?.unwrap_or_default(),
            Field::OwnerReferences => {
                let owners: Option<Vec<RawOwner<'de>>> = map.next_value()?;
                let controller = owners.into_iter().flatten().find(|owner| owner.controller == Some(true));
                meta.controller = controller.map(|owner| {
                    let (api_version, kind) = (Text::new(&owner.api_version), Text::new(&owner.kind));
                    ControllerRef { api_version, kind, name: Text::new(&owner.name), uid: owner.uid }.shared()
                });
            }
            Field::Finalizers => meta.finalizers = map.next_value::<Option<Box<[Text]>>>()?.unwrap_or_default(),
            Field::Unread => {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

impl<A: Default> Default for Meta<A> {
    fn default() -> Self {
        Self {
            key: Key::new("", ""),
            uid: Uid::default(),
            resource_version: ResourceVersion::default(),
            generation: 0,
            creation: None,
            deletion: None,
            deletion_grace_seconds: 0,
            labels: Labels::default(),
            annotations: A::default(),
            controller: None,
            finalizers: Box::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = r#"{"name":"web-a","generateName":"web-","namespace":"default",
        "uid":"0b6cd1a8-9b7e-4a0e-9a53-0c7a3e1f2d4b","resourceVersion":"42","generation":3,
        "creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"web"},
        "annotations":{"x":"y"},"managedFields":[{"manager":"m"}],"finalizers":["f"],
        "ownerReferences":[{"apiVersion":"v1","kind":"Other","name":"o","uid":"not a uuid"},
        {"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"11111111-2222-4333-8444-555555555555",
         "controller":true,"blockOwnerDeletion":true}]}"#;

    #[test]
    fn reads_what_it_keeps_and_skips_the_rest() {
        let meta: Meta = serde_json::from_str(POD).unwrap();
        assert_eq!(meta.key.to_string(), "default/web-a");
        assert_eq!((meta.namespace(), meta.name()), ("default", "web-a"));
        assert_eq!(meta.uid.to_string(), "0b6cd1a8-9b7e-4a0e-9a53-0c7a3e1f2d4b");
        assert_eq!(meta.resource_version, ResourceVersion(42));
        assert_eq!(meta.labels.get("app"), Some("web"));
        assert_eq!(meta.finalizers.as_ref(), [Text::new("f")]);
        let controller = meta.controller.unwrap();
        assert_eq!((controller.kind.as_str(), controller.name.as_str()), ("ReplicaSet", "web"));
        assert_eq!(controller.uid.to_string(), "11111111-2222-4333-8444-555555555555");
    }

    #[test]
    fn a_reference_that_is_no_uuid_equals_no_real_uid() {
        let odd = Uid::parse("not a uuid");
        assert_eq!(odd, Uid::parse("not a uuid"));
        assert_ne!(odd, Uid::parse("another"));
        assert_eq!(odd.to_string().as_bytes()[14], b'f');
    }

    #[test]
    fn metadata_stays_small() {
        assert!(size_of::<Meta>() <= 128, "{} bytes", size_of::<Meta>());
    }

    #[test]
    fn a_name_is_required() {
        assert!(serde_json::from_str::<Meta>(r#"{"uid":"x"}"#).unwrap_err().to_string().contains("name"));
    }
}
