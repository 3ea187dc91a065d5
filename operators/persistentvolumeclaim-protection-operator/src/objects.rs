//! The view of a PersistentVolumeClaim: its metadata. The view of a Pod is in [`pod`].

pub mod pod;

use serde::Deserialize;
use shared::api::object::Meta;
use shared::api::resource::PERSISTENT_VOLUME_CLAIMS;
use shared::controllers::protection::{Protected, Protection};

/// The finalizer of a PersistentVolumeClaim.
///
/// Upstream: `PVCProtectionFinalizer`, `pkg/volume/util/finalizer.go`.
pub const PROTECTION: Protection =
    Protection { resource: PERSISTENT_VOLUME_CLAIMS, finalizer: "kubernetes.io/pvc-protection", adds: true };

/// A PersistentVolumeClaim by its metadata.
#[derive(Debug, PartialEq, Deserialize)]
pub struct PersistentVolumeClaim {
    pub metadata: Meta,
}

shared::view!(PersistentVolumeClaim, PERSISTENT_VOLUME_CLAIMS);

impl Protected for PersistentVolumeClaim {
    const PROTECTION: Protection = PROTECTION;
}
