//! A ResourceClaim: its allocated devices, which taints these tolerate, and the pods and PodGroups that it is reserved for.

use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use shared::api::intern::{Interner, Text};
use shared::api::object::{Meta, Uid, null_as_default};
use shared::api::pod::group::is_of_pod_group;
use shared::api::resource::{POD_GROUPS, PODS, Resource};
use shared::api::taint::{TaintEffect, Toleration};

use super::{DeviceId, DeviceTaint, Pod, Pool};

pub const RESOURCE_CLAIMS: Resource = Resource::namespaced("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims");

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawClaim")]
pub struct ResourceClaim {
    pub metadata: Meta,
    /// None if it is not allocated.
    pub devices: Box<[AllocatedDevice]>,
    pub consumers: Box<[Consumer]>,
}

shared::view!(ResourceClaim, RESOURCE_CLAIMS);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocatedDevice {
    pub id: DeviceId,
    /// Its tolerations for `NoExecute` taints. Most devices share the same ones.
    pub tolerations: Arc<[Toleration]>,
}

/// Whom a claim is reserved for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Consumer {
    Pod { name: Text, uid: Uid },
    PodGroup { name: Text },
}

static TOLERATIONS: LazyLock<Interner<[Toleration]>> = LazyLock::new(Interner::new);

impl ResourceClaim {
    pub fn is_allocated(&self) -> bool {
        !self.devices.is_empty()
    }

    /// Whether it was made for this pod, or with `by_group` for the pod's PodGroup.
    ///
    /// Upstream: `IsForPod`, `staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go`.
    pub fn is_for(&self, pod: &Pod, by_group: bool) -> bool {
        let is_of_group = || pod.group.as_ref().is_some_and(|group| is_of_pod_group(&self.metadata, group));
        self.metadata.is_controlled_by(pod.metadata.uid) || by_group && is_of_group()
    }

    /// Upstream: `IsReservedForPod`, in the same file.
    pub fn is_reserved_for(&self, pod: &Pod, by_group: bool) -> bool {
        self.consumers.iter().any(|consumer| match consumer {
            Consumer::Pod { name: _, uid } => *uid == pod.metadata.uid,
            Consumer::PodGroup { name } => by_group && pod.group.as_ref() == Some(name),
        })
    }
}

impl AllocatedDevice {
    /// For how many seconds it tolerates a taint, the shortest of all its tolerations of it; none is forever.
    ///
    /// Upstream: `claimEvictionTime`, `pkg/controller/devicetainteviction/device_taint_eviction.go`.
    pub fn tolerates_for(&self, taint: &DeviceTaint) -> Option<i64> {
        let of_taint = self.tolerations.iter().filter(|toleration| toleration.tolerates(&taint.taint));
        let mut shortest: Option<i64> = None;
        for toleration in of_taint {
            let seconds = toleration.seconds?.max(0);
            shortest = Some(shortest.map_or(seconds, |shortest| shortest.min(seconds)));
        }
        Some(shortest.unwrap_or_default())
    }
}

#[derive(Deserialize)]
struct RawClaim {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus {
    #[serde(deserialize_with = "null_as_default")]
    allocation: RawAllocation,
    #[serde(deserialize_with = "null_as_default")]
    reserved_for: Vec<RawConsumer>,
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
    device: Text,
    #[serde(deserialize_with = "null_as_default")]
    tolerations: Vec<Toleration>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawConsumer {
    api_group: Text,
    resource: Text,
    name: Text,
    uid: Uid,
}

impl From<RawClaim> for ResourceClaim {
    fn from(RawClaim { metadata, status }: RawClaim) -> Self {
        let devices = status.allocation.devices.results.into_iter().map(AllocatedDevice::from).collect();
        let consumers = status.reserved_for.into_iter().filter_map(RawConsumer::read).collect();
        Self { metadata, devices, consumers }
    }
}

impl From<RawResult> for AllocatedDevice {
    fn from(RawResult { driver, pool, device, mut tolerations }: RawResult) -> Self {
        // As upstream, one without an effect does not count, although the API says that it is for all effects.
        tolerations.retain(|toleration| toleration.effect == TaintEffect::NoExecute);
        let id = DeviceId { pool: Pool { driver, name: pool }, device };
        Self { id, tolerations: TOLERATIONS.intern(tolerations.as_slice()) }
    }
}

impl RawConsumer {
    fn read(self) -> Option<Consumer> {
        let Self { api_group, resource, name, uid } = self;
        let is_of = |of: &Resource| api_group == *of.group && resource == *of.plural;
        if is_of(&PODS) {
            Some(Consumer::Pod { name, uid })
        } else {
            is_of(&POD_GROUPS).then_some(Consumer::PodGroup { name })
        }
    }
}
