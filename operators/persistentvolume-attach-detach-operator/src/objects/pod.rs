//! The view of a Pod: its node, whether its containers have ended, the claims of its volumes, and the volumes that its own
//! spec defines.

use std::sync::Arc;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use shared::api::intern::Text;
use shared::api::object::{Key, Meta};
use shared::api::pod::Phase;
use shared::api::pod::volume::{PodVolume, Source, VolumeClaim};
use shared::api::resource::PODS;

use super::volume::Spec;

#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    pub metadata: Meta,
    /// The node that it is bound to; `""` for none.
    pub node: Text,
    /// Whether none of its containers runs any more, so that its volumes may leave the node.
    pub is_terminated: bool,
    pub claims: Box<[VolumeClaim]>,
    /// The volumes of its own spec that can be attached.
    pub inline: Box<[Arc<Spec>]>,
}

shared::view!(Pod, PODS);

impl Pod {
    pub fn claim_key(&self, claim: &VolumeClaim) -> Key {
        Key::new(self.metadata.namespace(), &claim.name)
    }

    pub fn claim_keys(&self) -> impl Iterator<Item = Key> {
        self.claims.iter().map(|claim| self.claim_key(claim))
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
    volumes: Option<Vec<PodVolume<'a>>>,
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
        let (mut claims, mut inline) = (Vec::new(), Vec::new());
        for volume in volumes.into_iter().flatten() {
            let name = Text::new(&volume.name);
            match volume.source(&metadata.key) {
                Ok(Source::Claim(claim)) => claims.push(claim),
                Ok(Source::Csi(volume)) => inline.extend(Spec::inline(*volume)),
                Ok(Source::OfNode(volume)) => inline.extend(Spec::of_node(&volume, name)),
                Ok(Source::Other) | Err(_) => {}
            }
        }
        let is_terminated = status.is_terminated(metadata.is_being_deleted());
        Ok(Self { node: node_name, is_terminated, claims: claims.into(), inline: inline.into(), metadata })
    }
}
