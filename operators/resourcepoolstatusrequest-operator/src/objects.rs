//! The views of a ResourcePoolStatusRequest, and of what it asks about: ResourceSlices and the allocations of
//! ResourceClaims.

use serde::Deserialize;
use serde::de::IgnoredAny;
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::Resource;
use shared::api::time::Time;

/// `resource.k8s.io/v1alpha3` `ResourcePoolStatusRequest`, the version that upstream uses.
pub const RESOURCE_POOL_STATUS_REQUESTS: Resource =
    Resource::cluster_scoped("resource.k8s.io", "v1alpha3", "ResourcePoolStatusRequest", "resourcepoolstatusrequests");
/// `resource.k8s.io/v1` `ResourceSlice`.
pub const RESOURCE_SLICES: Resource =
    Resource::cluster_scoped("resource.k8s.io", "v1", "ResourceSlice", "resourceslices");
/// `resource.k8s.io/v1` `ResourceClaim`.
pub const RESOURCE_CLAIMS: Resource = Resource::namespaced("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims");

/// The type of the condition of a request that was answered.
pub const COMPLETE: &str = "Complete";
/// The type of the condition of a request that cannot be answered.
const FAILED: &str = "Failed";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub driver: Text,
    /// The one pool that it is about; all of the driver if there is none.
    pub pool: Option<Text>,
    /// How many pools the answer has at most.
    pub limit: usize,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "RawRequest")]
pub struct ResourcePoolStatusRequest {
    pub metadata: Meta,
    pub question: Question,
    /// None until it is answered.
    pub answered: Option<Answered>,
}

shared::view!(ResourcePoolStatusRequest, RESOURCE_POOL_STATUS_REQUESTS);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The time of the condition Complete or Failed.
    pub time: Option<Time>,
}

/// Upstream: `ResourcePoolStatusRequestLimitDefault`, `staging/src/k8s.io/api/resource/v1alpha3/types.go`.
const LIMIT: i64 = 100;

#[derive(Deserialize)]
struct RawRequest {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawQuestion,
    #[serde(default)]
    status: Option<RawStatus>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawQuestion {
    driver: Text,
    pool_name: Option<Text>,
    limit: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawStatus {
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<RawCondition>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawCondition {
    #[serde(rename = "type")]
    type_: Text,
    last_transition_time: Option<Time>,
}

impl From<RawRequest> for ResourcePoolStatusRequest {
    fn from(RawRequest { metadata, spec, status }: RawRequest) -> Self {
        let RawQuestion { driver, pool_name, limit } = spec;
        let pool = pool_name.filter(|pool| !pool.is_empty());
        let limit = usize::try_from(limit.unwrap_or(LIMIT)).unwrap_or_default();
        let answered = status.map(|RawStatus { conditions }| {
            let end = conditions.iter().find(|condition| [COMPLETE, FAILED].contains(&&*condition.type_));
            let time = end.map_or(metadata.creation, |condition| condition.last_transition_time);
            Answered { time }
        });
        Self { metadata, question: Question { driver, pool, limit }, answered }
    }
}

/// A ResourceSlice: one part of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "RawSlice")]
pub struct Slice {
    pub driver: Text,
    pub pool: Text,
    pub generation: i64,
    /// How many slices the pool has when it is complete.
    pub expected: i64,
    /// Empty if its devices are not of one node.
    pub node: Text,
    pub devices: i64,
}

#[derive(Deserialize)]
struct RawSlice {
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    driver: Text,
    pool: RawPool,
    #[serde(deserialize_with = "null_as_default")]
    node_name: Text,
    #[serde(deserialize_with = "null_as_default")]
    devices: Vec<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawPool {
    name: Text,
    generation: i64,
    resource_slice_count: i64,
}

impl From<RawSlice> for Slice {
    fn from(RawSlice { spec }: RawSlice) -> Self {
        let RawSpec { driver, pool: RawPool { name, generation, resource_slice_count }, node_name, devices } = spec;
        let devices = i64::try_from(devices.len()).unwrap_or(i64::MAX);
        Self { driver, pool: name, generation, expected: resource_slice_count, node: node_name, devices }
    }
}

/// The pools from which a ResourceClaim has devices: driver and pool of each device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "RawClaim")]
pub struct Allocated {
    pub devices: Vec<(Text, Text)>,
}

#[derive(Deserialize)]
struct RawClaim {
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawClaimStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawClaimStatus {
    #[serde(deserialize_with = "null_as_default")]
    allocation: RawAllocation,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawAllocation {
    #[serde(deserialize_with = "null_as_default")]
    devices: RawDevices,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawDevices {
    #[serde(deserialize_with = "null_as_default")]
    results: Vec<RawResult>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawResult {
    driver: Text,
    pool: Text,
}

impl From<RawClaim> for Allocated {
    fn from(RawClaim { status }: RawClaim) -> Self {
        let results = status.allocation.devices.results.into_iter();
        Self { devices: results.map(|RawResult { driver, pool }| (driver, pool)).collect() }
    }
}
