//! Which kinds a policy's objects have, by its rules and by what the apiserver serves.
//!
//! Upstream: `typesToCheck` and `paramsGVK`, `typechecking.go`.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use shared::api::object::null_as_default;
use shared::transport::discovery::Served;

use super::{ParamKind, Spec};

/// How many kinds one rule may add.
const OF_RULE_MAX: usize = 10;
/// How many kinds all rules may add; upstream has no such limit.
const IN_ALL_MAX: usize = 50;

/// A kind of object, in the order in which warnings list them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupVersionKind {
    pub group: String,
    pub version: String,
    pub kind: String,
}

/// As Go prints it.
impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

/// One of `resourceRules`.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Rule {
    #[serde(deserialize_with = "null_as_default")]
    api_groups: Vec<String>,
    #[serde(deserialize_with = "null_as_default")]
    api_versions: Vec<String>,
    #[serde(deserialize_with = "null_as_default")]
    resources: Vec<String>,
}

impl Rule {
    /// What the rule names, sorted; none with a wildcard.
    ///
    /// Upstream: `extractGroups`, `extractVersions` and `extractResources`.
    fn named(&self) -> Option<[Vec<&str>; 3]> {
        let has_wildcard = |names: &[String]| names.iter().any(|name| name.contains('*'));
        if has_wildcard(&self.api_groups) || has_wildcard(&self.api_versions) {
            return None;
        }
        let mut named = [&self.api_groups, &self.api_versions, &self.resources]
            .map(|names| names.iter().map(String::as_str).collect::<Vec<&str>>());
        named[2].retain(|resource| !resource.contains(['*', '/']));
        for names in &mut named {
            names.sort_unstable();
        }
        named.iter().all(|names| !names.is_empty()).then_some(named)
    }
}

impl Spec {
    /// Whether discovery is needed to tell the kinds.
    pub fn names_kinds(&self) -> bool {
        self.match_constraints.resource_rules.iter().any(|rule| rule.named().is_some())
    }

    /// The kinds to check, of those that are served.
    pub fn kinds(&self, served: &[Served]) -> BTreeSet<GroupVersionKind> {
        let mut kinds = BTreeSet::new();
        for [groups, versions, resources] in self.match_constraints.resource_rules.iter().filter_map(Rule::named) {
            let mut of_rule = 0;
            for group in groups {
                for version in &versions {
                    for resource in &resources {
                        for kind in kinds_of(served, group, version, resource) {
                            kinds.insert(kind);
                            of_rule += 1;
                            // Upstream leaves the other rules out, too.
                            if of_rule == OF_RULE_MAX || kinds.len() == IN_ALL_MAX {
                                return kinds;
                            }
                        }
                    }
                }
            }
        }
        kinds
    }

    /// The kind of its parameters, if it names one.
    pub fn param_kind(&self) -> Option<GroupVersionKind> {
        let ParamKind { api_version, kind } = self.param_kind.as_ref()?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let is_empty = group.is_empty() && version.is_empty() && kind.is_empty();
        (!version.contains('/') && !is_empty).then(|| GroupVersionKind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.clone(),
        })
    }
}

/// The kinds of a resource. Without a group, upstream's mapper takes each group that has the resource in this version.
///
/// Upstream: `KindsFor`, `staging/src/k8s.io/apimachinery/pkg/api/meta/restmapper.go`.
fn kinds_of<'a>(
    served: &'a [Served],
    group: &'a str,
    version: &'a str,
    resource: &str,
) -> impl Iterator<Item = GroupVersionKind> + use<'a> {
    let plural = resource.to_lowercase();
    served.iter().map(|served| &served.resource).filter_map(move |found| {
        let is_it = (group.is_empty() || found.group == group) && found.version == version && found.plural == plural;
        is_it.then(|| GroupVersionKind {
            group: found.group.to_string(),
            version: found.version.to_string(),
            kind: found.kind.to_string(),
        })
    })
}
