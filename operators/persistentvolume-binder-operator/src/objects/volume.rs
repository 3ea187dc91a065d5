//! The view of a PersistentVolume.

use serde::Deserialize;
use serde::de::IgnoredAny;
use shared::api::intern::Text;
use shared::api::object::{Key, Meta, Uid, null_as_default};
use shared::api::quantity::Quantity;
use shared::api::resource::PERSISTENT_VOLUMES;
use shared::api::time::Time;

use super::claim::PersistentVolumeClaim;
use super::{AccessModes, Capacity, VolumeMode, name_of_class};

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct PersistentVolume {
    pub metadata: Meta<VolumeAnnotations>,
    #[serde(default)]
    pub spec: VolumeSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: VolumeStatus,
}

shared::view!(PersistentVolume, PERSISTENT_VOLUMES, VolumeAnnotations);

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct VolumeAnnotations {
    #[serde(rename = "pv.kubernetes.io/bound-by-controller")]
    bound_by_controller: Option<IgnoredAny>,
    #[serde(rename = "pv.kubernetes.io/provisioned-by")]
    pub provisioned_by: Option<Box<str>>,
    #[serde(rename = "pv.kubernetes.io/migrated-to")]
    pub migrated_to: Option<Box<str>>,
    #[serde(rename = "volume.beta.kubernetes.io/storage-class")]
    beta_class: Option<Text>,
    /// The size before its last expansion, until its file system has grown too.
    #[serde(rename = "volume.alpha.kubernetes.io/pre-resize-capacity")]
    pub pre_resize_capacity: Option<Box<str>>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeSpec {
    #[serde(deserialize_with = "null_as_default")]
    capacity: Capacity,
    #[serde(deserialize_with = "null_as_default")]
    pub access_modes: AccessModes,
    pub claim_ref: Option<ClaimReference>,
    #[serde(rename = "persistentVolumeReclaimPolicy")]
    pub reclaim_policy: Text,
    storage_class_name: Option<Text>,
    volume_mode: Option<VolumeMode>,
    pub volume_attributes_class_name: Option<Text>,
    csi: Option<Csi>,
    pub host_path: Option<HostPath>,
    pub nfs: Option<Nfs>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct HostPath {
    pub path: Box<str>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Csi {
    driver: Text,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Nfs {
    pub server: Box<str>,
    pub path: Box<str>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct VolumeStatus {
    phase: Text,
    last_phase_transition_time: Option<Time>,
}

/// The in-tree plugins that are left in this controller.
pub const HOST_PATH: &str = "kubernetes.io/host-path";
pub const NFS: &str = "kubernetes.io/nfs";

/// The claim that a volume is bound to, or reserved for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "RawReference")]
pub struct ClaimReference {
    pub key: Key,
    /// None while the volume is only reserved for a claim of this name.
    pub uid: Option<Uid>,
}

#[derive(Deserialize)]
struct RawReference {
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    uid: Option<String>,
}

impl From<RawReference> for ClaimReference {
    fn from(RawReference { namespace, name, uid }: RawReference) -> Self {
        let uid = uid.filter(|uid| !uid.is_empty()).map(|uid| Uid::parse(&uid));
        Self { key: Key::new(&namespace, &name), uid }
    }
}

impl PersistentVolume {
    pub fn is_bound_by_controller(&self) -> bool {
        self.metadata.annotations.bound_by_controller.is_some()
    }

    /// `""` if none.
    ///
    /// Upstream: `GetPersistentVolumeClass`, `k8s.io/component-helpers/storage/volume/helpers.go`.
    pub fn class(&self) -> &Text {
        name_of_class(self.metadata.annotations.beta_class.as_ref(), self.spec.storage_class_name.as_ref())
    }

    pub const fn storage(&self) -> Option<Quantity> {
        self.spec.capacity.storage
    }

    pub fn capacity(&self) -> Quantity {
        self.storage().unwrap_or_default()
    }

    /// `""` if none.
    pub fn attributes_class(&self) -> &str {
        self.spec.volume_attributes_class_name.as_deref().unwrap_or_default()
    }

    pub fn volume_mode(&self) -> VolumeMode {
        self.spec.volume_mode.clone().unwrap_or_default()
    }

    pub fn phase(&self) -> &Text {
        &self.status.phase
    }

    /// Since when it is in its phase.
    pub const fn phase_since(&self) -> Option<Time> {
        self.status.last_phase_transition_time
    }

    /// Whether its claim is known to be gone.
    pub fn is_given_back(&self) -> bool {
        self.status.phase == "Released" || self.status.phase == "Failed"
    }

    /// The driver that has taken over from its in-tree plugin.
    pub fn migrated_to(&self) -> Option<&str> {
        self.metadata.annotations.migrated_to.as_deref().filter(|driver| !driver.is_empty())
    }

    /// Whether a pod is to empty it, as far as it says itself.
    pub fn is_recycled(&self) -> bool {
        let is_in_tree = self.plugin().is_some() && self.migrated_to().is_none();
        is_in_tree && self.is_given_back() && self.spec.reclaim_policy == "Recycle"
    }

    /// Upstream: `IsVolumeBoundToClaim`, `k8s.io/component-helpers/storage/volume/pv_helpers.go`.
    pub fn is_bound_to(&self, claim: &PersistentVolumeClaim) -> bool {
        let metadata = &claim.metadata;
        let is_it = |of: &ClaimReference| of.key == metadata.key && of.uid.is_none_or(|uid| uid == metadata.uid);
        self.spec.claim_ref.as_ref().is_some_and(is_it)
    }

    pub fn csi_driver(&self) -> Option<&str> {
        self.spec.csi.as_ref().map(|csi| &*csi.driver)
    }

    pub const fn is_nfs(&self) -> bool {
        self.spec.nfs.is_some()
    }

    /// Its in-tree plugin, if that is one of those that this controller has.
    pub fn plugin(&self) -> Option<&'static str> {
        if self.spec.host_path.is_some() {
            Some(HOST_PATH)
        } else if self.is_nfs() {
            Some(NFS)
        } else {
            None
        }
    }

    /// The class without regard to the annotation.
    pub fn spec_class(&self) -> &Text {
        name_of_class(None, self.spec.storage_class_name.as_ref())
    }
}
