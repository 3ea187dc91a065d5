//! A ResourceClaim: how many devices of each class it may get.
//!
//! Left out: the devices that it has.

use std::collections::BTreeMap;

use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::object::{Key, Meta, ResourceVersion, Uid, null_as_default};
use shared::api::time::Time;

use super::countable;

/// So many devices at most are allocated to a request for all. Upstream: `AllocationResultsMaxSize`,
/// `staging/src/k8s.io/api/resource/v1/types.go`.
const ALL: i64 = 32;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawClaim")]
pub struct ResourceClaim {
    pub key: Key,
    pub resource_version: ResourceVersion,
    pub facts: ResourceClaimFacts,
}

countable!(ResourceClaim, ResourceClaimFacts);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceClaimFacts {
    /// How many devices of each class it may get.
    pub devices: BTreeMap<Text, i64>,
    /// Where it was made for a pod that asks for extended resources.
    pub made_for: Option<Box<MadeFor>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeFor {
    /// The uid of the pod that asks for them.
    pub pod: Uid,
    pub creation: Option<Time>,
    pub claim: Text,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "resource.kubernetes.io/extended-resource-claim")]
    in_place: Option<Text>,
}

#[derive(Deserialize)]
struct RawClaim {
    metadata: Meta<Annotations>,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawSpec {
    #[serde(deserialize_with = "null_as_default")]
    devices: RawDevices,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawDevices {
    #[serde(deserialize_with = "null_as_default")]
    requests: Vec<RawRequest>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawRequest {
    exactly: Option<RawDevicesOfClass>,
    #[serde(deserialize_with = "null_as_default")]
    first_available: Vec<RawDevicesOfClass>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawDevicesOfClass {
    device_class_name: Text,
    allocation_mode: String,
    #[serde(deserialize_with = "null_as_default")]
    count: i64,
}

impl RawDevicesOfClass {
    /// None for a mode that this build does not know, as upstream.
    fn number(&self) -> i64 {
        match &*self.allocation_mode {
            "ExactCount" => self.count,
            "All" => ALL,
            _ => 0,
        }
    }
}

/// Of the alternatives of a request, the worst counts for each class.
///
/// Upstream: `Usage`, `pkg/quota/v1/evaluator/core/resource_claims.go`.
impl From<RawClaim> for ResourceClaim {
    fn from(RawClaim { metadata, spec }: RawClaim) -> Self {
        let mut devices: BTreeMap<Text, i64> = BTreeMap::new();
        for RawRequest { exactly, first_available } in spec.devices.requests {
            let mut worst: BTreeMap<Text, i64> = BTreeMap::new();
            if first_available.is_empty() {
                worst.extend(exactly.map(|asked| (asked.device_class_name.clone(), asked.number())));
            }
            for asked in first_available {
                let number = worst.entry(asked.device_class_name.clone()).or_default();
                *number = asked.number().max(*number);
            }
            for (class, number) in worst {
                let sum = devices.entry(class).or_default();
                *sum = sum.saturating_add(number);
            }
        }
        let made_for = made_for(&metadata);
        let Meta { key, resource_version, .. } = metadata;
        Self { key, resource_version, facts: ResourceClaimFacts { devices, made_for } }
    }
}

/// Upstream: `extendedResourceClaimPodUIDOwnerIndex`, `pkg/quota/v1/evaluator/core/resource_claims.go`.
fn made_for(metadata: &Meta<Annotations>) -> Option<Box<MadeFor>> {
    let controller = metadata.controller.as_ref()?;
    let is_pods = (&*controller.api_version, &*controller.kind) == ("v1", "Pod");
    let is_in_place = metadata.annotations.in_place.as_deref() == Some("true");
    (is_pods && is_in_place).then(|| {
        let claim = Text::new(metadata.key.name());
        Box::new(MadeFor { pod: controller.uid, creation: metadata.creation, claim })
    })
}
