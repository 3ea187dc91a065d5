//! The views of a PersistentVolume: its metadata, which are followed, and its phase and claim, which are read live.

use serde::Deserialize;
use shared::api::object::{Key, Meta, null_as_default};
use shared::api::resource::PERSISTENT_VOLUMES;
use shared::controllers::protection::Protection;

/// The finalizer of a PersistentVolume.
///
/// Upstream: `PVProtectionFinalizer`, `pkg/volume/util/finalizer.go`.
pub const PROTECTION: Protection =
    Protection { resource: PERSISTENT_VOLUMES, finalizer: "kubernetes.io/pv-protection", adds: true };

/// A PersistentVolume by its metadata.
#[derive(Debug, PartialEq, Deserialize)]
pub struct PersistentVolume {
    pub metadata: Meta,
}

shared::view!(PersistentVolume, PERSISTENT_VOLUMES);

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct LiveVolume {
    pub metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    pub spec: VolumeSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: VolumeStatus,
}

shared::view!(LiveVolume, PERSISTENT_VOLUMES);

impl LiveVolume {
    /// Upstream: `isBeingUsed`, `pkg/controller/volume/pvprotection/pv_protection_controller.go`.
    pub fn is_bound(&self) -> bool {
        self.status.phase == "Bound"
    }

    /// The claim that it names, bound or not.
    pub fn claim(&self) -> Option<Key> {
        self.spec.claim_ref.as_ref().map(|claim| Key::new(&claim.namespace, &claim.name))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeSpec {
    claim_ref: Option<ClaimReference>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct ClaimReference {
    namespace: String,
    name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct VolumeStatus {
    /// `Pending`, `Available`, `Bound`, `Released` or `Failed`; `""` if it has none yet.
    #[serde(deserialize_with = "null_as_default")]
    pub phase: String,
}
