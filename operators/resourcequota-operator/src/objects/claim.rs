//! A PersistentVolumeClaim: its storage, its storage class, and its volume attributes classes.
//!
//! Left out: the volume.

use std::collections::BTreeSet;

use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::object::{Key, Meta, ResourceVersion, null_as_default};
use shared::api::quantity::Quantity;

use super::{Amounts, countable};

const STORAGE: &str = "storage";

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawClaim")]
pub struct Claim {
    pub key: Key,
    pub resource_version: ResourceVersion,
    pub facts: ClaimFacts,
}

countable!(Claim, ClaimFacts);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimFacts {
    /// Its storage class; none if it names none.
    pub class: Option<Text>,
    /// The storage that it asks for or has, in whole bytes.
    pub storage: Option<Quantity>,
    /// The volume attributes classes that it asks for, has, or is about to get.
    pub attributes_classes: BTreeSet<Text>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "volume.beta.kubernetes.io/storage-class")]
    class: Option<Text>,
}

#[derive(Deserialize)]
struct RawClaim {
    metadata: Meta<Annotations>,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    storage_class_name: Option<Text>,
    volume_attributes_class_name: Option<Text>,
    #[serde(deserialize_with = "null_as_default")]
    resources: RawResources,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawResources {
    #[serde(deserialize_with = "null_as_default")]
    requests: Amounts,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus {
    #[serde(deserialize_with = "null_as_default")]
    allocated_resources: Amounts,
    current_volume_attributes_class_name: Option<Text>,
    #[serde(deserialize_with = "null_as_default")]
    modify_volume_status: RawModification,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawModification {
    target_volume_attributes_class_name: Option<Text>,
}

impl From<RawClaim> for Claim {
    fn from(RawClaim { metadata, spec, status }: RawClaim) -> Self {
        let storage = storage(&spec, &status);
        let RawSpec { storage_class_name, volume_attributes_class_name, resources: _ } = spec;
        let RawStatus { allocated_resources: _, current_volume_attributes_class_name, modify_volume_status } = status;
        let target = modify_volume_status.target_volume_attributes_class_name;
        let classes = [volume_attributes_class_name, current_volume_attributes_class_name, target];
        let Meta { key, resource_version, annotations, .. } = metadata;
        let facts = ClaimFacts {
            class: annotations.class.or(storage_class_name).filter(|class| !class.is_empty()),
            storage,
            attributes_classes: classes.into_iter().flatten().filter(|class| !class.is_empty()).collect(),
        };
        Self { key, resource_version, facts }
    }
}

/// Upstream: `getStorageUsage`, `pkg/quota/v1/evaluator/core/persistent_volume_claims.go`.
fn storage(spec: &RawSpec, status: &RawStatus) -> Option<Quantity> {
    let requested = spec.resources.requests.get(STORAGE)?.rounded_up(0);
    let allocated = status.allocated_resources.get(STORAGE).filter(|allocated| **allocated > requested);
    Some(allocated.map_or(requested, |allocated| allocated.rounded_up(0)))
}
