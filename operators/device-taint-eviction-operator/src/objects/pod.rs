//! A scheduled pod: the claims that it uses.

use serde::Deserialize;
use shared::api::condition::Condition;
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::pod::disruption::{Disruption, DisruptionTarget};
use shared::api::pod::group::pod_group;
use shared::api::resource::PODS;

/// The condition that a pod gets before it is deleted.
pub const DELETION_BY_DEVICE_TAINT_MANAGER: DisruptionTarget = DisruptionTarget {
    reason: "DeletionByDeviceTaintManager",
    message: "Device Taint manager: deleting due to NoExecute taint",
};

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawPod")]
pub struct Pod {
    pub metadata: Meta,
    /// Without those that are not made yet, or not needed.
    pub claims: Box<[ClaimReference]>,
    /// The name of its PodGroup.
    pub group: Option<Text>,
    /// Its condition DisruptionTarget.
    pub disruption: Disruption,
}

shared::view!(Pod, PODS);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimReference {
    pub name: Text,
    /// Whether it is made from a template. Then it counts only if it was made for the pod.
    pub is_from_template: bool,
}

#[derive(Deserialize)]
struct RawPod {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    #[serde(deserialize_with = "null_as_default")]
    resource_claims: Vec<RawReference>,
    #[serde(deserialize_with = "pod_group")]
    scheduling_group: Option<Text>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawReference {
    name: Text,
    resource_claim_name: Option<Text>,
    resource_claim_template_name: Option<Text>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus {
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<Condition>,
    #[serde(deserialize_with = "null_as_default")]
    resource_claim_statuses: Vec<RawClaimStatus>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawClaimStatus {
    name: Text,
    resource_claim_name: Option<Text>,
}

impl RawReference {
    /// Upstream: `Name`, `staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go`.
    fn resolve(self, made: &[RawClaimStatus]) -> Option<ClaimReference> {
        let Self { name, resource_claim_name, resource_claim_template_name } = self;
        if let Some(name) = resource_claim_name {
            return Some(ClaimReference { name, is_from_template: false });
        }
        resource_claim_template_name?;
        let made = made.iter().find(|made| made.name == name)?;
        Some(ClaimReference { name: made.resource_claim_name.clone()?, is_from_template: true })
    }
}

impl From<RawPod> for Pod {
    fn from(RawPod { metadata, spec, status }: RawPod) -> Self {
        let RawSpec { resource_claims, scheduling_group: group } = spec;
        let made = &status.resource_claim_statuses;
        let claims = resource_claims.into_iter().filter_map(|reference| reference.resolve(made));
        Self {
            metadata,
            claims: claims.collect(),
            group,
            disruption: DELETION_BY_DEVICE_TAINT_MANAGER.find(&status.conditions),
        }
    }
}
