//! Least privilege, proven both ways: each operator's requests to the apiserver, beside the grants of its roles.
//!
//! Requests come from the apiserver's audit log, grants from `kubectl kustomize manifests/<operator>`.
//! A refusal means that a role lacks something; a grant that a whole run of the suite never used means that it has too
//! much: it is compared with its names and its namespace, and a request speaks for the narrowest grant that allows
//! it. So a request that a Role allows does not justify a grant to do something everywhere, nor does one kind justify
//! a grant for all kinds.
//! Left out: grants without names that could have some, for the names in a test are its own; and the grants of
//! system:auth-delegator and of the roles of every ServiceAccount, which are not ours.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use facts::Facts;
use serde::Deserialize;
use serde_json::Value;

/// The `--audit-policy-file` of kube-apiserver for this. A watch is logged when it starts, as it may never end.
pub const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    userGroups: [system:serviceaccounts:kube-system]
  - level: None
";

const SERVICE_ACCOUNT: &str = "system:serviceaccount:kube-system:";
const HOME: &str = "kube-system";

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Action {
    pub group: String,
    /// With its subresource, as in `deployments/status`.
    pub resource: String,
    pub verb: String,
}

impl Action {
    /// Whether a right to the one is a right to the other; `*` stands for any group or resource, and `*/scale` for this
    /// subresource of any resource.
    fn covers(&self, asked: &Self) -> bool {
        let is_one_of = |ours: &str, theirs: &str| ours == "*" || ours == theirs;
        let is_of_any = |ours: &str, theirs: &str| {
            let subresource = ours.strip_prefix('*').filter(|subresource| !subresource.is_empty());
            subresource.is_some_and(|subresource| theirs.ends_with(subresource))
        };
        let is_resource = is_one_of(&self.resource, &asked.resource) || is_of_any(&self.resource, &asked.resource);
        self.verb == asked.verb && is_one_of(&self.group, &asked.group) && is_resource
    }

    fn is_wildcard(&self) -> bool {
        self.group == "*" || self.resource.starts_with('*')
    }

    fn kind(&self) -> (&str, &str) {
        (&self.group, &self.resource)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, resource, verb } = self;
        let group = if group.is_empty() { "core" } else { group };
        write!(f, "{verb} {group}/{resource}")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    pub action: Action,
    /// Empty for an object or a collection in no namespace, and for all namespaces.
    pub namespace: String,
    /// Empty for a collection. A list or watch that selects one name is about that one.
    pub name: String,
}

impl Request {
    fn is_write(&self) -> bool {
        let Action { verb, resource, .. } = &self.action;
        let is_review = matches!(resource.as_str(), "tokenreviews" | "subjectaccessreviews");
        !matches!(verb.as_str(), "get" | "list" | "watch") && !is_review
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    pub action: Action,
    /// That of a Role; none for everywhere.
    pub namespace: Option<String>,
    /// One of `resourceNames`; none for any.
    pub name: Option<String>,
}

impl Grant {
    fn covers(&self, asked: &Request) -> bool {
        self.action.covers(&asked.action)
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == asked.namespace)
            && self.name.as_ref().is_none_or(|name| *name == asked.name)
    }

    /// Whether this allows all that the other does, and more.
    fn is_broader_than(&self, other: &Self) -> bool {
        let covers = |ours: &Option<String>, theirs: &Option<String>| ours.is_none() || ours == theirs;
        self != other
            && self.action.covers(&other.action)
            && covers(&self.namespace, &other.namespace)
            && covers(&self.name, &other.name)
    }

    /// Whether these requests show that it is needed: of as many kinds as it must be for, and somewhere else than in the
    /// operator's own namespace if it is for all of them.
    fn is_justified_by(&self, requests: &[&Request]) -> bool {
        let kinds: BTreeSet<_> = requests.iter().map(|asked| asked.action.kind()).collect();
        let is_at_home = requests.iter().all(|asked| asked.namespace == HOME);
        kinds.len() > usize::from(self.action.is_wildcard()) && (self.namespace.is_some() || !is_at_home)
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { action, namespace, name } = self;
        write!(f, "{action}")?;
        if let Some(name) = name {
            write!(f, " called {name}")?;
        }
        namespace.as_ref().map_or(Ok(()), |namespace| write!(f, " in {namespace}"))
    }
}

/// How often something was done, and how often refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub allowed: u64,
    pub refused: u64,
}

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
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
}

impl ObjectReference {
    fn request(self, verb: String) -> Request {
        let Self { group, resource, subresource, namespace, name } = self;
        // The log has the name of a created object, and RBAC doesn't know it.
        let name = if verb == "create" && subresource.is_empty() { String::new() } else { name };
        let resource = if subresource.is_empty() { resource } else { format!("{resource}/{subresource}") };
        Request { action: Action { group, resource, verb }, namespace, name }
    }
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
        let count = self.0.entry(account.to_owned()).or_default().entry(object.request(verb)).or_default();
        match annotations.get("authorization.k8s.io/decision").map(String::as_str) {
            Some("forbid") => count.refused += 1,
            _ => count.allowed += 1,
        }
    }

    pub fn shows(&self, operator: &str, action: &Action) -> bool {
        let is_done = |(request, count): (&Request, &Count)| request.action == *action && count.allowed > 0;
        self.0.get(operator).is_some_and(|asked| asked.iter().any(is_done))
    }

    /// The requests of an operator that may change something, reviews of who may see its pages aside.
    pub fn writes(&self, operator: &str) -> Vec<&Request> {
        self.asked(operator).filter(|request| request.is_write()).collect()
    }

    pub fn count_asked(&self, operator: &str) -> usize {
        self.asked(operator).count()
    }

    fn asked(&self, operator: &str) -> impl Iterator<Item = &Request> {
        self.0.get(operator).into_iter().flat_map(BTreeMap::keys)
    }

    /// The differences between a role and its operator's requests, one complaint for each.
    pub fn compare(&self, operator: &str, grants: &[Grant]) -> Vec<String> {
        let nothing = BTreeMap::new();
        let asked = self.0.get(operator).unwrap_or(&nothing);
        let mut refused = BTreeMap::<&Action, (u64, &Request)>::new();
        for (request, count) in asked.iter().filter(|(_, count)| count.refused > 0) {
            refused.entry(&request.action).or_insert((0, request)).0 += count.refused;
        }
        let refused = refused.iter().map(|(action, (times, Request { namespace, name, .. }))| {
            format!("{operator} was refused {times} times: {action}, such as {name:?} in {namespace:?}")
        });
        let allowed: Vec<&Request> =
            asked.iter().filter(|(_, count)| count.allowed > 0).map(|(asked, _)| asked).collect();
        let unused = grants.iter().filter(|grant| !is_never_shown(operator, &grant.action));
        let unused = unused.filter(|grant| !grant.is_justified_by(&needs(grant, grants, &allowed)));
        refused.chain(unused.map(|grant| format!("{operator} may, and never needed to: {grant}"))).collect()
    }
}

/// The requests that this grant allows, and no narrower one.
fn needs<'a>(grant: &Grant, grants: &[Grant], allowed: &[&'a Request]) -> Vec<&'a Request> {
    let allows =
        |grant: &Grant, asked: &Request| grant.covers(asked) || implied(grant).is_some_and(|by| by.covers(asked));
    let narrower: Vec<&Grant> = grants.iter().filter(|other| grant.is_broader_than(other)).collect();
    let asked = allowed.iter().copied().filter(|asked| allows(grant, asked));
    asked.filter(|asked| !narrower.iter().any(|narrower| allows(narrower, asked))).collect()
}

/// The grant whose use shows that this one is needed as well: where the server does not stream lists, a watch begins
/// with a list; an event that repeats itself is patched; and a collection goes object by object where its kind has no
/// other way.
fn implied(grant: &Grant) -> Option<Grant> {
    let verb = match (grant.action.verb.as_str(), grant.action.resource.as_str()) {
        ("list", _) => "watch",
        ("patch", "events") => "create",
        ("delete", "*") => "deletecollection",
        _ => return None,
    };
    Some(Grant { action: Action { verb: verb.to_owned(), ..grant.action.clone() }, ..grant.clone() })
}

/// Whether no request of the operator's life can show that it needs this right.
///
/// Admission asks for `update` of `finalizers` where the plugin `OwnerReferencesPermissionEnforcement` is on. Reviews are
/// created when somebody asks for an operator's pages.
fn is_never_shown(operator: &str, Action { group: _, resource, verb }: &Action) -> bool {
    let facts = facts::of(operator);
    let is_known = |facts: &Facts| facts.rights_without_request.contains(&format!("{verb} {resource}").as_str());
    match (verb.as_str(), resource.as_str()) {
        ("update", finalizers) if finalizers.ends_with("/finalizers") => true,
        ("create", "tokenreviews") => true,
        ("create", "subjectaccessreviews") => facts.is_none_or(|facts| !facts.reviews_access),
        _ => facts.is_some_and(is_known),
    }
}

/// Everything that the roles among these objects allow, in order.
pub fn grants(objects: &[Value]) -> Vec<Grant> {
    let roles = objects.iter().filter(|object| ["ClusterRole", "Role"].iter().any(|kind| object["kind"] == *kind));
    let mut grants: Vec<Grant> = roles.flat_map(of_role).collect();
    grants.sort();
    grants.dedup();
    grants
}

fn of_role(role: &Value) -> Vec<Grant> {
    let namespace = role["metadata"]["namespace"].as_str().map(str::to_owned);
    role["rules"].as_array().into_iter().flatten().flat_map(|rule| each(rule, namespace.as_deref())).collect()
}

fn each(rule: &Value, namespace: Option<&str>) -> Vec<Grant> {
    let strings = |field: &str| -> Vec<String> {
        rule[field].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let (resources, verbs) = (strings("resources"), strings("verbs"));
    let names: Vec<Option<String>> = match strings("resourceNames") {
        names if names.is_empty() => vec![None],
        names => names.into_iter().map(Some).collect(),
    };
    let mut grants = Vec::new();
    for group in strings("apiGroups") {
        for (resource, verb) in resources.iter().flat_map(|resource| verbs.iter().map(move |verb| (resource, verb))) {
            let action = Action { group: group.clone(), resource: resource.clone(), verb: verb.clone() };
            let namespace = namespace.map(str::to_owned);
            grants.extend(names.iter().map(|name| Grant {
                action: action.clone(),
                namespace: namespace.clone(),
                name: name.clone(),
            }));
        }
    }
    grants
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
    fn a_review_is_no_write_and_a_refused_write_is_one() {
        let review = json!({"resource": "subjectaccessreviews", "apiGroup": "authorization.k8s.io"});
        let lease = json!({"resource": "leases", "apiGroup": "coordination.k8s.io", "namespace": "kube-system"});
        let account = "system:serviceaccount:kube-system:job-operator";
        let reads = done("create", &review) + &done("list", &lease) + &done("get", &lease);
        let usage = Usage::read(&reads).unwrap();
        assert_eq!((usage.count_asked("job-operator"), usage.writes("job-operator")), (3, Vec::new()));
        let usage = Usage::read(&line("ResponseComplete", "create", account, &lease, "forbid")).unwrap();
        assert_eq!(usage.writes("job-operator").len(), 1);
        assert_eq!(usage.count_asked("cronjob-operator"), 0);
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
                "job-operator may, and never needed to: create core/pods",
                "job-operator may, and never needed to: list core/pods",
                "job-operator may, and never needed to: update batch/jobs/status",
            ],
        );
    }

    #[test]
    fn a_refusal_is_a_complaint() {
        let account = "system:serviceaccount:kube-system:job-operator";
        let refused = line("ResponseComplete", "delete", account, &json!({"resource": "pods"}), "forbid");
        check(
            &refused.repeat(2),
            &json!([]),
            &[r#"job-operator was refused 2 times: delete core/pods, such as "" in """#],
        );
    }

    #[test]
    fn the_log_shows_what_an_operator_was_allowed_to_do() {
        let account = "system:serviceaccount:kube-system:job-operator";
        let refused = line("ResponseComplete", "delete", account, &json!({"resource": "pods"}), "forbid");
        let usage = Usage::read(&(refused + &done("list", &json!({"resource": "pods", "namespace": "a"})))).unwrap();
        let action = |verb: &str| Action { group: String::new(), resource: "pods".to_owned(), verb: verb.to_owned() };
        assert!(usage.shows("job-operator", &action("list")));
        assert!(!usage.shows("job-operator", &action("delete")));
        assert!(!usage.shows("other", &action("list")));
    }

    #[test]
    fn a_watch_counts_when_it_starts_and_once() {
        let account = "system:serviceaccount:kube-system:job-operator";
        let watch = |stage: &str| line(stage, "watch", account, &json!({"resource": "pods"}), "allow");
        let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["watch"]}]);
        check(&watch("ResponseStarted"), &rules, &[]);
        check(&watch("ResponseComplete"), &rules, &["job-operator may, and never needed to: watch core/pods"]);
    }

    #[test]
    fn others_and_half_written_lines_do_not_count() {
        let pods = json!({"resource": "pods"});
        let other = line("ResponseComplete", "list", "system:serviceaccount:kube-system:other", &pods, "allow");
        let whole = done("list", &pods);
        let half = &whole[..whole.len() / 2];
        let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]);
        check(&(other + half), &rules, &["job-operator may, and never needed to: list core/pods"]);
    }

    #[test]
    fn a_list_goes_with_a_watch_and_a_patch_of_an_event_with_its_creation() {
        let account = "system:serviceaccount:kube-system:job-operator";
        let log = line("ResponseStarted", "watch", account, &json!({"resource": "pods"}), "allow");
        let rules = json!([{"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["list"]}]);
        check(&log, &rules, &["job-operator may, and never needed to: list core/nodes"]);
        let rules = json!([{"apiGroups": [""], "resources": ["events"], "verbs": ["patch"]}]);
        check(&done("create", &json!({"resource": "events"})), &rules, &[]);
        check("", &rules, &["job-operator may, and never needed to: patch core/events"]);
    }

    #[test]
    fn who_may_do_something_to_every_kind_must_do_it_to_several() {
        let everything =
            json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["list", "deletecollection", "delete"]});
        let rules = json!([everything]);
        let (pods, jobs) = (json!({"resource": "pods"}), json!({"resource": "jobs", "apiGroup": "batch"}));
        let both = |verb: &str| done(verb, &pods) + &done(verb, &jobs);
        check(&(both("list") + &both("deletecollection")), &rules, &[]);
        let unused = ["delete */*", "deletecollection */*"]
            .map(|grant| format!("job-operator may, and never needed to: {grant}"));
        let unused = unused.each_ref().map(String::as_str);
        check(&both("list"), &rules, &unused);
        check(&(both("list") + &done("deletecollection", &pods)), &rules, &unused);
        // A request that another rule allows does not speak for this one.
        let narrow = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]});
        let log = both("list") + &both("deletecollection");
        check(&log, &json!([everything, narrow]), &["job-operator may, and never needed to: list */*"]);
    }

    #[test]
    fn a_subresource_of_every_kind_must_be_that_of_several() {
        let rules = json!([{"apiGroups": ["*"], "resources": ["*/scale"], "verbs": ["get"]}]);
        let get = |resource: &str, subresource: &str| {
            done("get", &json!({"resource": resource, "apiGroup": "apps", "subresource": subresource, "name": "a"}))
        };
        let unused = ["job-operator may, and never needed to: get */*/scale"];
        check(&(get("deployments", "scale") + &get("statefulsets", "scale")), &rules, &[]);
        check(&get("deployments", "scale"), &rules, &unused);
        check(&(get("deployments", "") + &get("statefulsets", "status")), &rules, &unused);
    }

    #[test]
    fn a_name_allows_that_one_only() {
        let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a", "b"],
            "verbs": ["get"]}]);
        let get = |name: &str| done("get", &json!({"resource": "configmaps", "namespace": "x", "name": name}));
        check(&(get("a") + &get("b")), &rules, &[]);
        check(&get("a"), &rules, &["job-operator may, and never needed to: get core/configmaps called b"]);
    }

    #[test]
    fn a_broad_grant_is_needed_for_what_no_narrower_one_allows() {
        let rules = json!([
            {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"], "verbs": ["get"]},
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
        ]);
        let get = |name: &str| done("get", &json!({"resource": "configmaps", "namespace": "x", "name": name}));
        check(&get("a"), &rules, &["job-operator may, and never needed to: get core/configmaps"]);
        check(&(get("a") + &get("other")), &rules, &[]);
    }

    #[test]
    fn the_name_of_what_is_created_is_no_part_of_the_request() {
        let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"],
            "verbs": ["create"]}]);
        let log = done("create", &json!({"resource": "configmaps", "namespace": "x", "name": "a"}));
        check(&log, &rules, &["job-operator may, and never needed to: create core/configmaps called a"]);
        let rules = json!([{"apiGroups": [""], "resources": ["pods/eviction"], "resourceNames": ["a"],
            "verbs": ["create"]}]);
        let pod = json!({"resource": "pods", "subresource": "eviction", "namespace": "x", "name": "a"});
        check(&done("create", &pod), &rules, &[]);
    }

    #[test]
    fn a_role_allows_in_its_namespace_and_what_is_only_done_there_needs_no_more() {
        let rule = json!({"apiGroups": [""], "resources": ["events"], "verbs": ["create"]});
        let role = json!({"kind": "Role", "metadata": {"namespace": "kube-system"}, "rules": [rule]});
        let cluster_role = json!({"kind": "ClusterRole", "rules": [rule]});
        let create = |namespace: &str| done("create", &json!({"resource": "events", "namespace": namespace}));
        let compare = |log: &str, objects: &[&Value]| {
            let objects: Vec<Value> = objects.iter().copied().cloned().collect();
            Usage::read(log).unwrap().compare("job-operator", &grants(&objects))
        };
        let everywhere = ["job-operator may, and never needed to: create core/events"];
        let at_home = ["job-operator may, and never needed to: create core/events in kube-system"];
        assert_eq!(compare(&create("kube-system"), &[&role]), [""; 0]);
        assert_eq!(compare(&create("kube-system"), &[&cluster_role]), everywhere);
        assert_eq!(compare(&create("kube-system"), &[&role, &cluster_role]), everywhere);
        assert_eq!(compare(&create("a"), &[&role, &cluster_role]), at_home);
        assert_eq!(compare(&(create("a") + &create("kube-system")), &[&role, &cluster_role]), [""; 0]);
    }

    #[test]
    fn finalizers_are_for_admission() {
        let rules = json!([{"apiGroups": ["batch"], "resources": ["jobs/finalizers"], "verbs": ["update", "patch"]}]);
        check("", &rules, &["job-operator may, and never needed to: patch batch/jobs/finalizers"]);
    }

    #[test]
    fn rights_that_no_request_shows_are_those_of_the_facts() {
        let row = |operator: &str, rule: Value, unused: &str| {
            let role = json!({"kind": "ClusterRole", "rules": [rule]});
            let expected = format!("{operator} may, and never needed to: {unused}");
            assert_eq!(Usage::default().compare(operator, &grants(&[role])), [expected]);
        };
        let rbac = "rbac.authorization.k8s.io";
        let escalate = json!({"apiGroups": [rbac], "resources": ["clusterroles"], "verbs": ["escalate", "patch"]});
        row("clusterrole-aggregation-operator", escalate, "patch rbac.authorization.k8s.io/clusterroles");
        let group = "certificates.k8s.io";
        let of_certificates =
            |resource: &str, verbs: &[&str]| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
        let signers = of_certificates("signers", &["sign", "approve"]);
        row("certificatesigningrequest-signing-operator", signers, "approve certificates.k8s.io/signers");
        let requests = of_certificates("podcertificaterequests", &["get", "list"]);
        row("podcertificaterequest-cleaner-operator", requests, "list certificates.k8s.io/podcertificaterequests");
        let reviews =
            json!({"apiGroups": [""], "resources": ["tokenreviews", "subjectaccessreviews"], "verbs": ["create"]});
        row("certificatesigningrequest-approving-operator", reviews, "create core/subjectaccessreviews");
    }

    #[test]
    fn what_several_roles_allow_is_one_list() {
        let role = |kind: &str, verb: &str| json!({"kind": kind, "rules": [{"apiGroups": ["a", "b"], "resources": ["c"], "verbs": [verb, "get"]}]});
        let objects = [role("ClusterRole", "list"), role("Role", "get"), role("RoleBinding", "delete")];
        let grants: Vec<String> = grants(&objects).iter().map(ToString::to_string).collect();
        assert_eq!(grants, ["get a/c", "list a/c", "get b/c", "list b/c"]);
    }
}
