//! The view of a Pod: its claims, its node, and whether it has ended.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use shared::api::intern::Text;
use shared::api::object::{Key, Meta, null_as_default};
use shared::api::pod::Phase;
use shared::api::pod::group::{is_of_pod_group, pod_group};
use shared::api::resource::PODS;

use super::claim::{Consumer, ConsumerKind, ResourceClaim};
use super::{ClaimUser, Entry, Recorded};

#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    pub metadata: Meta,
    pub entries: Box<[Entry]>,
    pub recorded: Box<[Recorded]>,
    /// The name of the claim that the scheduler made for its extended resources.
    pub extended_claim: Option<Box<str>>,
    /// The name of its PodGroup.
    pub group: Option<Text>,
    pub is_scheduled: bool,
    pub phase: Phase,
}

shared::view!(Pod, PODS);

impl Pod {
    /// Whether no container runs or will run. That is final: nothing binds a pod that is being deleted.
    ///
    /// Upstream: `isPodDone`, `pkg/controller/resourceclaim/controller.go`.
    pub fn is_done(&self) -> bool {
        self.phase.is_terminal() || self.metadata.is_being_deleted() && !self.is_scheduled
    }

    /// Whether it needs claims from now on.
    pub fn may_need_claims(&self) -> bool {
        !self.entries.is_empty() && !self.is_done() && !self.metadata.is_being_deleted()
    }

    /// The claims that it uses, as far as their names are known.
    pub fn claim_keys(&self) -> impl Iterator<Item = Key> {
        let names = self.claim_names().chain(self.extended_claim.as_deref());
        names.map(|name| Key::new(self.metadata.namespace(), name))
    }

    pub fn group_key(&self) -> Option<Key> {
        self.group.as_deref().map(|group| Key::new(self.metadata.namespace(), group))
    }

    /// Whether the claim is reserved for it, or for its PodGroup if that counts.
    ///
    /// Upstream: `IsReservedForPod`, staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go.
    pub fn has_reserved(&self, claim: &ResourceClaim, accepts_groups: bool) -> bool {
        let is_group = |consumer: &Consumer| {
            consumer.kind() == Some(ConsumerKind::PodGroup) && self.group.as_deref() == Some(&*consumer.name)
        };
        let is_it = |consumer: &Consumer| consumer.uid() == self.metadata.uid || accepts_groups && is_group(consumer);
        claim.reserved_for.iter().any(is_it)
    }
}

impl ClaimUser for Pod {
    const ENTRY: &'static str = "PodResourceClaim";

    fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn recorded(&self) -> &[Recorded] {
        &self.recorded
    }

    /// Upstream: `IsForPod`, staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go.
    fn is_for(&self, claim: &ResourceClaim, accepts_groups: bool) -> bool {
        let is_groups = || self.group.as_ref().is_some_and(|group| is_of_pod_group(&claim.metadata, group));
        claim.metadata.is_controlled_by(self.metadata.uid) || accepts_groups && is_groups()
    }

    fn unsupported(&self, entry: &str) -> String {
        format!(
            "checking for claim before creating it: pod \"{}\", spec.resourceClaim {entry:?}: none of the supported \
             fields are set",
            self.metadata.key
        )
    }
}

#[derive(Deserialize)]
struct RawPod<'a> {
    metadata: Meta,
    #[serde(borrow, default)]
    spec: RawSpec<'a>,
    #[serde(default)]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec<'a> {
    #[serde(borrow)]
    node_name: Cow<'a, str>,
    #[serde(deserialize_with = "null_as_default")]
    resource_claims: Box<[Entry]>,
    #[serde(deserialize_with = "pod_group")]
    scheduling_group: Option<Text>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus {
    phase: Phase,
    #[serde(deserialize_with = "null_as_default")]
    resource_claim_statuses: Box<[Recorded]>,
    extended_resource_claim_status: Option<RawExtended>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawExtended {
    #[serde(default)]
    resource_claim_name: Box<str>,
}

impl<'de> Deserialize<'de> for Pod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RawPod { metadata, spec, status } = RawPod::deserialize(deserializer)?;
        let RawSpec { node_name, resource_claims: entries, scheduling_group: group } = spec;
        let RawStatus { phase, resource_claim_statuses: recorded, extended_resource_claim_status } = status;
        let extended_claim = extended_resource_claim_status.map(|extended| extended.resource_claim_name);
        Ok(Self { metadata, entries, recorded, extended_claim, group, is_scheduled: !node_name.is_empty(), phase })
    }
}
