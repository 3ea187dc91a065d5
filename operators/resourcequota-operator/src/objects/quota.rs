//! A ResourceQuota: its limits, the scopes of what it counts, and its status.
//!
//! Left out: merging. A patch of the status names what it drops; its resourceVersion says which state it follows from.

use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::Resource;

use super::evaluator::extended_resource;
use super::{Amounts, Evaluator};

/// `v1` `ResourceQuota`.
pub const RESOURCE_QUOTAS: Resource = Resource::namespaced("", "v1", "ResourceQuota", "resourcequotas");

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "RawQuota")]
pub struct ResourceQuota {
    pub metadata: Meta,
    pub hard: Amounts,
    pub scopes: Box<[Scope]>,
    pub status: QuotaStatus,
}

shared::view!(ResourceQuota, RESOURCE_QUOTAS);

impl ResourceQuota {
    /// Whether its limits, the former ones too, may be about this kind, whatever DeviceClasses there are.
    pub fn counts(&self, evaluator: &Evaluator) -> bool {
        let may_be = |name: &Text| {
            let is_claimed = *evaluator == Evaluator::ResourceClaims && extended_resource(name).is_some();
            is_claimed || Evaluator::of(name).contains(evaluator)
        };
        self.hard.keys().chain(self.status.hard.keys()).any(may_be)
    }

    /// Whether its limits, or the usage of one of them that somebody counts, are not in the status yet.
    ///
    /// Upstream: `addQuota`, `pkg/controller/resourcequota/resource_quota_controller.go`.
    pub fn lacks_usage(&self) -> bool {
        let QuotaStatus { hard, used } = &self.status;
        let is_lacking = |name: &Text| !used.contains_key(name) && !Evaluator::of(name).is_empty();
        self.hard != *hard || hard.keys().any(is_lacking)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct QuotaStatus {
    #[serde(deserialize_with = "null_as_default")]
    pub hard: Amounts,
    #[serde(deserialize_with = "null_as_default")]
    pub used: Amounts,
}

/// A requirement on what is counted: an entry of `spec.scopes`, or of `spec.scopeSelector.matchExpressions`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scope {
    /// `Terminating`, `PriorityClass`, …
    #[serde(rename = "scopeName", default)]
    pub name: Text,
    /// How it is required.
    #[serde(default)]
    pub operator: Operator,
    /// The values for [`Operator::In`] and [`Operator::NotIn`].
    #[serde(default, deserialize_with = "null_as_default")]
    pub values: Box<[Text]>,
}

/// How a scope is required.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    /// One that this build does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

impl Scope {
    /// Whether something with this value is counted. A requirement that cannot be read fits nothing.
    ///
    /// Upstream: `ScopedResourceSelectorRequirementsAsSelector`, `pkg/apis/core/v1/helper/helpers.go`.
    pub fn selects(&self, value: Option<&str>) -> bool {
        let is_listed = value.is_some_and(|value| self.values.iter().any(|listed| *listed == *value));
        match self.operator {
            Operator::In => is_listed,
            Operator::NotIn => !self.values.is_empty() && !is_listed,
            Operator::Exists => self.values.is_empty() && value.is_some(),
            Operator::DoesNotExist => self.values.is_empty() && value.is_none(),
            Operator::Unknown => false,
        }
    }
}

#[derive(Deserialize)]
struct RawQuota {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: QuotaStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    #[serde(deserialize_with = "null_as_default")]
    hard: Amounts,
    #[serde(deserialize_with = "null_as_default")]
    scopes: Vec<Text>,
    #[serde(deserialize_with = "null_as_default")]
    scope_selector: RawSelector,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSelector {
    #[serde(deserialize_with = "null_as_default")]
    match_expressions: Vec<Scope>,
}

impl From<RawQuota> for ResourceQuota {
    fn from(RawQuota { metadata, spec, status }: RawQuota) -> Self {
        let RawSpec { hard, scopes, scope_selector } = spec;
        let exists = |name| Scope { name, operator: Operator::Exists, values: Box::default() };
        let scopes = scopes.into_iter().map(exists).chain(scope_selector.match_expressions).collect();
        Self { metadata, hard, scopes, status }
    }
}
