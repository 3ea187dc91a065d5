//! What pods and PodGroups say about claims, alike. The views of the four kinds are below.

pub mod claim;
pub mod pod;
pub mod pod_group;
pub mod template;

use serde::Deserialize;
use shared::api::object::Kind;
use shared::api::resource::Resource;
use shared::controllers::protection::Protection;

use claim::ResourceClaim;

pub const RESOURCE_CLAIMS: Resource = Resource::namespaced("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims");
pub const RESOURCE_CLAIM_TEMPLATES: Resource =
    Resource::namespaced("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates");

/// The finalizer that the scheduler gives to a claim before it allocates devices to it.
///
/// Upstream: `Finalizer`, staging/src/k8s.io/api/resource/v1/types.go.
pub const PROTECTION: Protection =
    Protection { resource: RESOURCE_CLAIMS, finalizer: "resource.kubernetes.io/delete-protection", adds: false };

/// The annotation of a claim that was made from a template: the entry of its pod or PodGroup.
///
/// Upstream: `PodResourceClaimAnnotation`, staging/src/k8s.io/api/resource/v1/types.go.
pub const POD_CLAIM_NAME: &str = "resource.kubernetes.io/pod-claim-name";

/// The reason of the event that a claim cannot be made.
pub const FAILED_RESOURCE_CLAIM_CREATION: &str = "FailedResourceClaimCreation";

/// The field manager of `status.resourceClaimStatuses`.
pub const FIELD_MANAGER: &str = "ResourceClaimController";

/// An entry of `spec.resourceClaims`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "RawEntry")]
pub struct Entry {
    pub name: Box<str>,
    pub source: Source,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The claim of this name, which a user makes.
    Claim(Box<str>),
    /// A claim that is made from the template of this name.
    Template(Box<str>),
    /// A way that this build does not know.
    Unsupported,
}

/// An entry of `status.resourceClaimStatuses`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recorded {
    #[serde(default)]
    pub name: Box<str>,
    /// The claim's name; none if the entry needs no claim.
    #[serde(rename = "resourceClaimName", default)]
    pub claim: Option<Box<str>>,
}

/// The name of the claim of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimName<'a> {
    /// The user gave it.
    Given(&'a str),
    /// The status records it for a claim that was made from a template.
    Generated(&'a str),
    NotNeeded,
    /// The status does not record it yet.
    NotCreated,
    Unsupported,
}

/// A kind whose objects have claims.
pub trait ClaimUser: Kind {
    /// Upstream's word for such an entry in messages.
    const ENTRY: &'static str;

    fn entries(&self) -> &[Entry];

    fn recorded(&self) -> &[Recorded];

    /// Whether the claim was made for it. `accepts_groups` says whether a claim of its PodGroup counts.
    fn is_for(&self, claim: &ResourceClaim, accepts_groups: bool) -> bool;

    /// Upstream's message about an entry of no known source.
    fn unsupported(&self, entry: &str) -> String;

    /// Upstream: `Name` and `NameFromPodGroup`,
    /// staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go.
    fn claim_name<'a>(&'a self, entry: &'a Entry) -> ClaimName<'a> {
        match &entry.source {
            Source::Claim(name) => ClaimName::Given(name),
            Source::Unsupported => ClaimName::Unsupported,
            Source::Template(_) => match self.recorded().iter().find(|recorded| recorded.name == entry.name) {
                Some(Recorded { claim: Some(claim), .. }) => ClaimName::Generated(claim),
                Some(Recorded { claim: None, .. }) => ClaimName::NotNeeded,
                None => ClaimName::NotCreated,
            },
        }
    }

    /// The names of the claims that its entries use, as far as they are known.
    fn claim_names(&self) -> impl Iterator<Item = &str> {
        self.entries().iter().filter_map(|entry| match self.claim_name(entry) {
            ClaimName::Given(name) | ClaimName::Generated(name) => Some(name),
            ClaimName::NotNeeded | ClaimName::NotCreated | ClaimName::Unsupported => None,
        })
    }

    fn template_names(&self) -> impl Iterator<Item = &str> {
        self.entries().iter().filter_map(|entry| match &entry.source {
            Source::Template(name) => Some(&**name),
            Source::Claim(_) | Source::Unsupported => None,
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEntry {
    #[serde(default)]
    name: Box<str>,
    #[serde(default)]
    resource_claim_name: Option<Box<str>>,
    #[serde(default)]
    resource_claim_template_name: Option<Box<str>>,
}

impl From<RawEntry> for Entry {
    fn from(RawEntry { name, resource_claim_name, resource_claim_template_name }: RawEntry) -> Self {
        let source = match (resource_claim_name, resource_claim_template_name) {
            (Some(claim), _) => Source::Claim(claim),
            (None, Some(template)) => Source::Template(template),
            (None, None) => Source::Unsupported,
        };
        Self { name, source }
    }
}
