//! A ResourceClaim: how many devices of each class it may get.
//!
//! Left out: the devices that it has, and extended resources that stand for device classes.

use std::collections::BTreeMap;

use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::object::{Key, Meta, ResourceVersion, null_as_default};

use super::countable;

/// So many devices at most are allocated to a request for all. Upstream: `AllocationResultsMaxSize`,
/// `staging/src/k8s.io/api/resource/v1/types.go`.
const ALL: i64 = 32;

/// A ResourceClaim.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawClaim")]
pub struct ResourceClaim {
    /// Namespace and name.
    pub key: Key,
    /// The version of this state.
    pub resource_version: ResourceVersion,
    /// The facts that count.
    pub facts: ResourceClaimFacts,
}

countable!(ResourceClaim, ResourceClaimFacts);

/// The facts of a ResourceClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceClaimFacts {
    /// How many devices of each class it may get.
    pub devices: BTreeMap<Text, i64>,
}

#[derive(Deserialize)]
struct RawClaim {
    metadata: Meta,
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
        let Meta { key, resource_version, .. } = metadata;
        Self { key, resource_version, facts: ResourceClaimFacts { devices } }
    }
}
