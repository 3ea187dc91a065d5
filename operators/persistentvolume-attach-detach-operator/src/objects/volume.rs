//! The names of volumes, and the view of a PersistentVolume: how it is attached, and for which claim.

use std::fmt;
use std::sync::Arc;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use shared::api::csi_translation::{self, IN_TREE_PLUGINS, InlineVolume};
use shared::api::hash::sha256_hex;
use shared::api::intern::Text;
use shared::api::object::{Key, Meta, Uid, null_as_default};
use shared::api::resource::PERSISTENT_VOLUMES;
use shared::api::volume_name::{
    CSI_PLUGIN, CSI_SEPARATOR, CsiSource, FC_PLUGIN, FcSource, ISCSI_PLUGIN, IscsiSource, csi_volume,
};

/// What a key escapes: a slash would end its namespace.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'/').add(b'%');

/// The unique name of a volume, as the status of a node has it: `kubernetes.io/csi/ebs.csi.aws.com^vol-1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct VolumeName(Text);

/// The plugin of a volume, by its unique name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plugin<'a> {
    Csi {
        driver: &'a str,
        handle: &'a str,
    },
    /// `fc` or `iscsi`: the node attaches it by itself, once its status says that it may.
    OfNode(&'a str),
    /// One that this build does not know.
    Other,
}

impl VolumeName {
    pub fn new(text: &str) -> Self {
        Self(Text::new(text))
    }

    pub fn csi(driver: &str, handle: &str) -> Self {
        Self::new(&csi_volume(driver, handle))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn text(&self) -> &Text {
        &self.0
    }

    /// Upstream: `SplitUniqueName`, `pkg/volume/util/util.go`.
    pub fn plugin(&self) -> Plugin<'_> {
        let of = |plugin: &str| self.0.strip_prefix(plugin)?.strip_prefix('/');
        if let Some((driver, handle)) = of(CSI_PLUGIN).and_then(|name| name.split_once(CSI_SEPARATOR)) {
            return Plugin::Csi { driver, handle };
        }
        let of_node = [FC_PLUGIN, ISCSI_PLUGIN].into_iter().find(|plugin| of(plugin).is_some());
        of_node.map_or(Plugin::Other, Plugin::OfNode)
    }

    /// Whether a pod's own spec can define it.
    pub fn may_be_inline(&self) -> bool {
        match self.plugin() {
            Plugin::Csi { driver, handle: _ } => IN_TREE_PLUGINS.iter().any(|plugin| plugin.driver == driver),
            Plugin::OfNode(_) => true,
            Plugin::Other => false,
        }
    }

    /// The plugin and, of a CSI volume, its driver.
    ///
    /// Upstream: `GetFullQualifiedPluginNameForVolume`, `pkg/volume/util/metrics.go`.
    pub fn plugin_name(&self) -> Option<String> {
        match self.plugin() {
            Plugin::Csi { driver, handle: _ } => Some(format!("{CSI_PLUGIN}:{driver}")),
            Plugin::OfNode(plugin) => Some(plugin.to_owned()),
            Plugin::Other => None,
        }
    }

    /// The name of the VolumeAttachment for this node; none for a volume that is attached without one.
    ///
    /// Upstream: `getAttachmentName`, `pkg/volume/csi/csi_attacher.go`.
    pub fn attachment(&self, node: &str) -> Option<Key> {
        let Plugin::Csi { driver, handle } = self.plugin() else { return None };
        Some(Key::new("", &format!("csi-{}", sha256_hex(&format!("{handle}{driver}{node}")))))
    }

    /// The key under which it is synced.
    pub fn key(&self) -> Key {
        Key::new("", &utf8_percent_encode(&self.0, ESCAPED).to_string())
    }

    pub fn of_key(key: &Key) -> Self {
        Self::new(&percent_decode_str(key.as_str()).decode_utf8_lossy())
    }
}

impl fmt::Display for VolumeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, PartialEq)]
pub struct PersistentVolume {
    pub metadata: Meta,
    /// The claim that it is bound to, or kept for.
    pub claim: Option<Claim>,
    /// None if it cannot be attached.
    pub spec: Option<Arc<Spec>>,
}

shared::view!(PersistentVolume, PERSISTENT_VOLUMES);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub key: Key,
    pub uid: Uid,
}

/// How a volume is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    pub volume: VolumeName,
    /// The PersistentVolume, as events name it.
    pub name: Text,
    /// Whether several nodes may have it.
    ///
    /// Upstream: `IsMultiAttachAllowed`, `pkg/volume/util/util.go`.
    pub allows_multi_attach: bool,
    /// The volume of a pod's own spec, as its driver's; none of a PersistentVolume, and of one that its node attaches.
    pub inline: Option<InlineVolume>,
}

/// A longer name is no volume's: of a tenant it would fill caches and the status of a node.
const NAME_BYTES_MAX: usize = 4096;

impl Spec {
    fn new(
        volume: VolumeName,
        name: Text,
        allows_multi_attach: bool,
        inline: Option<InlineVolume>,
    ) -> Option<Arc<Self>> {
        let is_name = volume.0.len() <= NAME_BYTES_MAX;
        is_name.then(|| Arc::new(Self { volume, name, allows_multi_attach, inline }))
    }

    /// A volume of a pod's own spec whose in-tree plugin a CSI driver has replaced.
    pub(super) fn inline(inline: InlineVolume) -> Option<Arc<Self>> {
        let volume = VolumeName::csi(inline.driver(), inline.volume_handle());
        let (name, allows_multi_attach) = (Text::new(&inline.name), is_for_many(inline.access_mode()));
        Self::new(volume, name, allows_multi_attach, Some(inline))
    }

    /// A volume of a pod's own spec that its node attaches. Nothing says whether several nodes may have it.
    pub(super) fn of_node(volume: &str, name: Text) -> Option<Arc<Self>> {
        Self::new(VolumeName::new(volume), name, true, None)
    }
}

#[derive(Deserialize)]
struct RawVolume {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    claim_ref: Option<RawClaimRef>,
    #[serde(deserialize_with = "null_as_default")]
    access_modes: Vec<Text>,
    csi: Option<CsiSource>,
    fc: Option<FcSource>,
    iscsi: Option<IscsiSource>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawClaimRef {
    #[serde(deserialize_with = "null_as_default")]
    namespace: Text,
    #[serde(deserialize_with = "null_as_default")]
    name: Text,
    #[serde(deserialize_with = "null_as_default")]
    uid: Uid,
}

/// Whether access modes allow several nodes. Without any mode nothing is known, and the driver decides.
fn allows_multi_attach(access_modes: &[Text]) -> bool {
    access_modes.is_empty() || access_modes.iter().any(|mode| is_for_many(mode))
}

fn is_for_many(access_mode: &str) -> bool {
    ["ReadWriteMany", "ReadOnlyMany"].contains(&access_mode)
}

impl From<RawVolume> for PersistentVolume {
    fn from(RawVolume { metadata, spec }: RawVolume) -> Self {
        let RawSpec { claim_ref, access_modes, csi, fc, iscsi } = spec;
        let csi = csi.map(|csi| csi.volume());
        let volume = csi.or_else(|| fc?.volume()).or_else(|| iscsi.map(|iscsi| iscsi.volume()));
        let spec = volume.and_then(|volume| {
            let allows_multi_attach = allows_multi_attach(&access_modes);
            Spec::new(VolumeName::new(&volume), Text::new(metadata.name()), allows_multi_attach, None)
        });
        let claim =
            claim_ref.map(|RawClaimRef { namespace, name, uid }| Claim { key: Key::new(&namespace, &name), uid });
        Self { metadata, claim, spec }
    }
}

/// A volume whose in-tree plugin a CSI driver has replaced is read as the driver's. If it cannot be, it cannot be attached.
///
/// Upstream: `translateInTreeSpecToCSIOnNodeIfNeeded`, `pkg/controller/volume/attachdetach/util/util.go`.
impl<'de> Deserialize<'de> for PersistentVolume {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        let translated = csi_translation::persistent_volume(&json);
        let text = translated.as_ref().map_or(json.get(), |translated| translated.get());
        serde_json::from_str::<RawVolume>(text).map(Self::from).map_err(D::Error::custom)
    }
}
