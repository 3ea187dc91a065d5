//! The view of a Pod: its place, its readiness now and ever, or its rejection, its revision, and the claims it uses.
//!
//! Left out: volumes that are no claims, and everything else of its spec but whether it has a node.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use shared::api::intern::Text;
use shared::api::object::{Meta, NoAnnotations};
use shared::api::pod::rejection::{ContainerStatuses, rejection};
use shared::api::pod::{Phase, PodView, Readiness};
use shared::api::resource::PODS;
use shared::api::time::Time;

use super::REVISION_LABEL;

#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    pub metadata: Meta,
    pub phase: Phase,
    pub readiness: Readiness,
    /// Whether the scheduler has found no node for it.
    pub is_unschedulable: bool,
    /// Whether it is certain that it has never been ready.
    pub was_never_ready: bool,
    /// The reason for which its node has rejected it, if it did.
    pub rejection: Option<Text>,
    /// Its volumes that are claims: the volume's name and the claim's.
    pub claims: Box<[(Text, Box<str>)]>,
}

impl Pod {
    /// The name of the revision it was made from; `""` if it does not say.
    ///
    /// Upstream: `getPodRevision`, `pkg/controller/statefulset/stateful_set_utils.go`.
    pub fn revision(&self) -> &str {
        self.metadata.labels.get(REVISION_LABEL).unwrap_or_default()
    }

    pub fn claim(&self, volume: &str) -> Option<&str> {
        self.claims.iter().rfind(|(name, _)| **name == *volume).map(|(_, claim)| &**claim)
    }

    /// Whether both states of one pod lead to the same decisions.
    pub fn is_alike(&self, other: &Self) -> bool {
        let Self { metadata, phase, readiness, is_unschedulable, was_never_ready, rejection, claims } = self;
        let meta = |meta: &Meta<NoAnnotations>| {
            let Meta { labels, deletion, controller, .. } = meta;
            (labels.clone(), *deletion, controller.clone())
        };
        meta(metadata) == meta(&other.metadata)
            && (phase, readiness, claims) == (&other.phase, &other.readiness, &other.claims)
            && (is_unschedulable, was_never_ready) == (&other.is_unschedulable, &other.was_never_ready)
            && *rejection == other.rejection
    }
}

shared::view!(Pod, PODS);

impl PodView for Pod {
    fn phase(&self) -> Phase {
        self.phase
    }
    fn readiness(&self) -> Readiness {
        self.readiness
    }
}

#[derive(Deserialize)]
struct Raw<'a> {
    metadata: Meta,
    #[serde(borrow, default)]
    spec: RawSpec<'a>,
    #[serde(borrow, default)]
    status: RawStatus<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec<'a> {
    #[serde(borrow)]
    node_name: Cow<'a, str>,
    #[serde(borrow)]
    volumes: Option<Vec<RawVolume<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawVolume<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    persistent_volume_claim: Option<RawClaim<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawClaim<'a> {
    #[serde(borrow, default)]
    claim_name: Cow<'a, str>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus<'a> {
    phase: Phase,
    #[serde(borrow)]
    reason: Cow<'a, str>,
    #[serde(borrow)]
    conditions: Option<Vec<RawCondition<'a>>>,
    container_statuses: ContainerStatuses,
    init_container_statuses: ContainerStatuses,
    start_time: Option<Time>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawCondition<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    status: Cow<'a, str>,
    last_transition_time: Option<Time>,
}

impl RawStatus<'_> {
    fn condition(&self, type_: &str) -> Option<&RawCondition<'_>> {
        self.conditions.iter().flatten().find(|condition| condition.r#type == type_)
    }

    fn ready(&self) -> Option<&RawCondition<'_>> {
        self.condition("Ready")
    }

    fn is_unschedulable(&self) -> bool {
        self.condition("PodScheduled").is_some_and(|scheduled| scheduled.status == "False")
    }

    fn readiness(&self) -> Readiness {
        match self.ready().filter(|ready| ready.status == "True") {
            Some(ready) => Readiness::Ready { since: ready.last_transition_time },
            None => Readiness::NotReady,
        }
    }

    /// Whether it is certain that the pod has never been ready. In doubt it has been.
    ///
    /// A pod without a node has no containers, and a node is never taken back: one that still waits for its first was
    /// never ready. On a node the kubelet sets `startTime` with the first status that it writes, before any container
    /// runs, so that the condition starts as False at the same time. Its `lastTransitionTime` then changes with its
    /// status alone, whoever writes that, and outlives restarts of the kubelet as `startTime` does. So a condition that
    /// is False and as old as the start has never been True. One that was True is newer: to become so and to become
    /// False again takes two looks of the kubelet at the containers, which are a second apart, and times have whole
    /// seconds.
    ///
    /// In doubt are a pod on a node whose kubelet has not written yet, for it may only not have got through; a
    /// condition that is Unknown, or has no time; and a pod whose first two times lie on both sides of a second's end.
    /// Containers tell less: one that crashes again and again may have been ready each time.
    ///
    /// Upstream: `updateLastTransitionTime` and `updateStatusInternal`, `pkg/kubelet/status/status_manager.go`.
    fn was_never_ready(&self, has_node: bool) -> bool {
        match (self.ready(), self.start_time) {
            (None, None) => !has_node && self.phase == Phase::Pending,
            (Some(ready), Some(start)) => {
                ready.status == "False" && ready.last_transition_time.is_some_and(|since| since <= start)
            }
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

impl<'de> Deserialize<'de> for Pod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Raw { metadata, spec, status } = Raw::deserialize(deserializer)?;
        let claim = |volume: RawVolume<'_>| {
            let claim = volume.persistent_volume_claim?;
            Some((Text::new(&volume.name), Box::<str>::from(&*claim.claim_name)))
        };
        let was_never_ready = status.was_never_ready(!spec.node_name.is_empty());
        let claims = spec.volumes.into_iter().flatten().filter_map(claim).collect();
        let (readiness, is_unschedulable) = (status.readiness(), status.is_unschedulable());
        let RawStatus { phase, reason, container_statuses, init_container_statuses, conditions: _, start_time: _ } =
            status;
        let rejection = rejection(phase, &reason, &[container_statuses, init_container_statuses]);
        Ok(Self { metadata, phase, readiness, is_unschedulable, was_never_ready, rejection, claims })
    }
}
