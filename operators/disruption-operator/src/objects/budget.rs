//! A PodDisruptionBudget: its selector, its limit, and its whole status.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shared::api::int_or_percent::IntOrPercent;
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::Resource;
use shared::api::selector::{InvalidSelector, LabelSelector, Selector};
use shared::api::time::Time;

use super::conditions::DISRUPTION_ALLOWED;

pub const POD_DISRUPTION_BUDGETS: Resource =
    Resource::namespaced("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawBudget")]
pub struct PodDisruptionBudget {
    pub metadata: Meta,
    /// `spec.selector` as served.
    pub selector: Option<LabelSelector>,
    /// The compiled selector: `{}` selects every pod of the namespace, and a missing one selects none.
    pub selects: Result<Selector, InvalidSelector>,
    /// `spec.maxUnavailable` or `spec.minAvailable`.
    pub limit: Limit,
    pub status: BudgetStatus,
}

shared::view!(PodDisruptionBudget, POD_DISRUPTION_BUDGETS);

/// The limit of a budget, as a number or a percentage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The most pods that may be missing or unhealthy.
    MaxUnavailable(IntOrPercent),
    /// The fewest pods that must be healthy.
    MinAvailable(IntOrPercent),
    None,
}

impl Limit {
    /// Whether it depends on the scale of the owners. For a number of healthy pods the existing pods are enough.
    pub fn needs_scale(&self) -> bool {
        match self {
            Self::MaxUnavailable(_) | Self::MinAvailable(IntOrPercent::Percent(_) | IntOrPercent::Invalid(_)) => true,
            Self::MinAvailable(IntOrPercent::Int(_)) | Self::None => false,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BudgetStatus {
    pub observed_generation: i64,
    /// The start of each running eviction, by pod name; added by the apiserver.
    #[serde(deserialize_with = "null_as_default")]
    pub disrupted_pods: BTreeMap<Box<str>, Time>,
    /// The number of pods that may be evicted now.
    pub disruptions_allowed: i32,
    pub current_healthy: i32,
    pub desired_healthy: i32,
    pub expected_pods: i32,
    #[serde(deserialize_with = "null_as_default")]
    pub conditions: Vec<BudgetCondition>,
}

/// A `metav1.Condition`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetCondition {
    /// `DisruptionAllowed`, or a type of another writer.
    #[serde(rename = "type")]
    pub type_: Text,
    /// `True`, `False` or `Unknown`.
    pub status: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The time of the last change of `status`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    #[serde(default)]
    pub reason: Text,
    #[serde(default)]
    pub message: Box<str>,
}

impl BudgetStatus {
    /// The condition `DisruptionAllowed`.
    pub fn allowed_condition(&self) -> Option<&BudgetCondition> {
        self.conditions.iter().find(|condition| condition.type_ == DISRUPTION_ALLOWED)
    }

    /// Set a condition. Its transition time changes only if its status does.
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
