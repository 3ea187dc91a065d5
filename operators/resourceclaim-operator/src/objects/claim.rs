//! The view of a ResourceClaim: who may use it, whether it has devices, and what was asked for.

use std::fmt;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use shared::api::intern::Text;
use shared::api::names::DNS1123_LABEL_MAX_LENGTH;
use shared::api::object::{Meta, Uid, null_as_default};
use shared::api::resource::{POD_GROUPS, PODS, Resource};

use super::RESOURCE_CLAIMS;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "RawClaim")]
pub struct ResourceClaim {
    pub metadata: Meta<Annotations>,
    pub has_admin_access: bool,
    pub is_allocated: bool,
    /// Those that may use its devices.
    pub reserved_for: Box<[Consumer]>,
}

shared::view!(ResourceClaim, RESOURCE_CLAIMS, Annotations);

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "RawAnnotations")]
pub struct Annotations {
    /// The entry of the pod or PodGroup that it was made for. A value that is longer than any entry's name is cut, and
    /// still is no entry's name.
    pub pod_claim: Box<str>,
    pub is_for_extended_resources: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawAnnotations {
    #[serde(rename = "resource.kubernetes.io/pod-claim-name")]
    pod_claim: String,
    /// Upstream: `ExtendedResourceClaimAnnotation`, staging/src/k8s.io/api/resource/v1/types.go.
    #[serde(rename = "resource.kubernetes.io/extended-resource-claim")]
    extended_resource: String,
}

impl From<RawAnnotations> for Annotations {
    fn from(RawAnnotations { pod_claim, extended_resource }: RawAnnotations) -> Self {
        let end = pod_claim.floor_char_boundary(2 * DNS1123_LABEL_MAX_LENGTH);
        Self { pod_claim: pod_claim[..end].into(), is_for_extended_resources: extended_resource == "true" }
    }
}

/// An object that may use a claim.
///
/// Upstream: `ResourceClaimConsumerReference`, staging/src/k8s.io/api/resource/v1/types.go.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Consumer {
    #[serde(default, skip_serializing_if = "is_empty")]
    pub api_group: Text,
    #[serde(default)]
    pub resource: Text,
    #[serde(default)]
    pub name: Box<str>,
    /// As it was written: a write names the entry by this text.
    #[serde(default)]
    pub uid: Box<str>,
}

fn is_empty(text: &Text) -> bool {
    text.is_empty()
}

/// The kinds whose end frees a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsumerKind {
    Pod,
    PodGroup,
}

impl Consumer {
    pub fn of(resource: &Resource, name: &str, uid: Uid) -> Self {
        Self {
            api_group: Text::new(&resource.group),
            resource: Text::new(&resource.plural),
            name: name.into(),
            uid: uid.to_string().into(),
        }
    }

    /// None for other kinds.
    pub fn kind(&self) -> Option<ConsumerKind> {
        let is_of = |resource: &Resource| self.api_group == *resource.group && self.resource == *resource.plural;
        if is_of(&PODS) { Some(ConsumerKind::Pod) } else { is_of(&POD_GROUPS).then_some(ConsumerKind::PodGroup) }
    }

    pub fn uid(&self) -> Uid {
        Uid::parse(&self.uid)
    }
}

/// `pods/web`, `podgroups.scheduling.k8s.io/train`.
impl fmt::Display for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { api_group, resource, name, uid: _ } = self;
        if api_group.is_empty() { write!(f, "{resource}/{name}") } else { write!(f, "{resource}.{api_group}/{name}") }
    }
}

/// The requests of a claim or template, as far as they are read.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Devices {
    #[serde(deserialize_with = "null_as_default")]
    requests: Vec<Request>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Request {
    exactly: Option<Exactly>,
    #[serde(deserialize_with = "null_as_default")]
    first_available: Vec<IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Exactly {
    admin_access: Option<bool>,
}

impl Devices {
    /// Alternatives have no such access.
    ///
    /// Upstream: `getAdminAccessMetricLabel` and `needsAdminAccess`, `pkg/controller/resourceclaim/controller.go`.
    pub(super) fn has_admin_access(&self) -> bool {
        let mut exactly = self.requests.iter().filter_map(|request| request.exactly.as_ref());
        exactly.any(|exactly| exactly.admin_access == Some(true))
    }

    /// Upstream: `hasPrioritizedList`, `pkg/controller/resourceclaim/controller.go`.
    pub(super) fn has_prioritized_list(&self) -> bool {
        self.requests.iter().any(|request| !request.first_available.is_empty())
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct RawSpec {
    #[serde(deserialize_with = "null_as_default")]
    pub(super) devices: Devices,
}

#[derive(Deserialize)]
struct RawClaim {
    metadata: Meta<Annotations>,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus {
    allocation: Option<IgnoredAny>,
    #[serde(deserialize_with = "null_as_default")]
    reserved_for: Box<[Consumer]>,
}

impl From<RawClaim> for ResourceClaim {
    fn from(RawClaim { metadata, spec, status }: RawClaim) -> Self {
        let RawStatus { allocation, reserved_for } = status;
        let has_admin_access = spec.devices.has_admin_access();
        Self { metadata, has_admin_access, is_allocated: allocation.is_some(), reserved_for }
    }
}
