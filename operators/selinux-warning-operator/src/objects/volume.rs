//! The source of a volume: the disk or share that several pods may use, by upstream's unique name of it.

use serde::Deserialize;
use serde_json::value::RawValue;
use shared::api::csi_translation::{InlineVolume, persistent_volume};
use shared::api::intern::Text;
use shared::api::kept::Digest;
use shared::api::object::{Key, Meta, Uid, null_as_default};
use shared::api::resource::PERSISTENT_VOLUMES;
use shared::api::volume_name::{CsiSource, FcSource, IscsiSource, csi_volume};

/// A name above this many bytes is replaced by its digest.
const NAME_BYTES_MAX: usize = 1024;

/// A volume that a kubelet may mount with a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    pub name: Text,
    /// Its CSI driver, whose CSIDriver says whether it mounts with a label. Volumes of other plugins always are.
    pub driver: Option<Text>,
}

impl Disk {
    fn new(name: &str, driver: Option<&str>) -> Self {
        Self { name: Text::new(&Digest::abridge(name, NAME_BYTES_MAX)), driver: driver.map(Text::new) }
    }

    /// A volume of a plugin that nodes attach by themselves.
    pub(super) fn of_node(name: &str) -> Self {
        Self::new(name, None)
    }
}

impl From<InlineVolume> for Disk {
    fn from(volume: InlineVolume) -> Self {
        Self::new(&csi_volume(volume.driver(), volume.volume_handle()), Some(volume.driver()))
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
    csi: Option<CsiSource>,
    iscsi: Option<IscsiSource>,
    fc: Option<FcSource>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawClaim {
    namespace: String,
    name: String,
    uid: Option<Uid>,
}

impl TryFrom<Box<RawValue>> for PersistentVolume {
    type Error = serde_json::Error;

    fn try_from(json: Box<RawValue>) -> Result<Self, serde_json::Error> {
        let translated = persistent_volume(&json);
        let Raw { metadata, spec } = serde_json::from_str(translated.as_deref().unwrap_or(&json).get())?;
        let RawSpec { claim_ref, csi, iscsi, fc } = spec;
        let claim = claim_ref.and_then(|claim| Some((Key::new(&claim.namespace, &claim.name), claim.uid?)));
        let csi = csi.map(|csi| Disk::new(&csi.volume(), Some(&csi.driver)));
        let of_node = || fc.and_then(|fc| fc.volume()).or_else(|| iscsi.map(|iscsi| iscsi.volume()));
        let disk = csi.or_else(|| of_node().map(|name| Disk::of_node(&name)));
        let source = match translated {
            Ok(_) => disk.map_or(Source::Other, Source::Disk),
            Err(error) => Source::Invalid(error.to_string().into()),
        };
        Ok(Self { metadata, claim, source })
    }
}
