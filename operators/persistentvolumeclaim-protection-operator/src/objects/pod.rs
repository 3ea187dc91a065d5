//! The view of a Pod: whether it has a node, and the claims of its volumes.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use shared::api::names::ephemeral_claim_name;
use shared::api::object::{Key, Meta};
use shared::api::resource::PODS;

use super::PersistentVolumeClaim;

#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    pub metadata: Meta,
    pub is_scheduled: bool,
    /// The names of the claims that its volumes name.
    pub claims: Box<[Box<str>]>,
    /// The names of the claims that are made for its ephemeral volumes.
    pub ephemeral_claims: Box<[Box<str>]>,
}

shared::view!(Pod, PODS);

impl Pod {
    /// Whether a claim must stay for it. A kubelet does not start a pod whose claim is being deleted, so a pod without a
    /// node keeps no claim. One that has ended does until it is deleted.
    ///
    /// Upstream: `podUsesPVCForDeletion`, `pkg/controller/volume/pvcprotection/pvc_protection_controller.go`.
    pub fn uses(&self, claim: &PersistentVolumeClaim) -> bool {
        let (claim, pod) = (&claim.metadata, &self.metadata);
        let names = |claims: &[Box<str>]| claims.iter().any(|name| **name == *claim.name());
        let is_its_own = || !self.is_shut_down() && claim.is_controlled_by(pod.uid) && names(&self.ephemeral_claims);
        self.is_scheduled && pod.namespace() == claim.namespace() && (names(&self.claims) || is_its_own())
    }

    /// Whether the kubelet is done with it, or it was deleted by force. Its finalizers may wait for its claims to go.
    ///
    /// Upstream: `podIsShutDown`. The apiserver always sets both fields together.
    fn is_shut_down(&self) -> bool {
        self.metadata.is_being_deleted() && self.metadata.deletion_grace_seconds == 0
    }

    /// The keys of all claims that its volumes name.
    pub fn claim_keys(&self) -> impl Iterator<Item = Key> {
        let names = self.claims.iter().chain(&self.ephemeral_claims);
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
    #[serde(borrow)]
    node_name: Cow<'a, str>,
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
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawClaim<'a> {
    #[serde(borrow, default)]
    claim_name: Cow<'a, str>,
}

impl<'de> Deserialize<'de> for Pod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Raw { metadata, spec: RawSpec { node_name, volumes } } = Raw::deserialize(deserializer)?;
        let volumes = volumes.unwrap_or_default();
        let named = volumes.iter().filter_map(|volume| volume.persistent_volume_claim.as_ref());
        let claims = named.map(|claim| Box::from(&*claim.claim_name)).collect();
        let ephemeral = volumes.iter().filter(|volume| volume.ephemeral.is_some());
        let ephemeral_claims =
            ephemeral.map(|volume| ephemeral_claim_name(metadata.name(), &volume.name).into_boxed_str()).collect();
        Ok(Self { is_scheduled: !node_name.is_empty(), claims, ephemeral_claims, metadata })
    }
}
