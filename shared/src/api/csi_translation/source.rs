//! The sources of in-tree volumes by the fields that their translation reads, and each as the driver's source.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Not;

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::topology::{BETWEEN_ZONES, Topology, zone_label};
use super::{
    AWS, AZURE_DISK, AZURE_FILE, CINDER, ClaimReference, GCE, InTreePlugin, Metadata, PORTWORX, TranslationError,
    VSPHERE,
};
use crate::api::list::list;
use crate::api::raw::raw_of;

const READ_WRITE_ONCE: &str = "ReadWriteOnce";
const READ_ONLY_MANY: &str = "ReadOnlyMany";
const READ_WRITE_MANY: &str = "ReadWriteMany";

/// The only kind of Azure's disks that the driver takes.
const MANAGED: &str = "Managed";

/// The annotation of a PersistentVolume of Azure File.
const RESOURCE_GROUP: &str = "kubernetes.io/azure-file-resource-group";
/// The annotations of a PersistentVolume of Portworx.
const PORTWORX_SECRET: &str = "openstorage.io/auth-secret-name";
const PORTWORX_SECRET_NAMESPACE: &str = "openstorage.io/auth-secret-namespace";

/// The source of one volume of an in-tree plugin.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InTreeSource {
    AwsElasticBlockStore(AwsElasticBlockStore),
    AzureDisk(AzureDisk),
    AzureFile(AzureFile),
    Cinder(Cinder),
    GcePersistentDisk(GcePersistentDisk),
    PortworxVolume(PortworxVolume),
    VsphereVolume(VsphereVolume),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AwsElasticBlockStore {
    #[serde(rename = "volumeID")]
    volume_id: Box<str>,
    fs_type: Box<str>,
    partition: i32,
    read_only: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AzureDisk {
    #[serde(rename = "diskURI")]
    disk_uri: Box<str>,
    caching_mode: Option<Box<str>>,
    fs_type: Option<Box<str>>,
    read_only: Option<bool>,
    kind: Option<Box<str>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AzureFile {
    secret_name: Box<str>,
    share_name: Box<str>,
    read_only: bool,
    /// Only a PersistentVolume has one.
    secret_namespace: Option<Box<str>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cinder {
    #[serde(rename = "volumeID")]
    volume_id: Box<str>,
    fs_type: Box<str>,
    read_only: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GcePersistentDisk {
    pd_name: Box<str>,
    fs_type: Box<str>,
    partition: i32,
    read_only: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PortworxVolume {
    #[serde(rename = "volumeID")]
    volume_id: Box<str>,
    fs_type: Box<str>,
    read_only: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VsphereVolume {
    volume_path: Box<str>,
    fs_type: Box<str>,
    storage_policy_name: Box<str>,
}

/// `v1` `CSIPersistentVolumeSource`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CsiSource {
    driver: &'static str,
    volume_handle: String,
    #[serde(skip_serializing_if = "Not::not")]
    read_only: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    fs_type: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    volume_attributes: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    controller_publish_secret_ref: Option<SecretReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_stage_secret_ref: Option<SecretReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_publish_secret_ref: Option<SecretReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    controller_expand_secret_ref: Option<SecretReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_expand_secret_ref: Option<SecretReference>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct SecretReference {
    name: String,
    namespace: String,
}

impl CsiSource {
    fn new(plugin: InTreePlugin, volume_handle: &str) -> Self {
        Self { driver: plugin.driver, volume_handle: volume_handle.to_owned(), ..Self::default() }
    }
}

impl SecretReference {
    fn new(name: &str, namespace: &str) -> Self {
        Self { name: name.to_owned(), namespace: namespace.to_owned() }
    }
}

/// A pod's own volume as the driver's: the PersistentVolume that a VolumeAttachment has in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlineVolume {
    /// The name, which is the same for each pod with the volume.
    pub name: String,
    source: CsiSource,
    access_mode: &'static str,
}

impl InlineVolume {
    pub const fn driver(&self) -> &'static str {
        self.source.driver
    }

    pub fn volume_handle(&self) -> &str {
        &self.source.volume_handle
    }

    /// The only one.
    pub const fn access_mode(&self) -> &'static str {
        self.access_mode
    }

    /// The spec of the PersistentVolume.
    pub fn spec(&self) -> Box<RawValue> {
        let Self { name: _, source, access_mode } = self;
        raw_of(&json!({ "csi": source, "accessModes": [access_mode], "volumeMode": "Filesystem" }))
    }
}

impl InTreeSource {
    pub(super) fn parse(plugin: InTreePlugin, source: &RawValue) -> serde_json::Result<Self> {
        serde_json::from_str(raw_of(&BTreeMap::from([(plugin.source, source)])).get())
    }

    /// The source of a pod's own volume as the driver's.
    ///
    /// `volume` is its name in the pod, and `namespace` the pod's.
    ///
    /// Upstream: `TranslateInTreeInlineVolumeToCSI`, `k8s.io/csi-translation-lib/translate.go`. It panics if a volume
    /// of vSphere names a storage policy.
    pub fn inline(&self, volume: &str, namespace: &str) -> Result<InlineVolume, TranslationError> {
        let source = match self {
            Self::AwsElasticBlockStore(source) => source.csi()?,
            Self::AzureDisk(source) => source.csi()?,
            Self::AzureFile(source) => source.csi("", volume, if namespace.is_empty() { "default" } else { namespace }),
            Self::Cinder(source) => source.csi(),
            Self::GcePersistentDisk(source) => source.csi("zones/UNSPECIFIED"),
            Self::PortworxVolume(source) => source.csi(None),
            Self::VsphereVolume(source) => source.csi(),
        };
        let (driver, handle) = (source.driver, &source.volume_handle);
        let name = match self {
            Self::AzureDisk(_) | Self::AzureFile(_) => handle.clone(),
            Self::GcePersistentDisk(disk) => format!("{driver}-{}", disk.pd_name),
            Self::AwsElasticBlockStore(_) | Self::Cinder(_) | Self::PortworxVolume(_) | Self::VsphereVolume(_) => {
                format!("{driver}-{handle}")
            }
        };
        let access_mode = match self {
            Self::AzureFile(_) => READ_WRITE_MANY,
            Self::GcePersistentDisk(GcePersistentDisk { read_only: true, .. })
            | Self::PortworxVolume(PortworxVolume { read_only: true, .. }) => READ_ONLY_MANY,
            Self::AwsElasticBlockStore(_)
            | Self::AzureDisk(_)
            | Self::Cinder(_)
            | Self::GcePersistentDisk(_)
            | Self::PortworxVolume(_)
            | Self::VsphereVolume(_) => READ_WRITE_ONCE,
        };
        Ok(InlineVolume { name, source, access_mode })
    }

    /// The source of a PersistentVolume as the driver's.
    ///
    /// Upstream: `TranslateInTreePVToCSI` of each plugin.
    pub(super) fn persistent(
        &self,
        metadata: &Metadata<'_>,
        claim: &ClaimReference,
    ) -> Result<CsiSource, TranslationError> {
        let annotation = |key| metadata.annotations.get(key).map(String::as_str);
        Ok(match self {
            Self::AwsElasticBlockStore(source) => source.csi()?,
            Self::AzureDisk(source) => source.csi()?,
            Self::AzureFile(source) => {
                let namespace = source.secret_namespace.as_deref().unwrap_or(&claim.namespace);
                if namespace.is_empty() {
                    return Err(TranslationError::NoSecretNamespace);
                }
                source.csi(annotation(RESOURCE_GROUP).unwrap_or_default(), &metadata.name, namespace)
            }
            Self::Cinder(source) => source.csi(),
            Self::GcePersistentDisk(source) => source.csi(&gce_place(zone_label(&metadata.labels))?),
            Self::PortworxVolume(source) => {
                let secret = annotation(PORTWORX_SECRET).zip(annotation(PORTWORX_SECRET_NAMESPACE));
                source.csi(secret.map(|(name, namespace)| SecretReference::new(name, namespace)))
            }
            Self::VsphereVolume(source) => source.csi(),
        })
    }

    pub(super) const fn topology(&self) -> Option<Topology> {
        match self {
            Self::AwsElasticBlockStore(_) => Some(Topology::Zone("topology.ebs.csi.aws.com/zone")),
            Self::Cinder(_) => Some(Topology::Zone("topology.cinder.csi.openstack.org/zone")),
            Self::GcePersistentDisk(_) => Some(Topology::Zone("topology.gke.io/zone")),
            Self::VsphereVolume(_) => Some(Topology::ZoneAndRegion {
                zone: "topology.csi.vmware.com/zone",
                region: "topology.csi.vmware.com/region",
            }),
            Self::AzureDisk(_) | Self::AzureFile(_) | Self::PortworxVolume(_) => None,
        }
    }

    /// The access modes of a PersistentVolume, if the driver has others: the in-tree plugin of GCE attached a volume
    /// of any modes to one node, and the driver refuses those that it cannot serve.
    ///
    /// Upstream: `backwardCompatibleAccessModes`, `k8s.io/csi-translation-lib/plugins/gce_pd.go`.
    pub(super) fn access_modes(&self, modes: &[String]) -> Option<[&'static str; 1]> {
        if modes.is_empty() || !matches!(self, Self::GcePersistentDisk(_)) {
            return None;
        }
        let has = |mode: &str| modes.iter().any(|candidate| candidate == mode);
        let is_read_only = has(READ_ONLY_MANY) && !has(READ_WRITE_ONCE) && !has(READ_WRITE_MANY);
        Some([if is_read_only { READ_ONLY_MANY } else { READ_WRITE_ONCE }])
    }
}

impl AwsElasticBlockStore {
    fn csi(&self) -> Result<CsiSource, TranslationError> {
        let Self { volume_id, fs_type, partition, read_only } = self;
        Ok(CsiSource {
            read_only: *read_only,
            fs_type: fs_type.to_string(),
            volume_attributes: BTreeMap::from([("partition", partition.to_string())]),
            ..CsiSource::new(AWS, ebs_volume(volume_id)?)
        })
    }
}

/// `vol-1` of `aws://us-west-2a/vol-1`, of `aws:///vol-1` and of itself.
///
/// Upstream: `KubernetesVolumeIDToEBSVolumeID`, `k8s.io/csi-translation-lib/plugins/aws_ebs.go`.
pub(super) fn ebs_volume(id: &str) -> Result<&str, TranslationError> {
    let Some(url) = id.strip_prefix("aws://") else { return Ok(id) };
    let path = url.split(['?', '#']).next().and_then(|url| url.split_once('/')).map_or("", |(_, path)| path);
    let volume = path.trim_matches('/');
    let is_valid = volume.starts_with("vol-") && !volume.contains('/');
    is_valid.then_some(volume).ok_or_else(|| TranslationError::AwsVolume(id.into()))
}

impl AzureDisk {
    fn csi(&self) -> Result<CsiSource, TranslationError> {
        let Self { disk_uri, caching_mode, fs_type, read_only, kind } = self;
        if let Some(kind) = kind.as_deref().filter(|kind| !kind.eq_ignore_ascii_case(MANAGED)) {
            return Err(TranslationError::AzureDiskKind(kind.into()));
        }
        let caching_mode = caching_mode.iter().filter(|mode| !mode.is_empty()).map(|mode| ("cachingmode", mode));
        let attributes = caching_mode.chain(fs_type.iter().map(|fs_type| ("fstype", fs_type)));
        let attributes = attributes.map(|(key, value)| (key, value.to_string()));
        Ok(CsiSource {
            read_only: read_only.unwrap_or_default(),
            fs_type: fs_type.as_deref().unwrap_or_default().to_owned(),
            volume_attributes: attributes.chain([("kind", MANAGED.to_owned())]).collect(),
            ..CsiSource::new(AZURE_DISK, disk_uri)
        })
    }
}

impl AzureFile {
    fn csi(&self, resource_group: &str, volume: &str, namespace: &str) -> CsiSource {
        let Self { secret_name, share_name, read_only, secret_namespace: _ } = self;
        let account = storage_account(secret_name).unwrap_or(secret_name);
        CsiSource {
            read_only: *read_only,
            volume_attributes: BTreeMap::from([("sharename", share_name.to_string())]),
            node_stage_secret_ref: Some(SecretReference::new(secret_name, namespace)),
            ..CsiSource::new(AZURE_FILE, &format!("{resource_group}#{account}#{share_name}#{volume}#{namespace}"))
        }
    }
}

/// Upstream: `getStorageAccountName`, `k8s.io/csi-translation-lib/plugins/azure_file.go`.
pub(super) fn storage_account(secret: &str) -> Option<&str> {
    let (account, _) = secret.split_once("azure-storage-account-")?.1.rsplit_once("-secret")?;
    (!account.is_empty()).then_some(account)
}

impl Cinder {
    fn csi(&self) -> CsiSource {
        let Self { volume_id, fs_type, read_only } = self;
        CsiSource { read_only: *read_only, fs_type: fs_type.to_string(), ..CsiSource::new(CINDER, volume_id) }
    }
}

impl GcePersistentDisk {
    /// `place` is a zone or a region as the handle has it.
    fn csi(&self, place: &str) -> CsiSource {
        let Self { pd_name, fs_type, partition, read_only } = self;
        let partition = if *partition == 0 { String::new() } else { partition.to_string() };
        CsiSource {
            read_only: *read_only,
            fs_type: fs_type.to_string(),
            volume_attributes: BTreeMap::from([("partition", partition)]),
            ..CsiSource::new(GCE, &format!("projects/UNSPECIFIED/{place}/disks/{pd_name}"))
        }
    }
}

/// Upstream: `TranslateInTreePVToCSI` and `gceGetRegionFromZones`, `k8s.io/csi-translation-lib/plugins/gce_pd.go`.
fn gce_place(label: &str) -> Result<String, TranslationError> {
    if !label.contains(BETWEEN_ZONES) {
        return Ok(format!("zones/{}", if label.is_empty() { "UNSPECIFIED" } else { label }));
    }
    let region = |zone: &str| match zone.split('-').collect::<Vec<_>>()[..] {
        [locale, region, _] => Ok(format!("{locale}-{region}")),
        _ => Err(TranslationError::Zone(zone.into())),
    };
    let regions: BTreeSet<String> = label.split(BETWEEN_ZONES).map(region).collect::<Result<_, _>>()?;
    match &Vec::from_iter(regions)[..] {
        [region] => Ok(format!("regions/{region}")),
        regions => Err(TranslationError::Regions(list(regions, String::clone))),
    }
}

impl PortworxVolume {
    fn csi(&self, secret: Option<SecretReference>) -> CsiSource {
        let Self { volume_id, fs_type, read_only: _ } = self;
        CsiSource {
            fs_type: fs_type.to_string(),
            controller_publish_secret_ref: secret.clone(),
            node_stage_secret_ref: secret.clone(),
            node_publish_secret_ref: secret.clone(),
            controller_expand_secret_ref: secret.clone(),
            node_expand_secret_ref: secret,
            ..CsiSource::new(PORTWORX, volume_id)
        }
    }
}

impl VsphereVolume {
    fn csi(&self) -> CsiSource {
        let Self { volume_path, fs_type, storage_policy_name } = self;
        let policy = Some(("storagepolicyname", storage_policy_name.to_string())).filter(|(_, name)| !name.is_empty());
        CsiSource {
            fs_type: fs_type.to_string(),
            volume_attributes: policy.into_iter().collect(),
            ..CsiSource::new(VSPHERE, volume_path)
        }
    }
}
