//! The view of a Pod: those of its volumes that it mounts, each with the label of the containers that mount it.
//!
//! Left out: volumes whose label no other pod and no warning can depend on, such as most `emptyDir`s.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use shared::api::csi_translation::{
    AwsElasticBlockStore, AzureDisk, AzureFile, Cinder, GcePersistentDisk, InTreeSource, PortworxVolume, VsphereVolume,
};
use shared::api::names::ephemeral_claim_name;
use shared::api::object::{Key, Meta};
use shared::api::resource::PODS;
use shared::api::volume_name::{FcSource, IscsiSource};

use super::label::{ChangePolicy, Label, SeLinuxOptions};
use super::volume::Disk;

#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    pub metadata: Meta,
    pub policy: ChangePolicy,
    /// By name.
    pub volumes: Box<[Volume]>,
}

shared::view!(Pod, PODS);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    pub name: Box<str>,
    pub label: VolumeLabel,
    pub source: PodSource,
}

/// The label of the containers that mount a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeLabel {
    One(Label),
    /// They have different ones, and a volume has only one.
    Several,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodSource {
    /// A claim of this name.
    Claim(Box<str>),
    /// The claim of this name that is made for the pod.
    OwnClaim(Box<str>),
    Disk(Disk),
    /// No kubelet mounts it with a label.
    Other,
}

impl Volume {
    /// Whether its claim, its volume and its driver have to be known: the kubelet may mount it with a label, or the
    /// containers have several.
    fn needs_its_source(&self, policy: ChangePolicy) -> bool {
        let is_labelled = match &self.label {
            VolumeLabel::One(label) => !label.is_empty() && policy != ChangePolicy::Recursive,
            VolumeLabel::Several => true,
        };
        is_labelled && self.source != PodSource::Other
    }
}

impl Pod {
    /// Whether it can be in conflict with a pod that has no label.
    pub fn may_mount_with_label(&self) -> bool {
        self.volumes.iter().any(|volume| volume.needs_its_source(self.policy))
    }

    /// The keys of the claims that its volumes name.
    pub fn claim_keys(&self) -> impl Iterator<Item = Key> {
        let names = self.volumes.iter().filter_map(|volume| match &volume.source {
            PodSource::Claim(name) | PodSource::OwnClaim(name) => Some(name),
            PodSource::Disk(_) | PodSource::Other => None,
        });
        names.map(|name| Key::new(self.metadata.namespace(), name))
    }
}

#[derive(Deserialize)]
struct Raw<'a> {
    metadata: Meta,
    #[serde(borrow, default)]
    spec: RawSpec<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec<'a> {
    security_context: Option<RawPodSecurityContext>,
    #[serde(borrow)]
    volumes: Option<Vec<RawVolume<'a>>>,
    #[serde(borrow)]
    init_containers: Option<Vec<RawContainer<'a>>>,
    #[serde(borrow)]
    containers: Option<Vec<RawContainer<'a>>>,
    #[serde(borrow)]
    ephemeral_containers: Option<Vec<RawContainer<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawPodSecurityContext {
    #[serde(rename = "seLinuxOptions")]
    options: Option<SeLinuxOptions>,
    #[serde(rename = "seLinuxChangePolicy")]
    policy: Option<ChangePolicy>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawSecurityContext {
    #[serde(rename = "seLinuxOptions")]
    options: Option<SeLinuxOptions>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawContainer<'a> {
    #[serde(default)]
    security_context: Option<RawSecurityContext>,
    #[serde(borrow, default)]
    volume_mounts: Option<Vec<RawMount<'a>>>,
}

#[derive(Deserialize)]
struct RawMount<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawVolume<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    persistent_volume_claim: Option<RawClaim<'a>>,
    #[serde(default)]
    ephemeral: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    iscsi: Option<IscsiSource>,
    #[serde(default)]
    fc: Option<FcSource>,
    #[serde(default)]
    aws_elastic_block_store: Option<AwsElasticBlockStore>,
    #[serde(default)]
    azure_disk: Option<AzureDisk>,
    #[serde(default)]
    azure_file: Option<AzureFile>,
    #[serde(default)]
    cinder: Option<Cinder>,
    #[serde(default)]
    gce_persistent_disk: Option<GcePersistentDisk>,
    #[serde(default)]
    portworx_volume: Option<PortworxVolume>,
    #[serde(default)]
    vsphere_volume: Option<VsphereVolume>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawClaim<'a> {
    #[serde(borrow, default)]
    claim_name: Cow<'a, str>,
}

impl RawVolume<'_> {
    fn in_tree_source(&mut self) -> Option<InTreeSource> {
        let aws = self.aws_elastic_block_store.take().map(InTreeSource::AwsElasticBlockStore);
        aws.or_else(|| self.azure_disk.take().map(InTreeSource::AzureDisk))
            .or_else(|| self.azure_file.take().map(InTreeSource::AzureFile))
            .or_else(|| self.cinder.take().map(InTreeSource::Cinder))
            .or_else(|| self.gce_persistent_disk.take().map(InTreeSource::GcePersistentDisk))
            .or_else(|| self.portworx_volume.take().map(InTreeSource::PortworxVolume))
            .or_else(|| self.vsphere_volume.take().map(InTreeSource::VsphereVolume))
    }

    /// None if it has an in-tree source that its driver does not take: no kubelet mounts it.
    ///
    /// Upstream: `CreateVolumeSpec`, `pkg/controller/volume/attachdetach/util/util.go`.
    fn source(mut self, pod: &Key) -> Option<PodSource> {
        if let Some(claim) = &self.persistent_volume_claim {
            return Some(PodSource::Claim(Box::from(&*claim.claim_name)));
        }
        if self.ephemeral.is_some() {
            return Some(PodSource::OwnClaim(ephemeral_claim_name(pod.name(), &self.name).into()));
        }
        if let Some(source) = self.in_tree_source() {
            return source.inline(&self.name, pod.namespace()).ok().map(|volume| PodSource::Disk(volume.into()));
        }
        let disk = Disk::of_node(self.iscsi.as_ref(), self.fc.as_ref());
        Some(disk.map_or(PodSource::Other, PodSource::Disk))
    }
}

/// The label of each mounted volume, by the volume's name.
///
/// Upstream: `GetPodVolumeNames`, `pkg/volume/util/util.go`, with `DetermineEffectiveSecurityContext`: a container's
/// options replace the pod's, and containers without either have no say.
fn labels<'a>(
    containers: impl Iterator<Item = &'a RawContainer<'a>>,
    of_pod: Option<&SeLinuxOptions>,
) -> BTreeMap<&'a str, VolumeLabel> {
    let mut labels = BTreeMap::<&str, Option<VolumeLabel>>::new();
    for container in containers {
        let own = container.security_context.as_ref().and_then(|context| context.options.as_ref());
        let label = own.or(of_pod).map(Label::of);
        for mount in container.volume_mounts.iter().flatten() {
            let known = labels.entry(&mount.name).or_default();
            let Some(label) = &label else { continue };
            *known = match known.take() {
                None => Some(VolumeLabel::One(label.clone())),
                Some(VolumeLabel::One(other)) if other == *label => Some(VolumeLabel::One(other)),
                Some(_) => Some(VolumeLabel::Several),
            };
        }
    }
    let labels = labels.into_iter();
    labels.map(|(name, label)| (name, label.unwrap_or_else(|| VolumeLabel::One(Label::default())))).collect()
}

impl<'de> Deserialize<'de> for Pod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Raw { metadata, spec } = Raw::deserialize(deserializer)?;
        let RawSpec { security_context, volumes, init_containers, containers, ephemeral_containers } = spec;
        let RawPodSecurityContext { options, policy } = security_context.unwrap_or_default();
        let containers = [init_containers, containers, ephemeral_containers].map(Option::unwrap_or_default);
        let labels = labels(containers.iter().flatten(), options.as_ref());
        let volume = |volume: RawVolume<'_>| {
            let label = labels.get(&*volume.name)?.clone();
            let name = Box::from(&*volume.name);
            let source = volume.source(&metadata.key)?;
            let matters = source != PodSource::Other || label == VolumeLabel::Several;
            matters.then_some(Volume { name, label, source })
        };
        let mut volumes: Vec<Volume> = volumes.into_iter().flatten().filter_map(volume).collect();
        volumes.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { policy: policy.unwrap_or_default(), volumes: volumes.into(), metadata })
    }
}
