//! Which operators there are and what their manifests allow them, and what one set of rules allows beyond another.
//!
//! Pure. Left out: aggregated roles, which no manifest has, and URLs that are no resources.

use anyhow::{Context, Result, bail};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};

use crate::words::nearest;

/// Each operator, and its role as this version's manifest has it.
const ROLES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/roles.rs"));
/// What may come after a controller's name.
const SUFFIXES: [&str; 2] = ["-operator", "-controller"];

/// The operators that are called so, with or without `-operator` or `-controller`; all of them where none is named.
///
/// # Errors
/// When there is no such operator.
pub fn operators(names: &[String]) -> Result<Vec<&'static str>> {
    let known = || ROLES.iter().map(|(name, _)| *name);
    if names.is_empty() {
        return Ok(known().collect());
    }
    let mut found = Vec::new();
    for name in names {
        let stem = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
        let operator = known().find(|operator| operator.strip_suffix("-operator") == Some(stem));
        let Some(operator) = operator else {
            let stems = known().filter_map(|operator| operator.strip_suffix("-operator"));
            match nearest(stem, stems, 1).first() {
                Some(near) => bail!("there is no operator {name:?}; did you mean {near:?}?"),
                None => bail!("there is no operator {name:?}; there are {}", known().collect::<Vec<_>>().join(", ")),
            }
        };
        if !found.contains(&operator) {
            found.push(operator);
        }
    }
    Ok(found)
}

/// What this version's manifest allows an operator.
pub(super) fn of_manifest(operator: &str) -> Result<Vec<PolicyRule>> {
    let (_, text) = ROLES.iter().find(|(name, _)| *name == operator).context("no such operator")?;
    let role: ClusterRole = serde_yaml::from_str(text).with_context(|| format!("read the role of {operator}"))?;
    Ok(role.rules.unwrap_or_default())
}

/// One thing that a rule allows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Right {
    pub(super) verb: String,
    pub(super) group: String,
    /// With its subresource.
    pub(super) resource: String,
    /// `""` where it is allowed for all names.
    pub(super) name: String,
}

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { verb, group, resource, name } = self;
        let group = if group.is_empty() { String::new() } else { format!(".{group}") };
        let (plural, sub) = resource.split_once('/').unwrap_or((resource, ""));
        let sub = if sub.is_empty() { String::new() } else { format!("/{sub}") };
        let name = if name.is_empty() { String::new() } else { format!(" {name}") };
        write!(f, "{verb} {plural}{group}{sub}{name}")
    }
}

/// Everything that rules allow.
pub(super) fn rights(rules: &[PolicyRule]) -> Vec<Right> {
    let mut all = Vec::new();
    for rule in rules {
        let names =
            rule.resource_names.clone().filter(|names| !names.is_empty()).unwrap_or_else(|| vec![String::new()]);
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for (verb, name) in rule.verbs.iter().flat_map(|verb| names.iter().map(move |name| (verb, name))) {
                    let (verb, group) = (verb.clone(), group.clone());
                    all.push(Right { verb, group, resource: resource.clone(), name: name.clone() });
                }
            }
        }
    }
    all.sort();
    all.dedup();
    all
}

/// What a shadow needs of them: to read.
pub(super) fn reads(rules: &[PolicyRule]) -> Vec<Right> {
    let mut rights = rights(rules);
    rights.retain(|right| ["get", "list", "watch"].contains(&right.verb.as_str()));
    rights
}

/// What `wanted` allows and `given` does not.
pub(super) fn missing(wanted: &[PolicyRule], given: &[PolicyRule]) -> Vec<Right> {
    let mut rights = rights(wanted);
    rights.retain(|right| !given.iter().any(|rule| allows(rule, right)));
    rights
}

/// Upstream: `ruleCovers`, staging/src/k8s.io/component-helpers/auth/rbac/validation/policy_comparator.go.
fn allows(rule: &PolicyRule, right: &Right) -> bool {
    let has = |list: &[String], one: &str| list.iter().any(|item| item == one || item == "*");
    let resources = rule.resources.as_deref().unwrap_or_default();
    let of_any = right.resource.split_once('/').is_some_and(|(_, sub)| resources.contains(&format!("*/{sub}")));
    let names = rule.resource_names.as_deref().unwrap_or_default();
    has(&rule.verbs, &right.verb)
        && has(rule.api_groups.as_deref().unwrap_or_default(), &right.group)
        && (has(resources, &right.resource) || of_any)
        && (names.is_empty() || names.contains(&right.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<PolicyRule> {
        let rule = |text: &str| {
            let lists: Vec<Vec<String>> =
                text.split(' ').map(|list| list.split(',').map(|item| item.replace("core", "")).collect()).collect();
            PolicyRule {
                verbs: lists[0].clone(),
                api_groups: Some(lists[1].clone()),
                resources: Some(lists[2].clone()),
                resource_names: lists.get(3).cloned(),
                ..PolicyRule::default()
            }
        };
        text.split("; ").filter(|text| !text.is_empty()).map(rule).collect()
    }

    #[test]
    fn a_right_that_is_not_there_is_named() {
        let row = |wanted: &str, given: &str, expected: &str| {
            let missing: Vec<String> = missing(&rules(wanted), &rules(given)).iter().map(ToString::to_string).collect();
            assert_eq!(missing.join(", "), expected, "{wanted} by {given}");
        };
        row("get,list core pods", "get,list,watch core pods,nodes", "");
        row("get,list core pods", "get core pods", "list pods");
        row("patch apps deployments/status", "patch apps deployments", "patch deployments.apps/status");
        row("patch apps deployments/status", "patch apps */status", "");
        row("list batch jobs", "list apps jobs; * * *", "");
        row("list * *", "list core,apps,batch pods,jobs", "list *.*");
        row("get core configmaps a", "get core configmaps b", "get configmaps a");
        row("get core configmaps a", "get core configmaps a,b", "");
        row("get core configmaps", "get core configmaps a", "get configmaps");
        row("get core configmaps a", "get core configmaps", "");
        row("get core pods", "", "get pods");
    }

    #[test]
    fn every_role_of_the_manifests_can_be_read_and_reads_something() {
        let all = operators(&[]).unwrap();
        assert!(all.len() > 10, "{all:?}");
        for operator in all {
            let rules = of_manifest(operator).unwrap();
            assert!(!reads(&rules).is_empty(), "{operator}");
            assert_eq!(missing(&rules, &rules), [], "{operator}");
        }
    }

    #[test]
    fn an_operator_is_called_by_its_controllers_name_too() {
        let called = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            operators(&names).map_err(|error| error.to_string())
        };
        assert_eq!(
            called(&["deployment", "job-controller", "deployment-operator"]),
            Ok(vec!["deployment-operator", "job-operator"])
        );
        assert_eq!(
            called(&["deploymnet"]),
            Err("there is no operator \"deploymnet\"; did you mean \"deployment\"?".to_owned())
        );
        assert!(called(&["kubelet"]).unwrap_err().contains("there are cronjob-operator, "));
    }
}
