//! The view of a PersistentVolumeClaim: its name and its owners.
//!
//! Metadata are enough. Left out: the volume, which is the scheduler's and the volume controllers'.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use shared::api::intern::Text;
use shared::api::object::{Key, Meta, ResourceVersion, Uid};
use shared::api::resource::PERSISTENT_VOLUME_CLAIMS;
use shared::api::time::Time;

#[derive(Clone, Debug, PartialEq)]
pub struct PersistentVolumeClaim {
    /// Its metadata, without labels, finalizers and controller.
    pub metadata: Meta,
    pub owners: Box<[ClaimOwner]>,
}

shared::view!(PersistentVolumeClaim, PERSISTENT_VOLUME_CLAIMS);

/// One of `metadata.ownerReferences`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimOwner {
    /// For example `apps/v1`.
    pub api_version: Text,
    /// For example `StatefulSet`.
    pub kind: Text,
    pub name: Text,
    pub uid: Uid,
    pub is_controller: bool,
}

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
    #[serde(default)]
    deletion_timestamp: Option<Time>,
    #[serde(borrow, default)]
    owner_references: Option<Vec<RawOwner<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawOwner<'a> {
    #[serde(borrow, default)]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(default)]
    uid: Uid,
    #[serde(default)]
    controller: Option<bool>,
}

impl From<RawOwner<'_>> for ClaimOwner {
    fn from(raw: RawOwner<'_>) -> Self {
        Self {
            api_version: Text::new(&raw.api_version),
            kind: Text::new(&raw.kind),
            name: Text::new(&raw.name),
            uid: raw.uid,
            is_controller: raw.controller == Some(true),
        }
    }
}

impl<'de> Deserialize<'de> for PersistentVolumeClaim {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Raw { metadata: raw } = Raw::deserialize(deserializer)?;
        let metadata = Meta {
            key: Key::new(&raw.namespace, &raw.name),
            uid: raw.uid,
            resource_version: raw.resource_version,
            deletion: raw.deletion_timestamp,
            ..Meta::default()
        };
        let owners = raw.owner_references.into_iter().flatten().map(ClaimOwner::from).collect();
        Ok(Self { metadata, owners })
    }
}
