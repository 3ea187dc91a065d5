//! What a stolen token of an operator allows, by its roles: the table of `docs/security.md`.
//!
//! Left out: what policies forbid, keys that a pod holds beside its token, and what every operator may do (its Lease, events,
//! reviews). The page says these in words.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::operators::{HOME, roles};

/// How much of a cluster is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// All of it: every Secret, any pod, or any identity.
    Cluster,
    /// Pods, traffic and data of everybody.
    Workloads,
    /// What the operator itself looks after.
    Own,
}

/// What verbs on a resource are worth to a stranger.
struct Threat {
    reach: Reach,
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
    could: &'static str,
}

const fn threat(
    reach: Reach,
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
    could: &'static str,
) -> Threat {
    Threat { reach, resources, verbs, could }
}

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "update", "patch", "delete", "deletecollection"];
const CHANGE: &[&str] = &["create", "update", "patch"];
const DELETE: &[&str] = &["delete", "deletecollection"];

/// The gravest first. A resource is its name with its group, which the core group lacks.
const THREATS: &[Threat] = &[
    threat(Reach::Cluster, &["*.*"], CHANGE, "change every object"),
    threat(Reach::Cluster, &["*.*"], DELETE, "delete every object"),
    threat(Reach::Cluster, &["*.*"], READ, "read everything, Secrets included"),
    threat(Reach::Cluster, &["secrets"], READ, "read Secrets"),
    threat(Reach::Cluster, &["clusterroles.rbac.authorization.k8s.io"], &["escalate"], "give any right to itself"),
    threat(Reach::Cluster, &["serviceaccounts/token"], &["create"], "act as these ServiceAccounts"),
    threat(Reach::Cluster, &["secrets"], CHANGE, "change Secrets"),
    threat(
        Reach::Cluster,
        &[
            "cronjobs.batch",
            "daemonsets.apps",
            "deployments.apps",
            "jobs.batch",
            "pods",
            "replicasets.apps",
            "replicationcontrollers",
            "statefulsets.apps",
        ],
        CHANGE,
        "run pods as any ServiceAccount, with any Secret",
    ),
    threat(Reach::Cluster, &["signers.certificates.k8s.io"], &["sign"], "answer requests of these signers"),
    threat(Reach::Cluster, &["signers.certificates.k8s.io"], &["approve"], "approve requests of nodes"),
    threat(Reach::Cluster, &["controllerrevisions.apps"], CHANGE, "change the revisions that pods are made from"),
    threat(
        Reach::Workloads,
        &["endpoints", "endpointslices.discovery.k8s.io"],
        WRITE,
        "redirect the traffic of any Service",
    ),
    threat(Reach::Workloads, &["clustertrustbundles.certificates.k8s.io", "configmaps"], WRITE, "publish another CA"),
    threat(Reach::Workloads, &["*/scale.*"], &["update", "patch"], "scale every workload"),
    threat(Reach::Workloads, &["nodes"], &["update", "patch"], "taint and label nodes, which moves pods"),
    threat(Reach::Workloads, &["nodes"], DELETE, "delete nodes, and with them their pods"),
    threat(Reach::Workloads, &["nodes/status"], WRITE, "misreport nodes, their addresses included"),
    threat(Reach::Workloads, &["jobs.batch", "pods", "replicasets.apps"], DELETE, "delete pods"),
    threat(Reach::Workloads, &["secrets"], DELETE, "delete Secrets"),
    threat(Reach::Workloads, &["pods/eviction"], WRITE, "evict pods"),
    threat(Reach::Workloads, &["pods/status"], WRITE, "misreport pods, their addresses included"),
    threat(
        Reach::Workloads,
        &["namespaces/finalize", "namespaces/status"],
        WRITE,
        "end namespaces before they are empty",
    ),
    threat(
        Reach::Workloads,
        &["persistentvolumeclaims", "persistentvolumes"],
        &["update", "patch"],
        "give volumes to other claims",
    ),
    threat(Reach::Workloads, &["persistentvolumes"], DELETE, "delete volumes"),
    threat(Reach::Workloads, &["volumeattachments.storage.k8s.io"], WRITE, "attach and detach volumes"),
    threat(Reach::Workloads, &["poddisruptionbudgets.policy/status"], WRITE, "allow evictions that a budget forbids"),
    threat(
        Reach::Workloads,
        &["resourceclaims.resource.k8s.io", "resourceclaims.resource.k8s.io/status"],
        WRITE,
        "take devices from pods",
    ),
    threat(Reach::Workloads, &["services/status"], WRITE, "change the addresses of load balancers"),
];

/// What one of an operator's rules allows on one resource.
struct Right {
    resource: String,
    verbs: BTreeSet<String>,
    /// None: in all namespaces.
    namespace: Option<String>,
    names: Vec<String>,
}

/// `jobs.batch/status` for a resource of a group, and `pods/status` for one of the core group.
fn qualified(group: &str, resource: &str) -> String {
    match (group, resource.split_once('/')) {
        ("", _) => resource.to_owned(),
        (_, Some(("*", subresource))) => format!("*/{subresource}.{group}"),
        (_, Some((resource, subresource))) => format!("{resource}.{group}/{subresource}"),
        (_, None) => format!("{resource}.{group}"),
    }
}

/// The rights in the roles of these files, those of all operators left out.
fn read_rights(roles: &[Value]) -> Vec<Right> {
    let words = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let mut rights = Vec::new();
    for role in roles {
        let namespace =
            (role["kind"] == "Role").then(|| role["metadata"]["namespace"].as_str().unwrap_or(HOME).to_owned());
        for rule in role["rules"].as_array().into_iter().flatten() {
            let pairs = words(&rule["apiGroups"]).into_iter().flat_map(|group| {
                words(&rule["resources"]).into_iter().map(move |resource| qualified(&group, &resource))
            });
            for resource in pairs.filter(|resource| !is_of_all(resource)) {
                let verbs = words(&rule["verbs"]).into_iter().collect();
                rights.push(Right {
                    resource,
                    verbs,
                    namespace: namespace.clone(),
                    names: words(&rule["resourceNames"]),
                });
            }
        }
    }
    rights
}

/// Events and reviews tell or ask; finalizers are named for admission alone, which asks for a right before an owner is set.
fn is_of_all(resource: &str) -> bool {
    resource == "events"
        || resource == "events.events.k8s.io"
        || resource.ends_with("reviews.authorization.k8s.io")
        || resource.ends_with("/finalizers")
}

impl Right {
    fn allows(&self, threat: &Threat) -> bool {
        threat.resources.iter().any(|resource| self.resource == *resource)
            && threat.verbs.iter().any(|verb| self.verbs.contains(*verb))
    }

    /// Where it holds, in words.
    fn whose(&self) -> String {
        let names = if self.names.is_empty() { String::new() } else { format!(" ({})", self.names.join(", ")) };
        self.namespace.as_ref().map_or_else(|| names.clone(), |namespace| format!("{names} in {namespace}"))
    }
}

/// What rights allow that no threat names.
fn least(rights: &[Right]) -> &'static str {
    let has = |verbs: &[&str], of_status: bool| {
        let mut of = rights.iter().filter(|right| right.resource.contains('/') == of_status);
        of.any(|right| verbs.iter().any(|verb| right.verbs.contains(*verb)))
    };
    if has(DELETE, false) {
        "delete what it looks after"
    } else if has(CHANGE, false) {
        "change what it looks after"
    } else if has(CHANGE, true) {
        "misreport what it looks after"
    } else {
        "read what it looks after"
    }
}

/// The row of an operator's roles.
fn row_of(operator: &str, roles: &[Value]) -> String {
    let rights = read_rights(roles);
    let mut reach = Reach::Own;
    let mut could: Vec<String> = Vec::new();
    for threat in THREATS {
        let of = rights.iter().filter(|right| right.allows(threat));
        // The broadest right says it; names and namespaces narrow it.
        if let Some(right) = of.min_by_key(|right| (right.namespace.is_some(), !right.names.is_empty())) {
            reach = reach.min(threat.reach);
            could.push(format!("{}{}", threat.could, right.whose()));
        }
    }
    if could.is_empty() {
        could.push(least(&rights).to_owned());
    }
    let reach = match reach {
        Reach::Cluster => "the cluster",
        Reach::Workloads => "workloads",
        Reach::Own => "its objects",
    };
    let all = |words: Vec<String>, separator: &str| {
        if words.is_empty() { "nothing".to_owned() } else { words.join(separator) }
    };
    let (mut reads, mut writes) = (BTreeSet::new(), BTreeMap::<String, BTreeSet<&str>>::new());
    for right in &rights {
        let of = format!("`{}`{}", right.resource, right.whose());
        if right.verbs.iter().any(|verb| READ.contains(&verb.as_str())) {
            reads.insert(of.clone());
        }
        let others = right.verbs.iter().map(String::as_str).filter(|verb| !READ.contains(verb));
        for verb in others {
            writes.entry(of.clone()).or_default().insert(verb);
        }
    }
    let writes =
        writes.into_iter().map(|(of, verbs)| format!("{of}: {}", verbs.into_iter().collect::<Vec<_>>().join(", ")));
    let (reads, writes) = (all(reads.into_iter().collect(), ", "), all(writes.collect(), "; "));
    format!("| {operator} | {reach} | {} | {reads} | {writes} |", could.join("; "))
}

/// The row of an operator.
pub(crate) fn row(operator: &str) -> String {
    row_of(operator, &roles(operator))
}

#[test]
fn a_row_says_the_gravest_first_and_names_every_right() {
    let row = |text: &str, expected: &str| {
        let roles: Vec<Value> = serde_yaml::from_multiple(text).unwrap();
        assert_eq!(row_of("a-operator", &roles), format!("| a-operator | {expected} |"));
    };
    let role = |rules: &str| format!("kind: ClusterRole\nrules: [{rules}]\n");
    row(
        &role(
            "{apiGroups: [batch], resources: [cronjobs, cronjobs/finalizers], verbs: [list, watch]}, {apiGroups: [''], resources: [events], verbs: [create]}",
        ),
        "its objects | read what it looks after | `cronjobs.batch` | nothing",
    );
    row(
        &role(
            "{apiGroups: [''], resources: [pods, pods/status], verbs: [delete, patch]}, {apiGroups: [batch], resources: [jobs], verbs: [create]}",
        ),
        "the cluster | run pods as any ServiceAccount, with any Secret; delete pods; misreport pods, their addresses included | nothing | \
         `jobs.batch`: create; `pods/status`: delete, patch; `pods`: delete, patch",
    );
    row(
        &role("{apiGroups: [batch], resources: [cronjobs/status], verbs: [patch]}"),
        "its objects | misreport what it looks after | nothing | `cronjobs.batch/status`: patch",
    );
    row(
        &role("{apiGroups: [a], resources: [b], verbs: [delete, patch]}"),
        "its objects | delete what it looks after | nothing | `b.a`: delete, patch",
    );
    row(
        &role("{apiGroups: ['*'], resources: ['*/scale'], verbs: [get, update]}"),
        "workloads | scale every workload | `*/scale.*` | `*/scale.*`: update",
    );
    let named = "{apiGroups: [''], resources: [configmaps], resourceNames: [a], verbs: [update]}";
    row(&role(named), "workloads | publish another CA (a) | nothing | `configmaps` (a): update");
    row(
        &format!(
            "{}---\n{}",
            role("{apiGroups: [''], resources: [secrets], verbs: [list]}").replace("Cluster", ""),
            "kind: RoleBinding\n"
        ),
        "the cluster | read Secrets in kube-system | `secrets` in kube-system | nothing",
    );
}
