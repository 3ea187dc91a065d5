//! The views of claims, CSI drivers and VolumeAttachments. Those of volumes, pods and nodes have files of their own.

pub mod node;
pub mod pod;
pub mod volume;

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::{CSI_DRIVERS, PERSISTENT_VOLUME_CLAIMS, Resource};
use shared::api::time::Time;
use shared::api::volume_name::CsiSource;

use volume::VolumeName;

/// `storage.k8s.io/v1` `VolumeAttachment`.
pub const VOLUME_ATTACHMENTS: Resource =
    Resource::cluster_scoped("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments");

const BOUND: &str = "Bound";

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawClaim")]
pub struct PersistentVolumeClaim {
    pub metadata: Meta,
    /// The volume that it is bound to; `""` for none.
    pub volume: Text,
}

shared::view!(PersistentVolumeClaim, PERSISTENT_VOLUME_CLAIMS);

#[derive(Deserialize)]
struct RawClaim {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawClaimSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawClaimStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawClaimSpec {
    #[serde(deserialize_with = "null_as_default")]
    volume_name: Text,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawClaimStatus {
    #[serde(deserialize_with = "null_as_default")]
    phase: Text,
}

/// Upstream: `getPVCFromCache`, `pkg/controller/volume/attachdetach/util/util.go`.
impl From<RawClaim> for PersistentVolumeClaim {
    fn from(RawClaim { metadata, spec, status }: RawClaim) -> Self {
        let is_bound = *status.phase == *BOUND;
        Self { metadata, volume: if is_bound { spec.volume_name } else { Text::default() } }
    }
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawDriver")]
pub struct CsiDriver {
    pub metadata: Meta,
    pub requires_attach: bool,
}

shared::view!(CsiDriver, CSI_DRIVERS);

#[derive(Deserialize)]
struct RawDriver {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawDriverSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawDriverSpec {
    attach_required: Option<bool>,
}

impl From<RawDriver> for CsiDriver {
    fn from(RawDriver { metadata, spec }: RawDriver) -> Self {
        Self { metadata, requires_attach: spec.attach_required.unwrap_or(true) }
    }
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawAttachment")]
pub struct VolumeAttachment {
    pub metadata: Meta,
    pub node: Text,
    pub source: Source,
    pub is_attached: bool,
    pub attach_error: Option<VolumeError>,
    pub detach_error: Option<VolumeError>,
}

shared::view!(VolumeAttachment, VOLUME_ATTACHMENTS);

/// The volume of a VolumeAttachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    PersistentVolume(Text),
    /// A volume in a pod's own spec, of a plugin that a CSI driver has replaced.
    Inline(VolumeName),
    None,
}

/// The last failure that the driver's attacher reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct VolumeError {
    #[serde(deserialize_with = "message")]
    pub message: Box<str>,
    pub time: Option<Time>,
}

/// A driver may report anything, and a cache keeps so much of it.
const MESSAGE_BYTES_MAX: usize = 1024;

fn message<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<str>, D::Error> {
    let text: Cow<'de, str> = null_as_default(deserializer)?;
    let end = text.floor_char_boundary(MESSAGE_BYTES_MAX);
    Ok(Box::from(&text[..end]))
}

#[derive(Deserialize)]
struct RawAttachment {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawAttachmentSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawAttachmentStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawAttachmentSpec {
    #[serde(deserialize_with = "null_as_default")]
    node_name: Text,
    #[serde(deserialize_with = "null_as_default")]
    source: RawSource,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSource {
    persistent_volume_name: Option<Text>,
    inline_volume_spec: Option<RawInline>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawInline {
    csi: Option<CsiSource>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawAttachmentStatus {
    #[serde(deserialize_with = "null_as_default")]
    attached: bool,
    attach_error: Option<VolumeError>,
    detach_error: Option<VolumeError>,
}

impl From<RawAttachment> for VolumeAttachment {
    fn from(RawAttachment { metadata, spec, status }: RawAttachment) -> Self {
        let RawSource { persistent_volume_name, inline_volume_spec } = spec.source;
        let inline = || inline_volume_spec?.csi.map(|csi| Source::Inline(VolumeName::new(&csi.volume())));
        let source = persistent_volume_name.map(Source::PersistentVolume).or_else(inline).unwrap_or(Source::None);
        let RawAttachmentStatus { attached, attach_error, detach_error } = status;
        Self { metadata, node: spec.node_name, source, is_attached: attached, attach_error, detach_error }
    }
}
