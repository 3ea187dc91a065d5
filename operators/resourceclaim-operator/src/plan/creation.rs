//! The claim of one entry of a pod or PodGroup: there, to be made, or waited for.
//!
//! Upstream: `handleClaim` and `handlePodGroupClaim`, `pkg/controller/resourceclaim/controller.go`.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use shared::api::json;
use shared::api::owner::{Owner, OwnerReference};
use shared::api::raw::{RawObject, raw_of};

use super::reasons::{Failure, Wait};
use crate::objects::claim::ResourceClaim;
use crate::objects::template::{ClaimContent, ResourceClaimTemplate};
use crate::objects::{ClaimName, ClaimUser, Entry, POD_CLAIM_NAME, Source};
use crate::observe::users::{ObservedEntry, ObservedUser};

/// A claim that is made from a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewClaim {
    pub entry: Box<str>,
    pub body: Bytes,
    pub has_admin_access: bool,
}

/// The state of one entry.
pub(super) enum Standing<'a> {
    NotNeeded,
    /// A user's claim, or one that was made for it.
    There {
        claim: &'a Arc<ResourceClaim>,
        /// False for one that was made, and that the status does not record yet.
        is_known: bool,
    },
    Create(NewClaim),
    Waits(Wait),
    Fails(Failure),
    /// The template has to be read live.
    Read {
        template: &'a Arc<ResourceClaimTemplate>,
    },
}

/// The state of this entry. A recorded claim that belongs to somebody else is not used.
pub(super) fn standing<'a, U: ClaimUser>(
    observed: &ObservedUser<U>,
    entry: &'a Entry,
    seen: &'a ObservedEntry,
    group: Option<&str>,
) -> Standing<'a> {
    let ObservedUser { user, kind: _, entries: _, group: _, gates } = observed;
    let is_for = |claim: &&Arc<ResourceClaim>| user.is_for(claim, gates.workload_resource_claims);
    match (user.claim_name(entry), &seen.named) {
        (ClaimName::Unsupported, _) => Standing::Fails(Failure::Unsupported { message: user.unsupported(&entry.name) }),
        (ClaimName::NotNeeded, _) => Standing::NotNeeded,
        (ClaimName::Given(_), Some(claim)) => Standing::There { claim, is_known: true },
        (ClaimName::Given(claim), None) => Standing::Waits(Wait::Claim { claim: claim.to_owned() }),
        (ClaimName::Generated(_), Some(claim)) if is_for(&claim) => Standing::There { claim, is_known: true },
        (ClaimName::Generated(_) | ClaimName::NotCreated, _) => match (&seen.own, group) {
            (Some(claim), _) => Standing::There { claim, is_known: false },
            (None, Some(group)) if seen.is_groups => Standing::Waits(Wait::ClaimOfPodGroup { group: group.to_owned() }),
            (None, _) => from_template(observed, entry, seen.template.as_ref()),
        },
    }
}

fn from_template<'a, U: ClaimUser>(
    observed: &ObservedUser<U>,
    entry: &'a Entry,
    template: Option<&'a Arc<ResourceClaimTemplate>>,
) -> Standing<'a> {
    let Some(template) = template else {
        let Source::Template(name) = &entry.source else { return Standing::NotNeeded };
        return Standing::Fails(Failure::NoTemplate { template: name.to_string() });
    };
    if template.has_prioritized_list && !observed.gates.prioritized_list {
        return Standing::Fails(Failure::PrioritizedList);
    }
    let Some(spec) = template.spec.whole() else {
        return Standing::Read { template };
    };
    match claim_body(observed, entry, spec) {
        Ok(body) => {
            let has_admin_access = template.has_admin_access;
            Standing::Create(NewClaim { entry: entry.name.clone(), body, has_admin_access })
        }
        Err(error) => Standing::Fails(Failure::Unreadable { error: error.to_string() }),
    }
}

/// The JSON of a claim: field by field its template, and the annotation that says for which entry it was made.
fn claim_body<U: ClaimUser>(
    observed: &ObservedUser<U>,
    entry: &Entry,
    template: &RawValue,
) -> serde_json::Result<Bytes> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Body<'a> {
        api_version: &'static str,
        kind: &'static str,
        metadata: Metadata<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        spec: Option<&'a RawValue>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata<'a> {
        generate_name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        labels: Option<&'a RawValue>,
        annotations: RawObject<'a>,
        owner_references: [OwnerReference<'a>; 1],
    }
    let content: Option<ClaimContent<'_>> = serde_json::from_str(template.get())?;
    let ClaimContent { metadata, spec } = content.unwrap_or_default();
    let mut annotations = metadata.annotations.map(RawObject::parse).transpose()?.unwrap_or_default();
    annotations.insert(POD_CLAIM_NAME, raw_of(&entry.name));
    let ObservedUser { user, kind, .. } = observed;
    let owner = Owner { resource: kind.clone(), ..user.owner() };
    let metadata = Metadata {
        generate_name: generate_name(user.meta().name(), &entry.name),
        labels: metadata.labels,
        annotations,
        owner_references: [owner.controller_ref().without_blocking()],
    };
    Ok(json(&Body { api_version: "resource.k8s.io/v1", kind: "ResourceClaim", metadata, spec }))
}

/// The longest prefix to which a dash and five random characters can be added.
const BASE_MAX: usize = 57;

/// `<user>-<entry>-`. If that is too long, both are cut in proportion to their lengths: the apiserver would cut at the
/// end alone.
fn generate_name(user: &str, entry: &str) -> String {
    let whole = format!("{user}-{entry}-");
    if whole.len() <= BASE_MAX {
        return whole;
    }
    let part = |text: &str| text[..text.floor_char_boundary(text.len() * BASE_MAX / whole.len())].to_owned();
    format!("{}-{}", part(user), part(entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_prefix_is_cut_in_proportion() {
        for (user, entry, expected) in [
            ("web", "gpu", "web-gpu-".to_owned()),
            (&"p".repeat(49), "claim", format!("{}-claim-", "p".repeat(49))[..].to_owned()),
            (&"p".repeat(50), "claim-of", format!("{}-{}", "p".repeat(47), "claim-o")),
            (&"p".repeat(253), &"c".repeat(63), format!("{}-{}", "p".repeat(45), "c".repeat(11))),
        ] {
            let name = generate_name(user, entry);
            assert_eq!(name, expected);
            assert!(name.len() <= BASE_MAX, "{name}");
        }
    }
}
