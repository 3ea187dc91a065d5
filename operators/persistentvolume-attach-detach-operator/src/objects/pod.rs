//! The view of a Pod: its node, whether its containers have ended, the claims of its volumes, and the volumes that its own
//! spec defines.

use std::borrow::Cow;
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use shared::api::csi_translation::{
    AwsElasticBlockStore, AzureDisk, AzureFile, Cinder, GcePersistentDisk, InTreeSource, PortworxVolume, VsphereVolume,
};
use shared::api::intern::Text;
use shared::api::names::ephemeral_claim_name;
use shared::api::object::{Key, Meta};
use shared::api::pod::Phase;
use shared::api::resource::PODS;
use shared::api::volume_name::{FcSource, IscsiSource};

use super::volume::Spec;

#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    pub metadata: Meta,
    /// The node that it is bound to; `""` for none.
    pub node: Text,
    /// Whether none of its containers runs any more, so that its volumes may leave the node.
    pub is_terminated: bool,
    pub claims: Box<[ClaimVolume]>,
    /// The volumes of its own spec that can be attached.
    pub inline: Box<[Arc<Spec>]>,
}

shared::view!(Pod, PODS);

/// A volume of a pod that names a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimVolume {
    pub claim: Box<str>,
    /// Whether the claim was made for the pod, which must own it.
    pub is_ephemeral: bool,
}

impl Pod {
    pub fn claim_key(&self, volume: &ClaimVolume) -> Key {
        Key::new(self.metadata.namespace(), &volume.claim)
    }

    pub fn claim_keys(&self) -> impl Iterator<Item = Key> {
        self.claims.iter().map(|volume| self.claim_key(volume))
    }

    /// Whether its volumes have to be on its node.
    pub fn is_active(&self) -> bool {
        !self.node.is_empty() && !self.is_terminated
    }
}

#[derive(Deserialize)]
struct Raw<'a> {
    metadata: Meta,
    #[serde(borrow, default)]
    spec: RawSpec<'a>,
    #[serde(default)]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec<'a> {
    node_name: Text,
    #[serde(borrow)]
    volumes: Option<Vec<RawVolume<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawVolume<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    persistent_volume_claim: Option<RawClaim<'a>>,
    #[serde(default)]
    ephemeral: Option<IgnoredAny>,
    #[serde(default)]
    fc: Option<FcSource>,
    #[serde(default)]
    iscsi: Option<IscsiSource>,
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

impl RawVolume<'_> {
    /// As upstream, a volume that names a claim too is one of an ephemeral claim.
    fn claim(&self, pod: &str) -> Option<ClaimVolume> {
        match (&self.ephemeral, &self.persistent_volume_claim) {
            (Some(IgnoredAny), _) => {
                let claim = ephemeral_claim_name(pod, &self.name).into_boxed_str();
                Some(ClaimVolume { claim, is_ephemeral: true })
            }
            (None, Some(claim)) => Some(ClaimVolume { claim: Box::from(&*claim.claim_name), is_ephemeral: false }),
            (None, None) => None,
        }
    }

    fn inline(self, namespace: &str) -> Option<Arc<Spec>> {
        let name = self.name;
        if let Some(volume) = self.fc.and_then(|fc| fc.volume()).or_else(|| self.iscsi.map(|iscsi| iscsi.volume())) {
            return Spec::of_node(&volume, &name);
        }
        let aws = self.aws_elastic_block_store.map(InTreeSource::AwsElasticBlockStore);
        let source = aws
            .or_else(|| self.azure_disk.map(InTreeSource::AzureDisk))
            .or_else(|| self.azure_file.map(InTreeSource::AzureFile))
            .or_else(|| self.cinder.map(InTreeSource::Cinder))
            .or_else(|| self.gce_persistent_disk.map(InTreeSource::GcePersistentDisk))
            .or_else(|| self.portworx_volume.map(InTreeSource::PortworxVolume))
            .or_else(|| self.vsphere_volume.map(InTreeSource::VsphereVolume));
        source?.inline(&name, namespace).ok().and_then(Spec::inline)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawClaim<'a> {
    #[serde(borrow, default)]
    claim_name: Cow<'a, str>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus {
    phase: Phase,
    init_container_statuses: Option<Vec<RawContainer>>,
    container_statuses: Option<Vec<RawContainer>>,
    ephemeral_container_statuses: Option<Vec<RawContainer>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawContainer {
    state: RawState,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawState {
    waiting: Option<IgnoredAny>,
    terminated: Option<IgnoredAny>,
}

impl RawStatus {
    /// Upstream: `IsPodTerminated`, `pkg/volume/util/util.go`.
    fn is_terminated(&self, is_being_deleted: bool) -> bool {
        let Self { phase, init_container_statuses, container_statuses, ephemeral_container_statuses } = self;
        let lists = [init_container_statuses, container_statuses, ephemeral_container_statuses];
        let mut containers = lists.into_iter().flatten().flatten();
        phase.is_terminal() || is_being_deleted && containers.all(RawContainer::does_not_run)
    }
}

impl RawContainer {
    const fn does_not_run(&self) -> bool {
        self.state.waiting.is_some() || self.state.terminated.is_some()
    }
}

impl<'de> Deserialize<'de> for Pod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Raw { metadata, spec: RawSpec { node_name, volumes }, status } = Raw::deserialize(deserializer)?;
        let volumes = volumes.unwrap_or_default();
        let claims = volumes.iter().filter_map(|volume| volume.claim(metadata.name())).collect();
        let inline = volumes.into_iter().filter_map(|volume| volume.inline(metadata.namespace())).collect();
        let is_terminated = status.is_terminated(metadata.is_being_deleted());
        Ok(Self { node: node_name, is_terminated, claims, inline, metadata })
    }
}
