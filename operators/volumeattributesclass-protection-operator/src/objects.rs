//! The views of a VolumeAttributesClass, and of the volumes and claims that name one.

use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::{PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, Resource};
use shared::controllers::protection::{Protected, Protection};

pub const VOLUME_ATTRIBUTES_CLASSES: Resource =
    Resource::cluster_scoped("storage.k8s.io", "v1", "VolumeAttributesClass", "volumeattributesclasses");

/// The finalizer of a VolumeAttributesClass.
///
/// Upstream: `VACProtectionFinalizer`, `pkg/volume/util/finalizer.go`.
pub const PROTECTION: Protection =
    Protection { resource: VOLUME_ATTRIBUTES_CLASSES, finalizer: "kubernetes.io/vac-protection", adds: true };

/// A VolumeAttributesClass by its metadata.
#[derive(Debug, PartialEq, Deserialize)]
pub struct VolumeAttributesClass {
    pub metadata: Meta,
}

shared::view!(VolumeAttributesClass, VOLUME_ATTRIBUTES_CLASSES);

impl Protected for VolumeAttributesClass {
    const PROTECTION: Protection = PROTECTION;
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "RawVolume")]
pub struct PersistentVolume {
    pub metadata: Meta,
    /// The class that it names.
    ///
    /// Upstream: `getPVReferencedVACNames`, `pkg/controller/volume/vacprotection/vac_protection_controller.go`.
    pub class: Option<Text>,
}

shared::view!(PersistentVolume, PERSISTENT_VOLUMES);

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "RawClaim")]
pub struct PersistentVolumeClaim {
    pub metadata: Meta,
    /// The classes that it names, each once: the one it asks for, the one it has, and the one it is changed to.
    ///
    /// Upstream: `getPVCReferencedVACNames`, `pkg/controller/volume/vacprotection/vac_protection_controller.go`.
    pub classes: Box<[Text]>,
}

shared::view!(PersistentVolumeClaim, PERSISTENT_VOLUME_CLAIMS);

#[derive(Deserialize)]
struct RawVolume {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
}

#[derive(Deserialize)]
struct RawClaim {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    volume_attributes_class_name: Option<Text>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus {
    current_volume_attributes_class_name: Option<Text>,
    modify_volume_status: Option<RawModification>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawModification {
    target_volume_attributes_class_name: Option<Text>,
}

/// An empty name is none.
fn named(class: Option<Text>) -> Option<Text> {
    class.filter(|class| !class.is_empty())
}

impl From<RawVolume> for PersistentVolume {
    fn from(RawVolume { metadata, spec }: RawVolume) -> Self {
        Self { metadata, class: named(spec.volume_attributes_class_name) }
    }
}

impl From<RawClaim> for PersistentVolumeClaim {
    fn from(RawClaim { metadata, spec, status }: RawClaim) -> Self {
        let target = status.modify_volume_status.and_then(|status| status.target_volume_attributes_class_name);
        let names = [spec.volume_attributes_class_name, status.current_volume_attributes_class_name, target];
        let mut classes: Vec<Text> = names.into_iter().filter_map(named).collect();
        classes.sort();
        classes.dedup();
        Self { metadata, classes: classes.into() }
    }
}
