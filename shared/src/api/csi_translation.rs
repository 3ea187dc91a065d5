//! The in-tree volume plugins that CSI drivers have replaced, and their volumes as the drivers' volumes.
//!
//! Migration of each plugin is on and complete in Kubernetes 1.36, and cannot be turned off: a volume is migrated if
//! it has the source of such a plugin. kube-controller-manager's controllers call these functions of upstream, and no
//! others:
//!
//! | upstream | here | for |
//! |---|---|---|
//! | `GetInTreePluginNameFromSpec`, `IsMigratable` | [`InTreePlugin::of_volume`] | attach-detach, expander |
//! | `IsMigrationEnabledForPlugin`, `GetCSINameFromInTreeName` | [`InTreePlugin::named`] | binder, expander |
//! | `TranslateInTreePVToCSI` | [`persistent_volume`] | attach-detach, selinux-warning |
//! | `TranslateInTreeInlineVolumeToCSI` | [`InTreeSource::inline`] | attach-detach, selinux-warning |
//!
//! Left out: StorageClasses, volumes of drivers as in-tree ones, and the repair of volume handles, which are for
//! external provisioners and attachers.
//!
//! Upstream: `k8s.io/csi-translation-lib`, and `pkg/volume/csimigration/plugin_manager.go`.

mod source;
mod topology;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

pub use self::source::{
    AwsElasticBlockStore, AzureDisk, AzureFile, Cinder, GcePersistentDisk, InTreeSource, InlineVolume, PortworxVolume,
    VsphereVolume,
};
use crate::api::object::null_as_default;
use crate::api::raw::{RawObject, raw_of};

/// One such plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InTreePlugin {
    /// For example `kubernetes.io/aws-ebs`.
    pub name: &'static str,
    /// The CSI driver that replaces it, for example `ebs.csi.aws.com`.
    pub driver: &'static str,
    /// The field of a PersistentVolume's spec, and of a pod's volume, that has the source of its volumes.
    pub source: &'static str,
}

const fn plugin(source: &'static str, name: &'static str, driver: &'static str) -> InTreePlugin {
    InTreePlugin { name, driver, source }
}

const AWS: InTreePlugin = plugin("awsElasticBlockStore", "kubernetes.io/aws-ebs", "ebs.csi.aws.com");
const AZURE_DISK: InTreePlugin = plugin("azureDisk", "kubernetes.io/azure-disk", "disk.csi.azure.com");
const AZURE_FILE: InTreePlugin = plugin("azureFile", "kubernetes.io/azure-file", "file.csi.azure.com");
const CINDER: InTreePlugin = plugin("cinder", "kubernetes.io/cinder", "cinder.csi.openstack.org");
const GCE: InTreePlugin = plugin("gcePersistentDisk", "kubernetes.io/gce-pd", "pd.csi.storage.gke.io");
const PORTWORX: InTreePlugin = plugin("portworxVolume", "kubernetes.io/portworx-volume", "pxd.portworx.com");
const VSPHERE: InTreePlugin = plugin("vsphereVolume", "kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com");

/// All of them.
///
/// Upstream: `inTreePlugins`, `k8s.io/csi-translation-lib/translate.go`.
pub const IN_TREE_PLUGINS: [InTreePlugin; 7] = [AWS, AZURE_DISK, AZURE_FILE, CINDER, GCE, PORTWORX, VSPHERE];

impl InTreePlugin {
    /// The plugin of a PersistentVolume, or of a pod's own volume, that has these fields.
    pub fn of_volume(has_field: impl Fn(&str) -> bool) -> Option<Self> {
        IN_TREE_PLUGINS.into_iter().find(|plugin| has_field(plugin.source))
    }

    /// The plugin of this name, as a StorageClass or an annotation of a claim or volume names its provisioner.
    pub fn named(name: &str) -> Option<Self> {
        IN_TREE_PLUGINS.into_iter().find(|plugin| plugin.name == name)
    }
}

/// Why a volume cannot be a driver's. The texts are upstream's.
#[derive(Debug, thiserror::Error)]
pub enum TranslationError {
    #[error("failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({0})")]
    AwsVolume(Box<str>),
    #[error("kind({0}) is not supported in csi migration")]
    AzureDiskKind(Box<str>),
    #[error("could not find a secret namespace in PersistentVolumeSource or ClaimRef")]
    NoSecretNamespace,
    #[error(
        "failed to get region from zones: zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {0}"
    )]
    Zone(Box<str>),
    #[error("failed to get region from zones: multiple or no regions gotten from zones, got: {0}")]
    Regions(String),
    #[error("cannot read the volume: {0}")]
    Unreadable(#[from] serde_json::Error),
}

/// What a PersistentVolume's translation reads beside its source.
#[derive(Deserialize)]
struct Volume<'a> {
    #[serde(borrow, default)]
    metadata: Metadata<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(deserialize_with = "null_as_default")]
    labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_as_default")]
    annotations: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClaimReference {
    namespace: String,
}

/// A PersistentVolume with its in-tree source as the driver's, and each other field as it was; itself if it has none.
pub fn persistent_volume(json: &RawValue) -> Result<Cow<'_, RawValue>, TranslationError> {
    let mut volume = RawObject::parse(json)?;
    let Some(spec) = volume.get("spec") else { return Ok(Cow::Borrowed(json)) };
    let spec = RawObject::parse(spec)?;
    let source = |plugin: InTreePlugin| spec.get(plugin.source).filter(|source| source.get() != "null");
    let mut sources = IN_TREE_PLUGINS.into_iter().filter_map(|plugin| Some((plugin, source(plugin)?)));
    let Some((plugin, source)) = sources.next() else { return Ok(Cow::Borrowed(json)) };
    let source = InTreeSource::parse(plugin, source)?;
    let Volume { metadata } = serde_json::from_str(json.get())?;

    let mut translated = spec.borrowed();
    translated.remove(plugin.source);
    translated.insert("csi", raw_of(&source.persistent(&metadata, &read(&spec, "claimRef")?)?));
    if let Some(topology) = source.topology()
        && let Some(affinity) = topology.translate(&read(&spec, "nodeAffinity")?, &metadata.labels)
    {
        translated.insert("nodeAffinity", raw_of(&affinity));
    }
    if let Some(modes) = source.access_modes(&read::<Vec<String>>(&spec, "accessModes")?) {
        translated.insert("accessModes", raw_of(&modes));
    }
    let translated = raw_of(&translated);
    volume.replace("spec", translated);
    Ok(Cow::Owned(raw_of(&volume)))
}

/// A field, or its default if it is absent or null.
fn read<'a, T: Default + Deserialize<'a>>(object: &'a RawObject<'_>, field: &str) -> serde_json::Result<T> {
    let value = object.get(field).map(|value| serde_json::from_str::<Option<T>>(value.get())).transpose()?;
    Ok(value.flatten().unwrap_or_default())
}

#[cfg(test)]
mod tests;
