//! The roles in the manifests, and the difference between two sets of rules. Aggregated roles and non-resource URLs
//! are not supported.

use anyhow::{Context, Result, bail};
use facts::needs_cloud;
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::Value;

use crate::words::nearest;

const ROLES: &[(&str, &[&str])] = include!(concat!(env!("OUT_DIR"), "/roles.rs"));
const SUFFIXES: [&str; 2] = ["-operator", "-controller"];
/// Namespace of a Role without one, see `manifests/components/namespaced`.
const HOME: &str = "kube-system";

/// Every operator reviews tokens and access; `manifests/components/cluster-wide` adds these rights.
pub(super) const REVIEWS: [(&str, &str); 2] =
    [("authentication.k8s.io", "tokenreviews"), ("authorization.k8s.io", "subjectaccessreviews")];

#[derive(Clone, Debug, Default)]
pub(super) struct Role {
    /// `""` for a ClusterRole.
    pub(super) namespace: String,
    pub(super) rules: Vec<PolicyRule>,
}

impl Role {
    fn read(mut role: Value) -> serde_json::Result<Self> {
        let namespace = role["metadata"]["namespace"].as_str().unwrap_or(HOME);
        let namespace = if role["kind"] == "Role" { namespace.to_owned() } else { String::new() };
        let rules: Option<Vec<PolicyRule>> = serde_json::from_value(role["rules"].take())?;
        let reviews = REVIEWS.map(|(group, resource)| PolicyRule {
            api_groups: Some(vec![group.to_owned()]),
            resources: Some(vec![resource.to_owned()]),
            verbs: vec!["create".to_owned()],
            ..PolicyRule::default()
        });
        let added = reviews.into_iter().filter(|_| namespace.is_empty());
        let rules = rules.into_iter().flatten().chain(added).collect();
        Ok(Self { namespace, rules })
    }

    pub(super) fn kind(&self) -> &'static str {
        if self.namespace.is_empty() { "ClusterRole" } else { "Role" }
    }

    /// Name as shown: `job-operator`, or `kube-public/job-operator`.
    pub(super) fn place(&self, name: &str) -> String {
        if self.namespace.is_empty() { name.to_owned() } else { format!("{}/{name}", self.namespace) }
    }
}

/// Operators by name, with or without `-operator` or `-controller`; if `names` is empty, all that run without a cloud's
/// provider, because a shadow has none.
pub fn operators(names: &[String]) -> Result<Vec<&'static str>> {
    let known = || ROLES.iter().map(|(name, _)| *name);
    if names.is_empty() {
        return Ok(known().filter(|operator| !needs_cloud(operator)).collect());
    }
    let mut found = Vec::new();
    for name in names {
        let stem = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
        let operator = known().find(|operator| operator.strip_suffix("-operator") == Some(stem));
        let Some(operator) = operator else {
            let stems = known().filter_map(|operator| operator.strip_suffix("-operator"));
            match nearest(stem, stems, 1).first() {
                Some(near) => bail!("unknown operator {name:?}; did you mean {near:?}?"),
                None => bail!("unknown operator {name:?}; known: {}", known().collect::<Vec<_>>().join(", ")),
            }
        };
        if !found.contains(&operator) {
            found.push(operator);
        }
    }
    Ok(found)
}

pub(super) fn of_manifest(operator: &str) -> Result<Vec<Role>> {
    let (_, texts) = ROLES.iter().find(|(name, _)| *name == operator).context("unknown operator")?;
    let of = || format!("cannot read the roles of {operator}");
    let mut roles = Vec::new();
    for text in *texts {
        let objects: Vec<Value> = serde_yaml::from_multiple(text).with_context(of)?;
        let objects = objects.into_iter().filter(|object| object["kind"] != "RoleBinding");
        for object in objects {
            roles.push(Role::read(object).with_context(of)?);
        }
    }
    Ok(roles)
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Right {
    pub(super) verb: String,
    pub(super) group: String,
    pub(super) resource: String,
    /// `""` for all names.
    pub(super) name: String,
    /// `""` for all namespaces.
    pub(super) namespace: String,
}

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { verb, group, resource, name, namespace } = self;
        let group = if group.is_empty() { String::new() } else { format!(".{group}") };
        let (plural, sub) = resource.split_once('/').unwrap_or((resource, ""));
        let sub = if sub.is_empty() { String::new() } else { format!("/{sub}") };
        let name = if name.is_empty() { String::new() } else { format!(" {name}") };
        let namespace = if namespace.is_empty() { String::new() } else { format!(" in {namespace}") };
        write!(f, "{verb} {plural}{group}{sub}{name}{namespace}")
    }
}

pub(super) fn rights(rules: &[PolicyRule]) -> Vec<Right> {
    let mut all = Vec::new();
    for rule in rules {
        let names =
            rule.resource_names.clone().filter(|names| !names.is_empty()).unwrap_or_else(|| vec![String::new()]);
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for (verb, name) in rule.verbs.iter().flat_map(|verb| names.iter().map(move |name| (verb, name))) {
                    let (verb, group) = (verb.clone(), group.clone());
                    let (resource, name) = (resource.clone(), name.clone());
                    all.push(Right { verb, group, resource, name, namespace: String::new() });
                }
            }
        }
    }
    all.sort();
    all.dedup();
    all
}

pub(super) fn reads(roles: &[Role]) -> Vec<Right> {
    let within = |Role { namespace, rules }: &Role| {
        rights(rules).into_iter().map(|right| Right { namespace: namespace.clone(), ..right }).collect::<Vec<_>>()
    };
    let mut rights: Vec<Right> = roles.iter().flat_map(within).collect();
    rights.retain(|right| ["get", "list", "watch"].contains(&right.verb.as_str()));
    rights
}

/// Rights in `wanted` that `given` lacks.
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
        assert!(ROLES.len() > 10);
        for (operator, _) in ROLES {
            let roles = of_manifest(operator).unwrap();
            assert!(!reads(&roles).is_empty(), "{operator}");
            for Role { rules, namespace: _ } in roles {
                assert_eq!(missing(&rules, &rules), [], "{operator}");
            }
        }
    }

    #[test]
    fn an_operator_has_the_roles_of_both_of_its_files() {
        let roles = of_manifest("storageversion-garbage-collector-operator").unwrap();
        assert_eq!(roles.iter().map(Role::kind).collect::<Vec<_>>(), ["ClusterRole", "Role"]);
    }

    #[test]
    fn a_role_of_one_namespace_is_needed_there() {
        let row = |role: Value, expected: &str| {
            let role = Role::read(role).unwrap();
            let read = reads(std::slice::from_ref(&role)).iter().map(ToString::to_string).collect::<Vec<_>>();
            assert_eq!(format!("{} {}: {}", role.kind(), role.place("a-operator"), read.join(", ")), expected);
        };
        let rules = serde_json::json!([{ "verbs": ["list", "delete"], "apiGroups": [""], "resources": ["secrets"] }]);
        let of =
            |kind: &str, metadata: Value| serde_json::json!({ "kind": kind, "metadata": metadata, "rules": rules });
        row(of("ClusterRole", Value::Null), "ClusterRole a-operator: list secrets");
        row(of("Role", Value::Null), "Role kube-system/a-operator: list secrets in kube-system");
        let there = serde_json::json!({ "namespace": "kube-public" });
        row(of("Role", there), "Role kube-public/a-operator: list secrets in kube-public");
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
            Err("unknown operator \"deploymnet\"; did you mean \"deployment\"?".to_owned())
        );
        assert!(called(&["kubelet"]).unwrap_err().contains(", cronjob-operator, "));
        let all = called(&[]).unwrap();
        assert!(all.contains(&"ttl-operator"), "{all:?}");
        assert!(!all.contains(&"service-lb-operator"), "{all:?}");
        assert_eq!(called(&["service-lb"]), Ok(vec!["service-lb-operator"]));
    }
}
