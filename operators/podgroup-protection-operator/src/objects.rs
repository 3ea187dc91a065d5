//! The view of a PodGroup: its metadata. The view of a Pod is in [`pod`].

pub mod pod;

use serde::Deserialize;
use shared::api::object::Meta;
use shared::api::resource::POD_GROUPS;
use shared::controllers::protection::{Protected, Protection};

/// The finalizer of a PodGroup, which an admission plugin of the apiserver adds.
///
/// Upstream: `PodGroupProtectionFinalizer`, `pkg/apis/scheduling/types.go`.
pub const PROTECTION: Protection =
    Protection { resource: POD_GROUPS, finalizer: "scheduling.k8s.io/podgroup-protection", adds: false };

/// A PodGroup by its metadata.
#[derive(Debug, PartialEq, Deserialize)]
pub struct PodGroup {
    pub metadata: Meta,
}

shared::view!(PodGroup, POD_GROUPS);

impl Protected for PodGroup {
    const PROTECTION: Protection = PROTECTION;
}
