//! Least privilege, proven both ways: what each operator asked of the apiserver, beside what its roles allow.
//!
//! What was asked comes from the apiserver's audit log, what is allowed from `kubectl kustomize manifests/<operator>`.
//! A refusal means that a role lacks something; a grant that a whole run of the suite never used means that it has too
//! much. Left out: what system:auth-delegator and the roles of every ServiceAccount allow, which are not ours.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

/// What kube-apiserver has to log for this, as `--audit-policy-file`. A watch is logged when it starts, as it may never end.
pub const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    userGroups: [system:serviceaccounts:kube-system]
  - level: None
";

const SERVICE_ACCOUNT: &str = "system:serviceaccount:kube-system:";

/// One thing that a role can allow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    pub group: String,
    /// With its subresource, as in `deployments/status`.
    pub resource: String,
    pub verb: String,
}

impl Request {
    /// Whether who may do this may do that; `*` stands for any group or resource.
    fn covers(&self, asked: &Self) -> bool {
        let is_one_of = |ours: &str, theirs: &str| ours == "*" || ours == theirs;
        self.verb == asked.verb && is_one_of(&self.group, &asked.group) && is_one_of(&self.resource, &asked.resource)
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, resource, verb } = self;
        let group = if group.is_empty() { "core" } else { group };
        write!(f, "{verb} {group}/{resource}")
    }
}

/// How often something was done, and how often refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub allowed: u64,
    pub refused: u64,
}

/// What each ServiceAccount of kube-system has asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage(BTreeMap<String, BTreeMap<Request, Count>>);

#[derive(Deserialize)]
struct AuditEvent {
    stage: String,
    verb: String,
    user: User,
    #[serde(rename = "objectRef")]
    object: Option<ObjectReference>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize)]
struct ObjectReference {
    #[serde(default, rename = "apiGroup")]
    group: String,
    resource: String,
    #[serde(default)]
    subresource: String,
}

impl Usage {
    /// Reads an audit log: one JSON event a line. A last line that is still being written is left out.
    pub fn read(log: &str) -> anyhow::Result<Self> {
        let mut usage = Self::default();
        for line in log.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            usage.count(serde_json::from_str(line)?);
        }
        Ok(usage)
    }

    fn count(&mut self, event: AuditEvent) {
        let AuditEvent { stage, verb, user, object, annotations } = event;
        // A request that goes on has two lines, one of them perhaps after we have read the log.
        let goes_on = verb == "watch";
        if goes_on != (stage == "ResponseStarted") {
            return;
        }
        let (Some(account), Some(object)) = (user.username.strip_prefix(SERVICE_ACCOUNT), object) else { return };
        let ObjectReference { group, resource, subresource } = object;
        let resource = if subresource.is_empty() { resource } else { format!("{resource}/{subresource}") };
        let request = Request { group, resource, verb };
        let count = self.0.entry(account.to_owned()).or_default().entry(request).or_default();
        match annotations.get("authorization.k8s.io/decision").map(String::as_str) {
            Some("forbid") => count.refused += 1,
            _ => count.allowed += 1,
        }
    }

    /// Where a role and what its operator did disagree, one complaint for each.
    pub fn compare(&self, operator: &str, grants: &[Request]) -> Vec<String> {
        let nothing = BTreeMap::new();
        let asked = self.0.get(operator).unwrap_or(&nothing);
        let refused = asked.iter().filter(|(_, count)| count.refused > 0);
        let refused =
            refused.map(|(request, count)| format!("{operator} was refused {} times: {request}", count.refused));
        let is_used = |grant: &Request| asked.iter().any(|(asked, count)| grant.covers(asked) && count.allowed > 0);
        let unused = grants.iter().filter(|grant| !is_used(grant) && !implied(grant).is_some_and(|by| is_used(&by)));
        let unused = unused.filter(|grant| !is_for_admission(grant));
        refused.chain(unused.map(|grant| format!("{operator} may, and never did: {grant}"))).collect()
    }
}

/// What has to be done for this grant to be needed as well: a list is what is left of a watch where the server does not
/// stream lists, an event that repeats itself is patched, and a collection goes object by object where its kind has no
/// other way.
fn implied(grant: &Request) -> Option<Request> {
    let verb = match (grant.verb.as_str(), grant.resource.as_str()) {
        ("list", _) => "watch",
        ("patch", "events") => "create",
        ("delete", "*") => "deletecollection",
        _ => return None,
    };
    Some(Request { verb: verb.to_owned(), ..grant.clone() })
}

/// Upstream's controllers may update `finalizers` of what they own. No request shows it: admission asks for it where the
/// plugin `OwnerReferencesPermissionEnforcement` is on, when a created object has an owner with blockOwnerDeletion.
fn is_for_admission(grant: &Request) -> bool {
    grant.verb == "update" && grant.resource.ends_with("/finalizers")
}

/// Everything that the roles among these objects allow, in order.
pub fn grants(objects: &[Value]) -> Vec<Request> {
    let roles = objects.iter().filter(|object| ["ClusterRole", "Role"].iter().any(|kind| object["kind"] == *kind));
    let rules = roles.flat_map(|role| role["rules"].as_array().into_iter().flatten());
    let mut grants: Vec<Request> = rules.flat_map(each).collect();
    grants.sort();
    grants.dedup();
    grants
}

/// Every combination that one rule allows.
fn each(rule: &Value) -> Vec<Request> {
    let strings = |field: &str| -> Vec<String> {
        rule[field].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let (resources, verbs) = (strings("resources"), strings("verbs"));
    let mut combinations = Vec::new();
    for group in strings("apiGroups") {
        for resource in &resources {
            let request =
                |verb: &String| Request { group: group.clone(), resource: resource.clone(), verb: verb.clone() };
            combinations.extend(verbs.iter().map(request));
        }
    }
    combinations
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(stage: &str, verb: &str, account: &str, object: &Value, decision: &str) -> String {
        let event = json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "stage": stage, "verb": verb,
            "user": {"username": account, "groups": ["system:serviceaccounts"]}, "objectRef": object,
            "annotations": {"authorization.k8s.io/decision": decision},
        });
        format!("{event}\n")
    }

    fn done(verb: &str, object: &Value) -> String {
        line("ResponseComplete", verb, "system:serviceaccount:kube-system:job-operator", object, "allow")
    }

    fn check(log: &str, rules: &Value, expected: &[&str]) {
        let role = json!({"kind": "ClusterRole", "rules": rules});
        let usage = Usage::read(log).unwrap();
        assert_eq!(usage.compare("job-operator", &grants(&[role])), expected, "{log}");
    }

    #[test]
    fn a_role_allows_exactly_what_is_done() {
        let pods = json!({"resource": "pods", "namespace": "a", "apiVersion": "v1"});
        let status = json!({"resource": "jobs", "apiGroup": "batch", "subresource": "status", "name": "a"});
        let log = done("list", &pods) + &done("create", &pods) + &done("update", &status);
        let rules = json!([
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "create"]},
            {"apiGroups": ["batch"], "resources": ["jobs/status"], "verbs": ["update"]},
        ]);
        check(&log, &rules, &[]);
        check(
            "",
            &rules,
            &[
                "job-operator may, and never did: create core/pods",
                "job-operator may, and never did: list core/pods",
                "job-operator may, and never did: update batch/jobs/status",
            ],
        );
    }

    #[test]
    fn a_refusal_is_a_complaint() {
        let account = "system:serviceaccount:kube-system:job-operator";
        let refused = line("ResponseComplete", "delete", account, &json!({"resource": "pods"}), "forbid");
        check(&refused.repeat(2), &json!([]), &["job-operator was refused 2 times: delete core/pods"]);
    }

    #[test]
    fn a_watch_counts_when_it_starts_and_once() {
        let account = "system:serviceaccount:kube-system:job-operator";
        let watch = |stage: &str| line(stage, "watch", account, &json!({"resource": "pods"}), "allow");
        let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["watch"]}]);
        check(&watch("ResponseStarted"), &rules, &[]);
        check(&watch("ResponseComplete"), &rules, &["job-operator may, and never did: watch core/pods"]);
    }

    #[test]
    fn others_and_half_written_lines_do_not_count() {
        let pods = json!({"resource": "pods"});
        let other = line("ResponseComplete", "list", "system:serviceaccount:kube-system:other", &pods, "allow");
        let whole = done("list", &pods);
        let half = &whole[..whole.len() / 2];
        let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]);
        check(&(other + half), &rules, &["job-operator may, and never did: list core/pods"]);
    }

    #[test]
    fn a_list_goes_with_a_watch_and_a_patch_of_an_event_with_its_creation() {
        let account = "system:serviceaccount:kube-system:job-operator";
        let log = line("ResponseStarted", "watch", account, &json!({"resource": "pods"}), "allow");
        let rules = json!([{"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["list"]}]);
        check(&log, &rules, &["job-operator may, and never did: list core/nodes"]);
        let rules = json!([{"apiGroups": [""], "resources": ["events"], "verbs": ["patch"]}]);
        check(&done("create", &json!({"resource": "events"})), &rules, &[]);
        check("", &rules, &["job-operator may, and never did: patch core/events"]);
    }

    #[test]
    fn who_may_do_something_to_everything_must_do_it_to_something() {
        let rules = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["list", "deletecollection", "delete"]}]);
        let pods = json!({"resource": "pods", "apiVersion": "v1"});
        check(&(done("list", &pods) + &done("deletecollection", &pods)), &rules, &[]);
        let unused =
            ["delete */*", "deletecollection */*"].map(|grant| format!("job-operator may, and never did: {grant}"));
        check(&done("list", &pods), &rules, &unused.each_ref().map(String::as_str));
    }

    #[test]
    fn finalizers_are_for_admission() {
        let rules = json!([{"apiGroups": ["batch"], "resources": ["jobs/finalizers"], "verbs": ["update", "patch"]}]);
        check("", &rules, &["job-operator may, and never did: patch batch/jobs/finalizers"]);
    }

    #[test]
    fn what_several_roles_allow_is_one_list() {
        let role = |kind: &str, verb: &str| json!({"kind": kind, "rules": [{"apiGroups": ["a", "b"], "resources": ["c"], "verbs": [verb, "get"]}]});
        let objects = [role("ClusterRole", "list"), role("Role", "get"), role("RoleBinding", "delete")];
        let grants: Vec<String> = grants(&objects).iter().map(ToString::to_string).collect();
        assert_eq!(grants, ["get a/c", "list a/c", "get b/c", "list b/c"]);
    }
}
