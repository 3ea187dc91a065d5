//! The source of a volume: the disk or share that several pods may use, by upstream's unique name of it.

use serde::Deserialize;
use serde_json::value::RawValue;
use shared::api::csi_translation::{InlineVolume, persistent_volume};
use shared::api::intern::Text;
use shared::api::kept::Digest;
use shared::api::object::{Key, Meta, Uid, null_as_default};

use super::PERSISTENT_VOLUMES;

/// A name above this many bytes is replaced by its digest.
const NAME_BYTES_MAX: usize = 1024;

/// A volume that a kubelet may mount with a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Upstream: `GetUniqueVolumeNameFromSpec`, `pkg/volume/util/util.go`.
    pub name: Text,
    /// Its CSI driver, whose CSIDriver says whether it mounts with a label. Volumes of other plugins always are.
    pub driver: Option<Text>,
}

impl Disk {
    fn new(plugin: &str, name: &str, driver: Option<Text>) -> Self {
        let name = format!("kubernetes.io/{plugin}/{name}");
        let name = if name.len() <= NAME_BYTES_MAX { name } else { format!("{:?}", Digest::of(&name)) };
        Self { name: Text::new(&name), driver }
    }

    /// Upstream: `GetVolumeName`, `pkg/volume/csi/csi_plugin.go`.
    fn of_driver(driver: &str, handle: &str) -> Self {
        Self::new("csi", &format!("{driver}^{handle}"), Some(Text::new(driver)))
    }
}

impl From<InlineVolume> for Disk {
    fn from(volume: InlineVolume) -> Self {
        Self::of_driver(volume.driver(), volume.volume_handle())
    }
}

/// `v1` `ISCSIVolumeSource` and `ISCSIPersistentVolumeSource`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Iscsi {
    target_portal: Box<str>,
    iqn: Box<str>,
    lun: i32,
}

impl From<Iscsi> for Disk {
    /// Upstream: `GetVolumeName`, `pkg/volume/iscsi/iscsi.go`.
    fn from(Iscsi { target_portal, iqn, lun }: Iscsi) -> Self {
        Self::new("iscsi", &format!("{target_portal}:{iqn}:{lun}"), None)
    }
}

/// `v1` `FCVolumeSource`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct FibreChannel {
    #[serde(rename = "targetWWNs", deserialize_with = "null_as_default")]
    target_wwns: Vec<Box<str>>,
    lun: Option<i32>,
    #[serde(deserialize_with = "null_as_default")]
    wwids: Vec<Box<str>>,
}

impl FibreChannel {
    /// None if it names no disk, which the apiserver refuses.
    ///
    /// Upstream: `GetVolumeName`, `pkg/volume/fc/fc.go`.
    pub(super) fn disk(&self) -> Option<Disk> {
        let name = match (&*self.target_wwns, self.lun, &*self.wwids) {
            (wwns @ [_, ..], Some(lun), _) => format!("[{}]:{lun}", wwns.join(" ")),
            (_, _, wwids @ [_, ..]) => format!("[{}]", wwids.join(" ")),
            _ => return None,
        };
        Some(Disk::new("fc", &name, None))
    }
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(try_from = "Box<RawValue>")]
pub struct PersistentVolume {
    pub metadata: Meta,
    /// The claim that it is bound to.
    pub claim: Option<(Key, Uid)>,
    pub source: Source,
}

shared::view!(PersistentVolume, PERSISTENT_VOLUMES);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Disk(Disk),
    /// No kubelet mounts it with a label.
    Other,
    /// It is of an in-tree plugin, and not what the plugin's driver takes.
    Invalid(Box<str>),
}

#[derive(Deserialize)]
struct Raw {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    claim_ref: Option<RawClaim>,
    csi: Option<RawCsi>,
    iscsi: Option<Iscsi>,
    fc: Option<FibreChannel>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawClaim {
    namespace: String,
    name: String,
    uid: Option<Uid>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawCsi {
    driver: String,
    volume_handle: String,
}

impl TryFrom<Box<RawValue>> for PersistentVolume {
    type Error = serde_json::Error;

    fn try_from(json: Box<RawValue>) -> Result<Self, serde_json::Error> {
        let translated = persistent_volume(&json);
        let Raw { metadata, spec } = serde_json::from_str(translated.as_deref().unwrap_or(&json).get())?;
        let RawSpec { claim_ref, csi, iscsi, fc } = spec;
        let claim = claim_ref.and_then(|claim| Some((Key::new(&claim.namespace, &claim.name), claim.uid?)));
        let csi = csi.map(|csi| Disk::of_driver(&csi.driver, &csi.volume_handle));
        let disk = csi.or_else(|| iscsi.map(Disk::from)).or_else(|| fc.and_then(|fc| fc.disk()));
        let source = match translated {
            Ok(_) => disk.map_or(Source::Other, Source::Disk),
            Err(error) => Source::Invalid(error.to_string().into()),
        };
        Ok(Self { metadata, claim, source })
    }
}
