//! The views of a policy: the numbers by which a cache knows whether it has been checked, and the expressions, which are
//! read when it has not.

pub mod kinds;

use serde::Deserialize;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::Resource;

use kinds::Rule;

pub const VALIDATING_ADMISSION_POLICIES: Resource = Resource::cluster_scoped(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingAdmissionPolicy",
    "validatingadmissionpolicies",
);

#[derive(Debug, PartialEq, Deserialize)]
pub struct ValidatingAdmissionPolicy {
    pub metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: Status,
}

shared::view!(ValidatingAdmissionPolicy, VALIDATING_ADMISSION_POLICIES);

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Status {
    /// The generation that has been checked.
    #[serde(deserialize_with = "null_as_default")]
    pub observed_generation: i64,
}

impl ValidatingAdmissionPolicy {
    pub fn is_checked(&self) -> bool {
        self.metadata.generation <= self.status.observed_generation
    }
}

/// A policy as the apiserver has it.
#[derive(Debug, PartialEq, Deserialize)]
pub struct LivePolicy {
    pub metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    pub spec: Spec,
}

shared::view!(LivePolicy, VALIDATING_ADMISSION_POLICIES);

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Spec {
    pub param_kind: Option<ParamKind>,
    #[serde(deserialize_with = "null_as_default")]
    pub match_constraints: MatchConstraints,
    #[serde(deserialize_with = "null_as_default")]
    pub validations: Vec<Validation>,
    #[serde(deserialize_with = "null_as_default")]
    pub variables: Vec<Variable>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ParamKind {
    pub api_version: String,
    pub kind: String,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MatchConstraints {
    #[serde(deserialize_with = "null_as_default")]
    pub resource_rules: Vec<Rule>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Validation {
    pub expression: String,
    /// `""` if it has none.
    #[serde(deserialize_with = "null_as_default")]
    pub message_expression: String,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Variable {
    pub name: String,
    pub expression: String,
}
