//! The view of a PersistentVolumeClaim.

use serde::Deserialize;
use serde::de::IgnoredAny;
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::quantity::Quantity;
use shared::api::resource::PERSISTENT_VOLUME_CLAIMS;
use shared::api::selector::LabelSelector;

use super::{AccessModes, Capacity, VolumeMode, name_of_class};

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct PersistentVolumeClaim {
    pub metadata: Meta<ClaimAnnotations>,
    #[serde(default)]
    pub spec: ClaimSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: ClaimStatus,
}

shared::view!(PersistentVolumeClaim, PERSISTENT_VOLUME_CLAIMS, ClaimAnnotations);

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ClaimAnnotations {
    #[serde(rename = "pv.kubernetes.io/bind-completed")]
    bind_completed: Option<IgnoredAny>,
    #[serde(rename = "pv.kubernetes.io/bound-by-controller")]
    bound_by_controller: Option<IgnoredAny>,
    #[serde(rename = "pv.kubernetes.io/migrated-to")]
    pub migrated_to: Option<Box<str>>,
    #[serde(rename = "volume.kubernetes.io/selected-node")]
    pub selected_node: Option<Text>,
    #[serde(rename = "volume.kubernetes.io/storage-provisioner")]
    pub provisioner: Option<Box<str>>,
    #[serde(rename = "volume.beta.kubernetes.io/storage-provisioner")]
    pub beta_provisioner: Option<Box<str>>,
    #[serde(rename = "volume.beta.kubernetes.io/storage-class")]
    beta_class: Option<Text>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimSpec {
    /// The volume that its user or a controller has chosen; `""` if none.
    pub volume_name: Text,
    storage_class_name: Option<Text>,
    #[serde(deserialize_with = "null_as_default")]
    pub access_modes: AccessModes,
    #[serde(deserialize_with = "null_as_default")]
    resources: Resources,
    pub selector: Option<LabelSelector>,
    pub volume_mode: Option<VolumeMode>,
    volume_attributes_class_name: Option<Text>,
    data_source: Option<IgnoredAny>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Resources {
    #[serde(deserialize_with = "null_as_default")]
    requests: Capacity,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimStatus {
    pub phase: Text,
    pub access_modes: Option<AccessModes>,
    pub capacity: Option<Capacity>,
    pub current_volume_attributes_class_name: Option<Text>,
}

impl PersistentVolumeClaim {
    pub fn is_bind_completed(&self) -> bool {
        self.metadata.annotations.bind_completed.is_some()
    }

    pub fn is_bound_by_controller(&self) -> bool {
        self.metadata.annotations.bound_by_controller.is_some()
    }

    /// Whether a volume is still to be found for it.
    pub fn needs_volume(&self) -> bool {
        !self.is_bind_completed() && self.spec.volume_name.is_empty()
    }

    /// Upstream: `PersistentVolumeClaimHasClass`, `k8s.io/component-helpers/storage/volume/helpers.go`.
    pub fn has_class(&self) -> bool {
        self.metadata.annotations.beta_class.is_some() || self.spec.storage_class_name.is_some()
    }

    /// `""` if it asks for volumes without a class, or for none.
    ///
    /// Upstream: `GetPersistentVolumeClaimClass`.
    pub fn class(&self) -> &Text {
        name_of_class(self.metadata.annotations.beta_class.as_ref(), self.spec.storage_class_name.as_ref())
    }

    pub fn requested(&self) -> Quantity {
        self.spec.resources.requests.storage.unwrap_or_default()
    }

    /// `""` if none.
    pub fn attributes_class(&self) -> &str {
        self.spec.volume_attributes_class_name.as_deref().unwrap_or_default()
    }

    pub fn volume_mode(&self) -> VolumeMode {
        self.spec.volume_mode.clone().unwrap_or_default()
    }

    pub fn has_data_source(&self) -> bool {
        self.spec.data_source.is_some()
    }
}
