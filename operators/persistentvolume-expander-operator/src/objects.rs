//! The views of a PersistentVolumeClaim, which is followed, and of its PersistentVolume, which is read live.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use shared::api::csi_translation::InTreePlugin;
use shared::api::object::{Meta, Uid, null_as_default};
use shared::api::quantity::Quantity;
use shared::api::resource::{PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES};

/// The annotation of a claim that names who expands its volume.
///
/// Upstream: `VolumeResizerKey`, `pkg/volume/util/types/types.go`.
pub const RESIZER: &str = "volume.kubernetes.io/storage-resizer";

/// Upstream: `ExternalExpanding`, `pkg/controller/volume/events/event.go`.
pub const EXTERNAL_EXPANDING: &str = "ExternalExpanding";

#[derive(Debug, PartialEq, Deserialize)]
pub struct PersistentVolumeClaim {
    pub metadata: Meta<Annotations>,
    #[serde(default)]
    pub spec: ClaimSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: ClaimStatus,
}

shared::view!(PersistentVolumeClaim, PERSISTENT_VOLUME_CLAIMS, Annotations);

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Annotations {
    #[serde(rename = "volume.kubernetes.io/storage-resizer")]
    pub resizer: Option<Box<str>>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimSpec {
    pub volume_name: String,
    pub resources: ClaimResources,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ClaimResources {
    #[serde(deserialize_with = "null_as_default")]
    pub requests: Size,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ClaimStatus {
    pub phase: String,
    #[serde(deserialize_with = "null_as_default")]
    pub capacity: Size,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Size {
    pub storage: Quantity,
}

impl PersistentVolumeClaim {
    pub fn is_bound(&self) -> bool {
        self.status.phase == "Bound"
    }

    pub const fn requested(&self) -> Quantity {
        self.spec.resources.requests.storage
    }

    pub const fn provided(&self) -> Quantity {
        self.status.capacity.storage
    }

    pub fn is_to_grow(&self) -> bool {
        self.requested() > self.provided()
    }
}

#[derive(Debug, Deserialize)]
pub struct PersistentVolume {
    pub metadata: Meta,
    #[serde(default)]
    spec: VolumeSpec,
}

shared::view!(PersistentVolume, PERSISTENT_VOLUMES);

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct VolumeSpec {
    claim_ref: Option<ClaimReference>,
    /// The other fields; one of them is the volume's source.
    #[serde(flatten)]
    others: BTreeMap<String, Option<IgnoredAny>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ClaimReference {
    namespace: String,
    uid: Uid,
}

impl PersistentVolume {
    pub fn is_bound_to(&self, claim: &PersistentVolumeClaim) -> bool {
        let PersistentVolumeClaim { metadata, .. } = claim;
        let is_it = |of: &ClaimReference| of.namespace == metadata.namespace() && of.uid == metadata.uid;
        self.spec.claim_ref.as_ref().is_some_and(is_it)
    }

    pub fn in_tree_plugin(&self) -> Option<InTreePlugin> {
        InTreePlugin::of_volume(|field| self.spec.others.get(field).is_some_and(Option::is_some))
    }
}
