//! Which claims a pod gets for its ephemeral volumes.
//!
//! Upstream: `syncHandler` and `handleVolume`, `pkg/controller/volume/ephemeral/controller.go`.

use std::fmt;

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use shared::api::json;
use shared::api::list::list;
use shared::api::object::{Key, ObjectReference};
use shared::api::owner::{Owner, OwnerReference};
use shared::api::resource::PODS;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::objects::pod::{ClaimTemplate, claim_key};
use crate::observe::{Found, Observed};

pub type Next = decisions::Next<Reason, Plan>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    Nothing(Reason),
    /// Create claims for the volumes before the first one whose claim is another's, and report that one.
    Claims {
        create: Vec<NewClaim>,
        clash: Option<Clash>,
        pod: ObjectReference,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewClaim {
    pub volume: Box<str>,
    pub claim: Key,
    pub body: Bytes,
}

/// A claim that has the name of a volume's claim and was not made for its pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash {
    pub volume: Box<str>,
    pub claim: Key,
    pub pod: Key,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    NotCached,
    Gone,
    BeingDeleted,
    NoVolumes,
    /// Each volume has its claim.
    Complete,
    Missing {
        claims: Vec<String>,
    },
    /// A claim that was not made for the pod has the name of a claim that it needs.
    NameTaken {
        claim: String,
    },
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Nothing(reason) => reason.clone(),
            Self::Claims { clash: Some(clash), .. } => Reason::NameTaken { claim: clash.claim.name().to_owned() },
            Self::Claims { create, clash: None, pod: _ } => {
                Reason::Missing { claims: create.iter().map(|new| new.claim.name().to_owned()).collect() }
            }
        }
    }
}

/// Plans the next stage. A claim is created only for a pod that a live read has shown: the cache has no templates, and
/// the pod may have been replaced.
pub fn plan(Observed { pod, is_live }: &Observed) -> Next {
    let nothing = |reason| Next::Execute(Plan::Nothing(reason));
    match pod {
        None if *is_live => nothing(Reason::Gone),
        None => Next::Ask(LiveRead { step: "read the pod", reason: Reason::NotCached }),
        Some(found) if found.is_being_deleted => nothing(Reason::BeingDeleted),
        Some(found) if found.volumes.is_empty() => nothing(Reason::NoVolumes),
        Some(found) => plan_claims(found),
    }
}

fn plan_claims(Found { pod, is_being_deleted: _, volumes }: &Found) -> Next {
    let mut create = Vec::new();
    let mut clash = None;
    for volume in volumes {
        let claim = claim_key(&pod.key, &volume.name);
        match (&volume.claim, &volume.template) {
            (Some(existing), _) if existing.metadata.is_controlled_by(pod.uid) => {}
            (Some(_), _) => {
                clash = Some(Clash { volume: volume.name.clone(), claim, pod: pod.key.clone() });
                break;
            }
            (None, Some(template)) => {
                let body = claim_body(pod, &claim, template);
                create.push(NewClaim { volume: volume.name.clone(), claim, body });
            }
            (None, None) => {
                let reason = Reason::Missing { claims: vec![claim.name().to_owned()] };
                return Next::Ask(LiveRead { step: "read the pod", reason });
            }
        }
    }
    let is_complete = create.is_empty() && clash.is_none();
    Next::Execute(if is_complete {
        Plan::Nothing(Reason::Complete)
    } else {
        Plan::Claims { create, clash, pod: pod.clone() }
    })
}

fn claim_body(pod: &ObjectReference, claim: &Key, template: &ClaimTemplate) -> Bytes {
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
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        labels: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        annotations: Option<&'a RawValue>,
        owner_references: [OwnerReference<'a>; 1],
    }
    let owner = Owner { resource: PODS, key: pod.key.clone(), uid: pod.uid, being_deleted: false };
    let ClaimTemplate { labels, annotations, spec } = template;
    let metadata = Metadata {
        name: claim.name(),
        labels: labels.as_deref(),
        annotations: annotations.as_deref(),
        owner_references: [owner.controller_ref()],
    };
    json(&Body { api_version: "v1", kind: "PersistentVolumeClaim", metadata, spec: spec.as_deref() })
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing(reason) => write!(f, "nothing ({reason})"),
            Self::Claims { create, clash, pod: _ } => {
                if !create.is_empty() {
                    write!(f, "create claims {}", list(create, |new| new.claim.name().to_owned()))?;
                }
                if clash.is_some() {
                    f.write_str(if create.is_empty() { "report a name clash" } else { ", report a name clash" })?;
                }
                write!(f, " ({})", self.reason())
            }
        }
    }
}

/// The message of the event, in upstream's words.
///
/// Upstream: `VolumeIsForPod`, `k8s.io/component-helpers/storage/ephemeral/ephemeral.go`.
impl fmt::Display for Clash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { volume: _, claim, pod } = self;
        write!(f, "PVC {claim} was not created for pod {pod} (pod is not owner)")
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCached => f.write_str("not among the pods that have not started"),
            Self::Gone => f.write_str("the pod is gone"),
            Self::BeingDeleted => f.write_str("being deleted"),
            Self::NoVolumes => f.write_str("no ephemeral volumes"),
            Self::Complete => f.write_str("each ephemeral volume has its claim"),
            Self::Missing { claims } => write!(f, "missing: {}", list(claims, String::clone)),
            Self::NameTaken { claim } => write!(f, "claim {claim} exists and was not created for this pod"),
        }
    }
}
