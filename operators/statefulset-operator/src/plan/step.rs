//! The steps of a plan.

use std::fmt;

use shared::api::intern::Text;
use shared::api::object::{Key, ResourceVersion, Uid};

use super::claim_work::ClaimWork;
use super::reasons::{Differences, Why};
use crate::objects::pod::Pod;

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Delete(Deletion),
    /// The pod comes, and before it the claims that it lacks.
    Create(NewPod),
    /// A pod that waits gets the claims that it lacks, and these the owners of the retention policy.
    CreateClaims(ClaimsOfPod),
    /// The pod's claims get the owners of the retention policy.
    SetClaimOwners(ClaimsOfPod),
    Update(PodUpdate),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    pub key: Key,
    /// Its identity: another pod of the same name stays.
    pub uid: Uid,
    pub why: Why,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NewPod {
    pub key: Key,
    pub ordinal: i64,
    /// The name of the revision that it is made from.
    pub revision: Text,
    pub claims: ClaimWork,
    pub why: Why,
}

/// The writes that the claims of a pod need.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimsOfPod {
    pub pod: Key,
    pub claims: ClaimWork,
    pub why: Why,
}

/// A change of a pod, refused by the server if the pod is another one or was changed meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub struct PodUpdate {
    /// The namespace, and the name that it is to have.
    pub key: Key,
    pub uid: Uid,
    pub resource_version: ResourceVersion,
    pub ordinal: i64,
    pub claims: ClaimWork,
    pub differences: Differences,
    pub why: Why,
}

impl Deletion {
    pub(super) fn of(pod: &Pod, why: Why) -> Self {
        Self { key: pod.metadata.key.clone(), uid: pod.metadata.uid, why }
    }
}

impl fmt::Display for Deletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, uid: _, why } = self;
        write!(f, "delete {} [{why}]", key.name())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delete(deletion) => write!(f, "{deletion}"),
            Self::Create(NewPod { key, ordinal: _, revision, claims, why: _ }) => {
                write!(f, "create {} of {revision}{claims}", key.name())
            }
            Self::CreateClaims(of_pod) | Self::SetClaimOwners(of_pod) => {
                let ClaimsOfPod { pod, claims, why } = of_pod;
                write!(f, "claims of {} [{why}]{claims}", pod.name())
            }
            Self::Update(PodUpdate { key, claims, why, .. }) => write!(f, "update {} [{why}]{claims}", key.name()),
        }
    }
}

/// ` with data-web-0, owners of logs-web-0`; nothing where there is none.
impl fmt::Display for ClaimWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { create, being_deleted, conflicting: _, owners } = self;
        let create = create.iter().map(|claim| claim.key.name().to_owned());
        let being_deleted = being_deleted.iter().map(|claim| format!("{} once it is gone", claim.name()));
        let owners = owners.iter().map(|change| {
            let owner = change.add.as_ref().map_or("nobody", |owner| owner.key.name());
            format!("{} of {owner}", change.claim.name())
        });
        let all: Vec<String> = create.chain(being_deleted).chain(owners).collect();
        if all.is_empty() { Ok(()) } else { write!(f, " with {}", all.join(", ")) }
    }
}
