//! The views of what a binding is made of: claims, volumes, StorageClasses, and pods that wait for claims; and of the pods
//! that empty volumes.

pub mod claim;
pub mod recycler;
pub mod volume;

use std::fmt;
use std::sync::LazyLock;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use shared::api::intern::Text;
use shared::api::names::ephemeral_claim_name;
use shared::api::object::{Key, Meta};
use shared::api::quantity::Quantity;
use shared::api::resource::{PODS, Resource};

/// `storage.k8s.io/v1` `StorageClass`.
pub const STORAGE_CLASSES: Resource =
    Resource::cluster_scoped("storage.k8s.io", "v1", "StorageClass", "storageclasses");

/// On a claim whose binding is complete. Its value does not matter.
///
/// Upstream: `AnnBindCompleted`, `k8s.io/component-helpers/storage/volume/pv_helpers.go`, as are those that follow.
pub const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// On a claim or a volume that was bound by a controller, and not by its user.
pub const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// On a claim or a volume that a CSI driver takes care of in place of an in-tree plugin.
pub const MIGRATED_TO: &str = "pv.kubernetes.io/migrated-to";
/// On a claim for which a volume is to be provisioned: by whom.
pub const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
pub const BETA_STORAGE_PROVISIONER: &str = "volume.beta.kubernetes.io/storage-provisioner";
/// On a volume that an in-tree plugin provisioned, until what is behind it is gone.
///
/// Upstream: `PVDeletionInTreeProtectionFinalizer`.
pub const IN_TREE_FINALIZER: &str = "kubernetes.io/pv-controller";
/// Upstream: `PVDeletionProtectionFinalizer`.
pub const EXTERNAL_FINALIZER: &str = "external-provisioner.volume.kubernetes.io/finalizer";

/// The access modes of a claim or a volume, as they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AccessModes(Box<[Text]>);

/// In upstream's order.
const ACCESS_MODES: [&str; 4] = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"];

impl AccessModes {
    /// Upstream: `ContainsAllAccessModes`, `pkg/volume/util/util.go`, and `CheckAccessModes`.
    pub fn contain(&self, requested: &Self) -> bool {
        requested.0.iter().all(|mode| self.0.contains(mode))
    }

    /// The rank among sets of modes: those with fewer modes come first.
    ///
    /// Upstream: `byAccessModes`, `pkg/controller/volume/persistentvolume/index.go`.
    pub fn rank(&self) -> (u32, u8) {
        let is_there = |mode: &&str| self.0.iter().any(|other| *other == **mode);
        let set = ACCESS_MODES.iter().rev().fold(0, |set, mode| (set << 1) | u8::from(is_there(mode)));
        (set.count_ones(), set)
    }
}

impl fmt::Display for AccessModes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

/// Of the resources only `storage` counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Capacity {
    pub storage: Option<Quantity>,
}

/// `Filesystem` if it is not said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VolumeMode(Text);

impl Default for VolumeMode {
    fn default() -> Self {
        Self(Text::new("Filesystem"))
    }
}

impl fmt::Display for VolumeMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

static NO_CLASS: LazyLock<Text> = LazyLock::new(Text::default);

/// The beta annotation, where there is one, is what counts.
fn name_of_class<'a>(beta: Option<&'a Text>, class: Option<&'a Text>) -> &'a Text {
    beta.or(class).unwrap_or(&NO_CLASS)
}

/// Upstream: `storage/v1` `StorageClass`.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StorageClass {
    pub metadata: Meta<ClassAnnotations>,
    #[serde(default)]
    pub provisioner: Box<str>,
    #[serde(default)]
    pub volume_binding_mode: Option<Box<str>>,
    #[serde(default)]
    pub mount_options: Option<Box<[Box<str>]>>,
}

shared::view!(StorageClass, STORAGE_CLASSES, ClassAnnotations);

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ClassAnnotations {
    #[serde(rename = "storageclass.kubernetes.io/is-default-class")]
    is_default: Option<Box<str>>,
    #[serde(rename = "storageclass.beta.kubernetes.io/is-default-class")]
    beta_is_default: Option<Box<str>>,
}

impl StorageClass {
    /// Upstream: `IsDefaultAnnotation`, `pkg/volume/util/storageclass.go`.
    pub fn is_default(&self) -> bool {
        let ClassAnnotations { is_default, beta_is_default } = &self.metadata.annotations;
        [is_default, beta_is_default].into_iter().any(|value| value.as_deref() == Some("true"))
    }
}

/// A pod that has not ended and is on no node.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawPod")]
pub struct Pod {
    pub metadata: Meta,
    claims: Box<[Text]>,
}

shared::view!(Pod, PODS);

impl Pod {
    /// Upstream: `PodPVCIndexFunc`, `pkg/controller/volume/common/common.go`.
    pub fn claim_keys(&self) -> impl Iterator<Item = Key> {
        self.claims.iter().map(|name| Key::new(self.metadata.namespace(), name))
    }
}

#[derive(Deserialize)]
struct RawPod {
    metadata: Meta,
    #[serde(default)]
    spec: RawPodSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawPodSpec {
    volumes: Option<Vec<RawPodVolume>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPodVolume {
    #[serde(default)]
    name: String,
    persistent_volume_claim: Option<RawClaimSource>,
    ephemeral: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawClaimSource {
    #[serde(default)]
    claim_name: Text,
}

impl From<RawPod> for Pod {
    fn from(RawPod { metadata, spec }: RawPod) -> Self {
        let pod = metadata.name();
        let volumes = spec.volumes.unwrap_or_default();
        let claims = volumes.into_iter().filter_map(|volume| match volume {
            RawPodVolume { persistent_volume_claim: Some(source), .. } => Some(source.claim_name),
            RawPodVolume { name, ephemeral: Some(_), .. } => Some(Text::new(&ephemeral_claim_name(pod, &name))),
            RawPodVolume { .. } => None,
        });
        let claims = claims.collect();
        Self { metadata, claims }
    }
}
