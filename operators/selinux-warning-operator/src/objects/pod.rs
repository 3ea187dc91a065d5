//! The view of a Pod: those of its volumes that it mounts, each with the label of the containers that mount it.
//!
//! Left out: volumes whose label no other pod and no warning can depend on, such as most `emptyDir`s.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use shared::api::object::{Key, Meta};
use shared::api::pod::volume::{PodVolume, Source, VolumeClaim};
use shared::api::resource::PODS;

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
    Claim(VolumeClaim),
    Disk(Disk),
    /// No kubelet mounts it with a label.
    Other,
}

impl PodSource {
    fn of(source: Source) -> Self {
        match source {
            Source::Claim(claim) => Self::Claim(claim),
            Source::Csi(volume) => Self::Disk((*volume).into()),
            Source::OfNode(name) => Self::Disk(Disk::of_node(&name)),
            Source::Other => Self::Other,
        }
    }
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
        self.volumes.iter().filter_map(|volume| match &volume.source {
            PodSource::Claim(claim) => Some(Key::new(self.metadata.namespace(), &claim.name)),
            PodSource::Disk(_) | PodSource::Other => None,
        })
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
    volumes: Option<Vec<PodVolume<'a>>>,
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
        let volume = |volume: PodVolume<'_>| {
            let label = labels.get(&*volume.name)?.clone();
            let name = Box::from(&*volume.name);
            let source = PodSource::of(volume.source(&metadata.key).ok()?);
            let matters = source != PodSource::Other || label == VolumeLabel::Several;
            matters.then_some(Volume { name, label, source })
        };
        let mut volumes: Vec<Volume> = volumes.into_iter().flatten().filter_map(volume).collect();
        volumes.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { policy: policy.unwrap_or_default(), volumes: volumes.into(), metadata })
    }
}
