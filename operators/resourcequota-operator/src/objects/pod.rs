//! A pod: the resources that it takes, whether it still counts, and the scopes that it is in.
//!
//! Its resources are summed up when it is read: equal pods share one sum. Left out: containers, once they are summed
//! up; and ephemeral ones, which cannot ask for anything.

mod resources;

use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use serde::Deserialize;
use shared::api::condition::Condition;
use shared::api::intern::{Interner, Text};
use shared::api::object::{Key, Meta, ResourceVersion, Uid, null_as_default};
use shared::api::pod::Phase;
use shared::api::quantity::{Format, Quantity};
use shared::api::time::Time;

use super::evaluator::is_extended;
use super::{Amounts, TooLarge, countable};
use resources::{Container, ContainerStatus, Of, Resources, is_best_effort, total};

#[derive(Debug, PartialEq, Deserialize)]
#[serde(try_from = "RawPod")]
pub struct Pod {
    pub key: Key,
    pub resource_version: ResourceVersion,
    pub facts: PodFacts,
}

countable!(Pod, PodFacts);

#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each scope asks for another one")]
pub struct PodFacts {
    pub charge: Arc<Charge>,
    /// No container of it will ever run again.
    pub has_ended: bool,
    /// Of one that is being deleted: after this it takes nothing any more, ended or not.
    pub counts_until: Option<Time>,
    /// Whether it may only run for a time.
    pub is_terminating: bool,
    /// Whether it asks for no CPU and no memory.
    pub is_best_effort: bool,
    /// Its priority class, `""` for none.
    pub priority_class: Text,
    pub has_cross_namespace_affinity: bool,
    pub extended: Option<Box<Extended>>,
}

/// A pod that asks for extended resources, for which a claim may be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extended {
    pub uid: Uid,
    /// The name of that claim, once it is known.
    pub claim: Option<Text>,
}

impl PodFacts {
    /// Whether it takes anything at this time.
    ///
    /// Upstream: `QuotaV1Pod`, `pkg/quota/v1/evaluator/core/pods.go`.
    pub fn counts(&self, now: Timestamp) -> bool {
        !self.has_ended && self.counts_until.is_none_or(|until| now <= until.timestamp())
    }
}

/// The resources that a pod takes, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Charge {
    requests: Box<[Amount]>,
    limits: Box<[Amount]>,
}

/// A quantity's equality leaves its format out; of equal quantities that print in two ways each has to stay.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Amount {
    name: Text,
    quantity: Quantity,
    format: Format,
}

static CHARGES: LazyLock<Interner<Charge>> = LazyLock::new(Interner::new);

impl Charge {
    /// The shared copy: all pods of one owner take the same.
    fn shared(requests: Amounts, limits: Amounts) -> Arc<Self> {
        let amounts = |amounts: Amounts| -> Box<[Amount]> {
            let amount = |(name, quantity): (Text, Quantity)| Amount { name, quantity, format: quantity.format() };
            amounts.into_iter().map(amount).collect()
        };
        CHARGES.intern_owned(Self { requests: amounts(requests), limits: amounts(limits) })
    }

    pub fn request(&self, name: &str) -> Option<Quantity> {
        self.requests.iter().find(|amount| amount.name == *name).map(|amount| amount.quantity)
    }

    fn has_extended(&self) -> bool {
        self.requests.iter().any(|amount| is_extended(&amount.name))
    }

    pub fn limit(&self, name: &str) -> Option<Quantity> {
        self.limits.iter().find(|amount| amount.name == *name).map(|amount| amount.quantity)
    }
}

#[derive(Deserialize)]
struct RawPod {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: Spec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    #[serde(deserialize_with = "null_as_default")]
    containers: Vec<Container>,
    #[serde(deserialize_with = "null_as_default")]
    init_containers: Vec<Container>,
    resources: Option<Resources>,
    #[serde(deserialize_with = "null_as_default")]
    overhead: Amounts,
    active_deadline_seconds: Option<i64>,
    #[serde(deserialize_with = "null_as_default")]
    priority_class_name: Text,
    #[serde(deserialize_with = "null_as_default")]
    affinity: Affinity,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    #[serde(deserialize_with = "null_as_default")]
    phase: Phase,
    #[serde(deserialize_with = "null_as_default")]
    qos_class: String,
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<Condition>,
    #[serde(deserialize_with = "null_as_default")]
    container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "null_as_default")]
    init_container_statuses: Vec<ContainerStatus>,
    #[serde(rename = "extendedResourceClaimStatus", deserialize_with = "null_as_default")]
    extended: RawClaimStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawClaimStatus {
    resource_claim_name: Option<Text>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Affinity {
    #[serde(deserialize_with = "null_as_default")]
    pod_affinity: PodAffinity,
    #[serde(deserialize_with = "null_as_default")]
    pod_anti_affinity: PodAffinity,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution", deserialize_with = "null_as_default")]
    required: Vec<Term>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution", deserialize_with = "null_as_default")]
    preferred: Vec<WeightedTerm>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WeightedTerm {
    #[serde(deserialize_with = "null_as_default")]
    pod_affinity_term: Term,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Term {
    #[serde(deserialize_with = "null_as_default")]
    namespaces: Vec<Text>,
    /// Even an empty one is one.
    namespace_selector: Option<serde::de::IgnoredAny>,
}

impl Affinity {
    /// Upstream: `usesCrossNamespacePodAffinity`, `pkg/quota/v1/evaluator/core/pods.go`.
    fn is_across_namespaces(&self) -> bool {
        let of = |affinity: &PodAffinity| {
            let preferred = affinity.preferred.iter().map(|weighted| &weighted.pod_affinity_term);
            let mut terms = affinity.required.iter().chain(preferred);
            terms.any(|term| !term.namespaces.is_empty() || term.namespace_selector.is_some())
        };
        of(&self.pod_affinity) || of(&self.pod_anti_affinity)
    }
}

impl TryFrom<RawPod> for Pod {
    type Error = TooLarge;

    fn try_from(RawPod { metadata, spec, status }: RawPod) -> Result<Self, TooLarge> {
        let charge = Charge::shared(total(&spec, &status, Of::Requests)?, total(&spec, &status, Of::Limits)?);
        let Meta { key, uid, resource_version, deletion, deletion_grace_seconds, .. } = metadata;
        let end = |deletion: Time| Time::from_second(deletion.second().saturating_add(deletion_grace_seconds));
        let claim = status.extended.resource_claim_name.clone();
        let facts = PodFacts {
            extended: charge.has_extended().then(|| Box::new(Extended { uid, claim })),
            charge,
            has_ended: status.phase.is_terminal(),
            counts_until: deletion.map(end),
            is_terminating: spec.active_deadline_seconds.is_some_and(|seconds| seconds >= 0),
            is_best_effort: is_best_effort(&spec, &status),
            has_cross_namespace_affinity: spec.affinity.is_across_namespaces(),
            priority_class: spec.priority_class_name,
        };
        Ok(Self { key, resource_version, facts })
    }
}
