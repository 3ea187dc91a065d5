//! The view of a PodGroup: its claims.

use serde::Deserialize;
use shared::api::object::{Key, Meta, null_as_default};
use shared::api::resource::POD_GROUPS;

use super::claim::ResourceClaim;
use super::{ClaimUser, Entry, Recorded};

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "RawPodGroup")]
pub struct PodGroup {
    pub metadata: Meta,
    pub entries: Box<[Entry]>,
    pub recorded: Box<[Recorded]>,
}

shared::view!(PodGroup, POD_GROUPS);

impl PodGroup {
    /// Whether an entry of one of its pods is its own: then the pods share one claim.
    ///
    /// Upstream: `BindTo`, staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go.
    pub fn has_entry(&self, entry: &Entry) -> bool {
        self.entries.contains(entry)
    }

    pub fn claim_keys(&self) -> impl Iterator<Item = Key> {
        self.claim_names().map(|name| Key::new(self.metadata.namespace(), name))
    }
}

impl ClaimUser for PodGroup {
    const ENTRY: &'static str = "PodGroupResourceClaim";

    fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn recorded(&self) -> &[Recorded] {
        &self.recorded
    }

    /// Upstream: `IsForPodGroup`, staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go.
    fn is_for(&self, claim: &ResourceClaim, _: bool) -> bool {
        claim.metadata.is_controlled_by(self.metadata.uid)
    }

    fn unsupported(&self, entry: &str) -> String {
        format!(
            "checking for claim before creating it: PodGroup {}, spec.resourceClaim {entry}: none of the supported \
             fields are set",
            self.metadata.key
        )
    }
}

#[derive(Deserialize)]
struct RawPodGroup {
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
    resource_claims: Box<[Entry]>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus {
    #[serde(deserialize_with = "null_as_default")]
    resource_claim_statuses: Box<[Recorded]>,
}

impl From<RawPodGroup> for PodGroup {
    fn from(RawPodGroup { metadata, spec, status }: RawPodGroup) -> Self {
        Self { metadata, entries: spec.resource_claims, recorded: status.resource_claim_statuses }
    }
}
