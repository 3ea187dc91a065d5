//! The view of a ClusterRole: its labels, its rules, and the selectors by which it aggregates the rules of other roles.
//!
//! A rule is kept as the interned text that the apiserver served, so it keeps fields that this build does not know.

use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use shared::api::intern::Text;
use shared::api::labels::Labels;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::Resource;
use shared::api::selector::{InvalidSelector, LabelSelector, Selector};

pub const CLUSTER_ROLES: Resource =
    Resource::cluster_scoped("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles");

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRole {
    pub metadata: Meta,
    /// Its rules, in order.
    #[serde(default, deserialize_with = "null_as_default")]
    pub rules: Box<[Rule]>,
    /// Which roles it aggregates; none if its rules are its own.
    #[serde(default)]
    pub aggregation_rule: Option<AggregationRule>,
}

shared::view!(ClusterRole, CLUSTER_ROLES);

/// `aggregationRule` of a role.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AggregationRule {
    /// The selectors, in order. A role is aggregated if any of them matches it.
    #[serde(default, deserialize_with = "null_as_default")]
    pub cluster_role_selectors: Box<[RoleSelector]>,
}

/// One of `clusterRoleSelectors`.
#[derive(Debug, PartialEq)]
pub struct RoleSelector {
    pub selector: Result<Selector, InvalidSelector>,
    /// Labels, each as [`label`] writes it, of which every selected role has one; `None` if the selector needs none.
    pub labels: Option<Box<[Text]>>,
}

impl<'de> Deserialize<'de> for RoleSelector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let selector = LabelSelector::deserialize(deserializer)?;
        Ok(Self { selector: Selector::parse(&selector), labels: needed_labels(&selector) })
    }
}

impl ClusterRole {
    /// Its selectors; none if it aggregates nothing.
    pub fn selectors(&self) -> &[RoleSelector] {
        self.aggregation_rule.as_ref().map_or(&[][..], |rule| &*rule.cluster_role_selectors)
    }

    pub fn selects(&self, labels: &Labels) -> bool {
        let matches = |selector: &Selector| selector.matches(labels);
        self.selectors().iter().any(|RoleSelector { selector, labels: _ }| selector.as_ref().is_ok_and(matches))
    }
}

/// A label in one text; a key has no `=`.
pub fn label(key: &str, value: &str) -> Text {
    Text::new(&format!("{key}={value}"))
}

/// The labels of the first requirement that names values.
fn needed_labels(LabelSelector { match_labels, match_expressions }: &LabelSelector) -> Option<Box<[Text]>> {
    if let Some((key, value)) = match_labels.iter().next() {
        return Some(Box::new([label(key, value)]));
    }
    let named = match_expressions.iter().find(|requirement| requirement.operator == *"In")?;
    Some(named.values.iter().map(|value| label(&named.key, value)).collect())
}

/// One rule of a role, as JSON. Rules are equal if their texts are; [`Rule::meaning`] compares what they grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule(Text);

impl Rule {
    /// The rule in a canonical form: fields are sorted, and those that are `null` or an empty list are left out.
    ///
    /// Upstream: `Semantic`, `staging/src/k8s.io/apimachinery/pkg/api/equality/semantic.go`.
    pub fn meaning(&self) -> String {
        let is_empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        match serde_json::from_str(&self.0) {
            Ok(Value::Object(mut fields)) => {
                fields.retain(|_, value| !is_empty(value));
                Value::Object(fields).to_string()
            }
            // For example a number that is too large for a `Value`.
            Ok(_) | Err(_) => self.0.to_string(),
        }
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json: &RawValue = serde_json::from_str(&self.0).map_err(S::Error::custom)?;
        json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json: Box<RawValue> = Deserialize::deserialize(deserializer)?;
        Ok(Self(Text::new(json.get())))
    }
}
