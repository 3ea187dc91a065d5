//! A PodDisruptionBudget: its selector, its limit, and its whole status.
//!
//! Left out: merging. A patch of the status names the evictions that it drops; its resourceVersion says which state it
//! follows from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shared::api::int_or_percent::IntOrPercent;
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::Resource;
use shared::api::selector::{InvalidSelector, LabelSelector, Selector};
use shared::api::time::Time;

use super::conditions::DISRUPTION_ALLOWED;

/// `policy/v1` `PodDisruptionBudget`.
pub const POD_DISRUPTION_BUDGETS: Resource =
    Resource::namespaced("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");

/// A PodDisruptionBudget.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawBudget")]
pub struct PodDisruptionBudget {
    /// Its metadata.
    pub metadata: Meta,
    /// `spec.selector` as it is served.
    pub selector: Option<LabelSelector>,
    /// The same, compiled: `{}` selects every pod of the namespace, and none selects none.
    pub selects: Result<Selector, InvalidSelector>,
    /// The number or share of pods that it asks for.
    pub limit: Limit,
    /// As last written.
    pub status: BudgetStatus,
}

shared::view!(PodDisruptionBudget, POD_DISRUPTION_BUDGETS);

/// The number or share of pods that a budget asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    /// At most so many pods may be missing or unhealthy.
    MaxUnavailable(IntOrPercent),
    /// At least so many must be healthy.
    MinAvailable(IntOrPercent),
    /// Nothing.
    None,
}

impl Limit {
    /// Whether it depends on how many pods the owners ask for. For a number of healthy pods the pods that are there are
    /// enough.
    pub fn needs_scale(&self) -> bool {
        match self {
            Self::MaxUnavailable(_) | Self::MinAvailable(IntOrPercent::Percent(_) | IntOrPercent::Invalid(_)) => true,
            Self::MinAvailable(IntOrPercent::Int(_)) | Self::None => false,
        }
    }
}

/// `status` of a budget.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BudgetStatus {
    /// The generation that the numbers are about.
    pub observed_generation: i64,
    /// The pods that the apiserver has begun to evict, by name, and when.
    #[serde(deserialize_with = "null_as_default")]
    pub disrupted_pods: BTreeMap<Box<str>, Time>,
    /// How many pods may be evicted now.
    pub disruptions_allowed: i32,
    /// How many pods are healthy.
    pub current_healthy: i32,
    /// How many must be.
    pub desired_healthy: i32,
    /// How many pods there should be.
    pub expected_pods: i32,
    /// In the order they were set.
    #[serde(deserialize_with = "null_as_default")]
    pub conditions: Vec<BudgetCondition>,
}

/// A `metav1.Condition`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetCondition {
    /// `DisruptionAllowed`, or one of somebody else.
    #[serde(rename = "type")]
    pub type_: Text,
    /// `True`, `False` or `Unknown`.
    pub status: Text,
    /// The generation that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// Why, as one word.
    #[serde(default)]
    pub reason: Text,
    /// Why, for a person.
    #[serde(default)]
    pub message: Box<str>,
}

impl BudgetStatus {
    /// The condition `DisruptionAllowed`.
    pub fn allowed_condition(&self) -> Option<&BudgetCondition> {
        self.conditions.iter().find(|condition| condition.type_ == DISRUPTION_ALLOWED)
    }

    /// Sets a condition; its last transition moves with the status alone.
    ///
    /// Upstream: `SetStatusCondition`, `staging/src/k8s.io/apimachinery/pkg/api/meta/conditions.go`.
    pub fn set_condition(&mut self, condition: BudgetCondition) {
        match self.conditions.iter_mut().find(|known| known.type_ == condition.type_) {
            Some(known) if known.status == condition.status => {
                let last_transition_time = known.last_transition_time;
                *known = BudgetCondition { last_transition_time, ..condition };
            }
            Some(known) => *known = condition,
            None => self.conditions.push(condition),
        }
    }
}

#[derive(Deserialize)]
struct RawBudget {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: BudgetStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    selector: Option<LabelSelector>,
    min_available: Option<IntOrPercent>,
    max_unavailable: Option<IntOrPercent>,
}

impl From<RawBudget> for PodDisruptionBudget {
    fn from(RawBudget { metadata, spec, status }: RawBudget) -> Self {
        let RawSpec { selector, min_available, max_unavailable } = spec;
        let limit = match (max_unavailable, min_available) {
            (Some(limit), _) => Limit::MaxUnavailable(limit),
            (None, Some(limit)) => Limit::MinAvailable(limit),
            (None, None) => Limit::None,
        };
        let selects = selector.as_ref().map_or_else(|| Ok(Selector::nothing()), Selector::parse);
        Self { metadata, selector, selects, limit, status }
    }
}
