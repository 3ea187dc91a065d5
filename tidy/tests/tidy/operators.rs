//! Rules on operators: the same rooms, upstream's names, a page and manifests each, and nothing of it forgotten.

use std::collections::BTreeSet;

use facts::{Facts, Names, Queue};
use serde_json::Value;

use crate::families::FAMILIES;
use crate::tree::{self, File, exists, list, read};
use crate::upstream::CONTROLLERS;

/// The rooms of an operator, in reading order.
const ROOMS: [&str; 8] = ["facts", "flags", "objects", "controller", "observe", "plan", "apply", "status"];
/// Rooms that only some have: upstream's own metrics, memory between syncs, a graph in place of a plan, and load balancers
/// behind a cloud's provider.
const MORE_ROOMS: [&str; 4] = ["metrics", "memory", "graph", "balancers"];
/// The files with an operator's rights, of which it has one or both.
const RIGHTS: [&str; 2] = ["cluster-role.yaml", "roles.yaml"];
const HEADINGS: [&str; 7] = ["Owns", "Watches", "Writes", "Flags", "Metrics", "Events", "Differences from upstream"];

/// The namespace of operators, and of a Role that names none: see `manifests/components/namespaced`.
pub(crate) const HOME: &str = "kube-system";

/// What a role that is for every kind may do to them, beside it.
const POLICY: &str = "policy.yaml";

/// The head of the table of the resources that an operator follows.
const WATCHES: &str = "| resource | which | while | for |";

pub(crate) fn source(operator: &str) -> Vec<File> {
    tree::files(&format!("operators/{operator}/src"), ".rs")
}

/// A room is a file of its own, or one that lib.rs takes from the shared crate; a large one has a folder of sub-rooms.
fn check_rooms(operator: &str) -> Vec<String> {
    let src = format!("operators/{operator}/src");
    let map = read(&format!("{src}/lib.rs"));
    let shared: Vec<&str> = map.lines().filter(|line| line.starts_with("pub use shared::")).collect();
    let is_shared =
        |room: &str| shared.iter().any(|line| line.split(|c: char| !c.is_alphanumeric()).any(|w| w == room));
    // An operator that may write no status has none to work out.
    let writes_status = rights(operator).iter().any(|path| read(path).contains("/status"));
    let is_needed = |room: &&&str| **room != "status" || writes_status;
    let missing = ROOMS.iter().filter(is_needed);
    let missing = missing.filter(|room| !exists(&format!("{src}/{room}.rs")) && !is_shared(room));
    let missing = missing.map(|room| format!("{src}: no {room}.rs, and lib.rs takes none from shared"));
    let known = |name: &str| {
        let room = name.trim_end_matches('/').trim_end_matches(".rs");
        ["main", "lib"].iter().chain(&ROOMS).chain(&MORE_ROOMS).any(|known| *known == room)
    };
    let strange = list(&src).into_iter().filter(|name| !known(name));
    missing.chain(strange.map(|name| format!("{src}/{name}: is no room of an operator"))).collect()
}

/// `Caches` and `Observed` have the same names everywhere, unless the room is one of shared's. An operator that reads
/// everything live has no caches.
fn check_observe(operator: &str, sources: &[File]) -> Vec<String> {
    let room = |file: &&File| file.path.contains("/src/observe.rs") || file.path.contains("/src/observe/");
    let observe: Vec<&str> = sources.iter().filter(room).map(|file| file.text.as_str()).collect();
    let declared = |name: &str| [format!("pub struct {name} "), format!("pub type {name} ")];
    let declares = |name: &str| observe.iter().any(|text| declared(name).iter().any(|words| text.contains(words)));
    let has_caches = observe.iter().any(|text| text.contains("Cache<"));
    let needed = ["Caches", "Observed"].into_iter().filter(|name| *name != "Caches" || has_caches);
    let missing = needed.filter(|name| !observe.is_empty() && !declares(name));
    missing.map(|name| format!("operators/{operator}/src/observe.rs: has no pub struct {name}")).collect()
}

/// An operator with handlers has one place for the effects of changes.
fn check_changes(operator: &str, sources: &[File]) -> Option<String> {
    let has_handlers = sources.iter().any(|file| file.text.contains(".on_change("));
    let has_room = sources.iter().any(|file| file.path.ends_with("/src/controller/changes.rs"));
    (has_handlers && !has_room).then(|| format!("operators/{operator}/src/controller: has no changes.rs"))
}

fn check_page(operator: &str, text: &str) -> Vec<String> {
    let headings: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let mut complaints = Vec::new();
    if headings != HEADINGS {
        complaints.push(format!("operators/{operator}/README.md: its headings are not {}", HEADINGS.join(", ")));
    }
    if !text.starts_with(&format!("# {operator}\n")) {
        complaints.push(format!("operators/{operator}/README.md: its title is not its name"));
    }
    if !section(text, "Watches").contains(WATCHES) {
        complaints.push(format!("operators/{operator}/README.md: has no table {WATCHES} under Watches"));
    }
    complaints
}

/// The text below this heading of a page, up to the next one.
pub(crate) fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let rest = page.split(&format!("## {heading}\n")).nth(1).unwrap_or_default();
    rest.split("\n## ").next().unwrap_or_default()
}

/// The public fields of structs, with their types.
fn fields(code: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = code.split("\n    pub ").skip(1).filter_map(|rest| rest.lines().next());
    lines.filter_map(|line| line.trim_end_matches(',').split_once(": "))
}

/// The flags in a struct that all controllers of a cloud take into theirs.
fn common_flags(type_: &str) -> Option<Vec<String>> {
    let of = match type_ {
        "ProviderFlags" | "RequiredProvider" | "Source" => "ProviderFlags",
        "ClusterFlags" => "ClusterFlags",
        _ => return None,
    };
    let all = read("cloud/src/flags.rs");
    let (_, body) = all.split_once(&format!("pub struct {of} {{"))?;
    Some(fields(body.split("\n}").next()?).map(|(field, _)| field.to_owned()).collect())
}

/// The flags that a page says are the operator's own are those that `flags.rs` reads.
fn check_flags(operator: &str, page: &str, flags: &str) -> Vec<String> {
    let own = fields(flags).filter(|(_, type_)| common_flags(type_).is_none());
    let common = fields(flags).filter_map(|(_, type_)| common_flags(type_));
    let all = own.map(|(field, _)| field.to_owned()).chain(common.flatten());
    let read: BTreeSet<String> = all.map(|field| field.replace('_', "-")).collect();
    let in_code = section(page, "Flags").split('`').skip(1).step_by(2);
    let named = in_code.filter_map(|code| code.strip_prefix("--")).filter(|flag| *flag != "help");
    let named: BTreeSet<String> = named.map(str::to_owned).collect();
    let unnamed = read.difference(&named);
    let unnamed = unnamed.map(|flag| format!("operators/{operator}/README.md: does not name the flag --{flag}"));
    let unread = named.difference(&read);
    unnamed.chain(unread.map(|flag| format!("operators/{operator}/README.md: flags.rs has no --{flag}"))).collect()
}

/// A page names its operator's queues, as the metrics of queues do, and all that `metrics.rs` registers.
fn check_metrics(operator: &str, page: &str, sources: &[File]) -> Vec<String> {
    let queues = facts::of(operator).into_iter().flat_map(|facts| facts.queues).map(|queue| queue.name);
    let metrics = sources.iter().filter(|file| file.path.ends_with("/metrics.rs"));
    let metrics = metrics.flat_map(|file| file.text.split('"').skip(1).step_by(2)).filter(|text| is_metric(text));
    let names = queues.chain(metrics);
    let section = section(page, "Metrics");
    let missing = names.filter(|name| !section.contains(&format!("`{name}")));
    missing.map(|name| format!("operators/{operator}/README.md: does not name `{name}` under Metrics")).collect()
}

/// The names of upstream's metrics begin with the component that counts; other texts are help and labels.
fn is_metric(text: &str) -> bool {
    let is_name = text.chars().all(|character| character.is_ascii_lowercase() || character == '_');
    is_name && ["_controller_", "_collector_", "_publisher_"].iter().any(|who| text.contains(who))
}

/// An operator's names and queues are upstream's.
fn check_names(operator: &str, facts: &Facts) -> Vec<String> {
    let Some(stem) = operator.strip_suffix("-operator") else {
        return vec![format!("operators/{operator}: an operator is called after its controller, x-operator")];
    };
    let controller = format!("{stem}-controller");
    let Some(upstream) = CONTROLLERS.iter().find(|row| row.name == controller) else {
        return vec![format!("tidy/tests/tidy/upstream.rs: has no row for {controller}")];
    };
    let Facts { names, queues, queues_without, .. } = facts;
    let names = [
        ("operator", names.operator, operator),
        ("controller", names.controller, upstream.name),
        ("event_source", names.event_source, upstream.event_source),
    ];
    let wrong = names.iter().filter(|(_, name, expected)| name != expected);
    let wrong = wrong.map(|(name, _, value)| format!("operators/{operator}: FACTS says no {name}: {value:?}"));
    let unqueued = upstream.queues.iter().filter(|name| {
        let is_left_out = queues_without.contains(name);
        queues.iter().any(|queue| queue.name == **name) == is_left_out
    });
    wrong.chain(unqueued.map(|queue| format!("operators/{operator}: has no queue {queue:?}"))).collect()
}

/// The queues that an operator sets up are those of its facts.
fn check_queues(operator: &str, facts: &Facts, sources: &[File]) -> Option<String> {
    let calls: Vec<&str> = sources.iter().flat_map(|file| file.text.split("setup.queue(").skip(1)).collect();
    let is_literal = calls.iter().any(|call| call.starts_with('"'));
    (is_literal || calls.len() != facts.queues.len())
        .then(|| format!("operators/{operator}: sets up other queues than those of FACTS"))
}

/// The files with an operator's rights: its ClusterRole, and its Roles in single namespaces.
pub(crate) fn rights(operator: &str) -> Vec<String> {
    RIGHTS.iter().map(|name| format!("manifests/{operator}/{name}")).filter(|path| exists(path)).collect()
}

/// The roles of an operator, and their bindings.
pub(crate) fn roles(operator: &str) -> Vec<Value> {
    let parse = |path: String| -> Vec<Value> {
        serde_yaml::from_multiple(&read(&path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    rights(operator).into_iter().flat_map(parse).collect()
}

/// The beginning of every operator's kustomization. More may follow, such as patches for flags of its own.
fn kustomization(operator: &str, rights: &[String], has_policy: bool) -> String {
    let prefix = operator.strip_suffix("operator").unwrap_or(operator);
    let policy = if has_policy { format!("  - {POLICY}\n") } else { String::new() };
    let component = |file: &str| if file == "cluster-role.yaml" { "cluster-wide" } else { "namespaced" };
    let files = || rights.iter().filter_map(|path| path.rsplit('/').next());
    let resources: Vec<String> = files().map(|file| format!("  - {file}\n")).collect();
    let components: Vec<String> = files().map(|file| format!("  - ../components/{}\n", component(file))).collect();
    let (resources, components) = (resources.concat(), components.concat());
    format!(
        "apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namePrefix: {prefix}
resources:
  - ../base
{resources}{policy}labels:
  - pairs:
      app.kubernetes.io/name: {operator}
    includeSelectors: true
images:
  - name: operators.local/operator
    newName: operators.local/{operator}
components:
{components}"
    )
}

fn check_manifests(operator: &str) -> Vec<String> {
    let folder = format!("manifests/{operator}");
    let path = format!("{folder}/kustomization.yaml");
    let rights = rights(operator);
    if rights.is_empty() || !exists(&path) {
        return vec![format!("{folder}: needs a kustomization.yaml, and a {}", RIGHTS.join(" or a "))];
    }
    let mut complaints = Vec::new();
    let policy = format!("{folder}/{POLICY}");
    if !read(&path).starts_with(&kustomization(operator, &rights, exists(&policy))) {
        complaints.push(format!("{path}: does not begin as the others do"));
    }
    complaints.extend(rights.iter().flat_map(|path| check_roles(path, &read(path))));
    let text: Vec<String> = rights.iter().map(|path| read(path)).collect();
    complaints.extend(check_policy(operator, exists(&policy).then(|| read(&policy)).as_deref(), &text.join("---\n")));
    complaints
}

/// What a cluster writes all the time: the apiserver would evaluate a policy for these with most writes that there are.
const HOT: [(&str, &str); 4] =
    [("UPDATE", "pods/status"), ("UPDATE", "events"), ("UPDATE", "leases"), ("DELETE", "pods")];

/// Who may change or delete every kind there is has a policy, which is for its account and is bound under its name.
fn check_policy(operator: &str, policy: Option<&str>, rights: &str) -> Vec<String> {
    let path = format!("manifests/{operator}/{POLICY}");
    let roles: Vec<Value> = serde_yaml::from_multiple(rights).unwrap_or_default();
    let rules = roles.iter().flat_map(|role| role["rules"].as_array().into_iter().flatten());
    let says = |rule: &Value, field: &str, words: &[&str]| {
        rule[field].as_array().into_iter().flatten().any(|word| words.iter().any(|known| word == known))
    };
    let is_wide = rules.into_iter().any(|rule| {
        says(rule, "resources", &["*"])
            && says(rule, "verbs", &["create", "delete", "deletecollection", "patch", "update"])
    });
    let Some(policy) = policy else {
        return is_wide
            .then(|| format!("{path}: is missing, and its role lets it write every kind"))
            .into_iter()
            .collect();
    };
    let account = format!("['system', 'serviceaccount', 'kube-system', '{operator}'].join(':')");
    let needed = [account, format!("policyName: {operator}"), "failurePolicy: Fail".to_owned()];
    let missing = needed.iter().filter(|text| !policy.contains(*text));
    let mut complaints: Vec<String> = missing.map(|text| format!("{path}: does not say {text}")).collect();
    let objects: Vec<Value> = serde_yaml::from_multiple(policy).unwrap_or_default();
    for constraints in objects.iter().map(|object| &object["spec"]["matchConstraints"]) {
        let has = |rules: &str, resource: &str, operation: &str| {
            constraints[rules]
                .as_array()
                .into_iter()
                .flatten()
                .any(|rule| says(rule, "resources", &[resource]) && says(rule, "operations", &[operation]))
        };
        let costly = HOT.iter().filter(|(operation, resource)| {
            has("resourceRules", "*/*", operation) && !has("excludeResourceRules", resource, operation)
        });
        complaints.extend(costly.map(|(operation, resource)| {
            format!("{path}: is evaluated for each {operation} of {resource}, whoever asks")
        }));
    }
    complaints
}

/// Named so that kustomize makes them the operator's, and without a verb that nobody has named.
fn check_roles(path: &str, text: &str) -> Vec<String> {
    let objects: Vec<Value> = match serde_yaml::from_multiple(text) {
        Ok(objects) => objects,
        Err(error) => return vec![format!("{path}: {error}")],
    };
    let is_a = |object: &Value, kind: &str| object["kind"] == kind && object["metadata"]["name"] == "operator";
    let mut complaints = check_references(path, &objects);
    if path.ends_with("/cluster-role.yaml") {
        if !matches!(&objects[..], [role] if is_a(role, "ClusterRole")) {
            complaints.push(format!("{path}: is no ClusterRole called operator"));
        }
    } else if !objects.iter().all(|object| is_a(object, "Role") || is_a(object, "RoleBinding")) {
        complaints.push(format!("{path}: has more than Roles and RoleBindings called operator"));
    }
    let rules = objects.iter().flat_map(|object| object["rules"].as_array().into_iter().flatten());
    if rules.flat_map(|rule| rule["verbs"].as_array().into_iter().flatten()).any(|verb| verb == "*") {
        complaints.push(format!("{path}: allows every verb"));
    }
    complaints
}

/// Roles name neither the operator's namespace nor its account with the prefix: kustomize could not rename or move them.
/// A binding in another namespace has to say where the account is.
fn check_references(path: &str, objects: &[Value]) -> Vec<String> {
    let mut complaints = Vec::new();
    for object in objects {
        let kind = object["kind"].as_str().unwrap_or_default();
        let namespace = object["metadata"]["namespace"].as_str();
        if namespace == Some(HOME) {
            complaints.push(format!("{path}: a {kind} names the namespace {HOME}"));
        }
        for subject in object["subjects"].as_array().into_iter().flatten() {
            if subject["name"] != "operator" {
                complaints.push(format!("{path}: a {kind} is for the account {}, not for operator", subject["name"]));
            }
            if subject["namespace"].is_string() != namespace.is_some() {
                complaints.push(format!("{path}: a {kind} names a namespace in one of two places"));
            }
        }
    }
    complaints
}

#[test]
fn every_operator_has_the_same_rooms() {
    crate::none(tree::operators().iter().flat_map(|operator| check_rooms(operator)));
}

#[test]
fn every_room_has_the_same_shape() {
    crate::none(tree::operators().iter().flat_map(|operator| {
        let sources = source(operator);
        check_observe(operator, &sources).into_iter().chain(check_changes(operator, &sources)).collect::<Vec<_>>()
    }));
}

#[test]
fn every_operator_has_tests() {
    let without = tree::operators().into_iter().filter(|name| list(&format!("operators/{name}/tests")).is_empty());
    crate::none(without.map(|name| format!("operators/{name}: has no tests")));
}

#[test]
fn every_operator_has_a_life_and_every_life_its_operator() {
    let folder = "e2e/tests/suite/privilege";
    let lives: Vec<String> = list(folder).iter().map(|file| file.trim_end_matches(".rs").replace('_', "-")).collect();
    let operators = tree::operators();
    let without = operators.iter().filter(|name| !lives.contains(name));
    let without = without.map(|name| format!("{folder}: has no {}.rs", name.replace('-', "_")));
    let lonely = lives.iter().filter(|name| !operators.contains(name));
    crate::none(without.chain(lonely.map(|name| format!("{folder}: has a life of {name}, which is no operator"))));
}

#[test]
fn every_operator_has_its_page() {
    crate::none(tree::operators().iter().flat_map(|operator| {
        let path = format!("operators/{operator}/README.md");
        if !exists(&path) {
            return vec![format!("{path}: is missing")];
        }
        let (page, sources) = (read(&path), source(operator));
        let mut complaints = check_page(operator, &page);
        complaints.extend(check_metrics(operator, &page, &sources));
        let flags = sources.iter().find(|file| file.path.ends_with("/flags.rs"));
        complaints.extend(flags.into_iter().flat_map(|file| check_flags(operator, &page, &file.text)));
        complaints
    }));
}

#[test]
fn every_operator_has_upstreams_names() {
    crate::none(tree::operators().iter().flat_map(|operator| {
        let facts = facts::of(operator).unwrap_or_else(|| panic!("operators/{operator}: has no FACTS of this name"));
        check_names(operator, facts).into_iter().chain(check_queues(operator, facts, &source(operator)))
    }));
}

#[test]
fn every_operator_has_manifests() {
    crate::none(tree::operators().iter().flat_map(|operator| check_manifests(operator)));
}

#[test]
fn every_process_has_roles_for_the_account_that_kustomize_names() {
    let files: Vec<File> =
        ["groups", "one-process"].iter().flat_map(|of| tree::files(&format!("manifests/{of}"), "/role.yaml")).collect();
    assert_eq!(files.len(), FAMILIES.len() + 1);
    crate::none(files.iter().flat_map(|File { path, text }| match serde_yaml::from_multiple::<Value>(text) {
        Ok(objects) => check_references(path, &objects),
        Err(error) => vec![format!("{path}: {error}")],
    }));
}

#[test]
fn each_rule_fires() {
    let page = "# a-operator\n## Owns\n## Watches\n| resource | which | while | for |\n## Writes\n## Flags\n## Metrics\n## Events\n## Differences from upstream\n";
    assert!(check_page("a-operator", page).is_empty());
    assert_eq!(check_page("b-operator", page), ["operators/b-operator/README.md: its title is not its name"]);
    assert_eq!(check_page("a-operator", &page.replace("## Flags\n", "")).len(), 1);
    assert_eq!(check_page("a-operator", &page.replace("while", "when")).len(), 1);

    let flags = "pub struct Flags {\n    pub a_syncs: usize,\n}\n";
    let own = page.replace("## Flags\n", "## Flags\n\n`--a-syncs` (5), and those of `--help`\n");
    assert!(check_flags("a-operator", &own, flags).is_empty());
    assert_eq!(
        check_flags("a-operator", page, flags),
        ["operators/a-operator/README.md: does not name the flag --a-syncs"]
    );
    assert_eq!(check_flags("a-operator", &own, ""), ["operators/a-operator/README.md: flags.rs has no --a-syncs"]);

    let source = |path: &str, text: &str| [File { path: path.to_owned(), text: text.to_owned() }];
    let metric = source("operators/a-operator/src/metrics.rs", "(\"a_controller_sync_skips\", \"is_fatal\")");
    let own = page.replace("## Metrics\n", "## Metrics\n`ttlcontroller`, `a_controller_sync_skips_total`\n");
    for (operator, sources, name) in
        [("ttl-operator", &[][..], "ttlcontroller"), ("a-operator", &metric[..], "a_controller_sync_skips")]
    {
        assert!(check_metrics(operator, &own, sources).is_empty());
        let expected = format!("operators/{operator}/README.md: does not name `{name}` under Metrics");
        assert_eq!(check_metrics(operator, page, sources), [expected]);
    }

    let observe = source("operators/a-operator/src/observe.rs", "pub struct Caches {\npub struct Observed {\n");
    assert!(check_observe("a-operator", &observe).is_empty());
    assert!(check_observe("a-operator", &[]).is_empty());
    let live = source("operators/a-operator/src/observe.rs", "pub struct Observed {\n");
    assert!(check_observe("a-operator", &live).is_empty());
    let [sources] =
        source("operators/a-operator/src/observe.rs", "pub struct Sources {\nCache<\npub struct Observed {\n");
    let [caches] = source("operators/a-operator/src/observe/caches.rs", "pub struct Caches {\n");
    let without = check_observe("a-operator", std::slice::from_ref(&sources));
    assert_eq!(without, ["operators/a-operator/src/observe.rs: has no pub struct Caches"]);
    assert!(check_observe("a-operator", &[sources, caches]).is_empty());
    let handlers = source("operators/a-operator/src/controller.rs", "jobs.on_change(effects.of(&caches, changed));");
    let [changes] = source("operators/a-operator/src/controller/changes.rs", "");
    assert_eq!(
        check_changes("a-operator", &handlers).as_deref(),
        Some("operators/a-operator/src/controller: has no changes.rs")
    );
    let [handlers] = handlers;
    assert_eq!(check_changes("a-operator", &[handlers, changes]), None);
}

#[test]
fn names_that_are_not_upstreams_are_seen() {
    const ONE: &[Queue] = &[Queue::of("Job", "job")];
    let good = *facts::of("job-operator").unwrap();
    assert!(check_names("job-operator", &good).is_empty());
    let wrong = Facts { names: Names { event_source: "job", ..good.names }, ..good };
    assert_eq!(
        check_names("job-operator", &wrong),
        [r#"operators/job-operator: FACTS says no event_source: "job-controller""#]
    );
    let no_queue = [r#"operators/job-operator: has no queue "job_orphan_pod""#];
    assert_eq!(check_names("job-operator", &Facts { queues: ONE, ..good }), no_queue);
    assert_eq!(check_names("job-operator", &Facts { queues_without: &["job_orphan_pod"], ..good }), no_queue);
    assert_eq!(
        check_names("nobody-operator", &good),
        ["tidy/tests/tidy/upstream.rs: has no row for nobody-controller"]
    );
    let one = Facts { queues: ONE, ..good };
    let source = |text: &str| [File { path: "controller.rs".to_owned(), text: text.to_owned() }];
    assert_eq!(check_queues("job-operator", &one, &source("setup.queue(QUEUE.name, BACKOFF)")), None);
    let other = Some("operators/job-operator: sets up other queues than those of FACTS".to_owned());
    assert_eq!(check_queues("job-operator", &one, &source("setup.queue(\"job\", BACKOFF)")), other);
    assert_eq!(check_queues("job-operator", &one, &source("")), other);
}

#[test]
fn who_may_write_every_kind_needs_a_policy() {
    let role = "kind: ClusterRole\nrules: [{resources: ['*'], verbs: [list, delete]}]\n";
    let policy = "failurePolicy: Fail\nexpression: ['system', 'serviceaccount', 'kube-system', 'a-operator'].join(':')\n\
                  policyName: a-operator\n";
    assert!(check_policy("a-operator", Some(policy), role).is_empty());
    assert!(check_policy("a-operator", None, &role.replace(", delete", "")).is_empty());
    let missing = "manifests/a-operator/policy.yaml: is missing, and its role lets it write every kind";
    assert_eq!(check_policy("a-operator", None, role), [missing]);
    assert_eq!(check_policy("b-operator", Some(policy), role).len(), 2);
    let rules = "spec: {matchConstraints: {resourceRules: [{resources: ['*/*'], operations: [DELETE]}]}}\n---\n";
    let policy = format!("{rules}# {}", policy.replace('\n', " "));
    let costly = "manifests/a-operator/policy.yaml: is evaluated for each DELETE of pods, whoever asks";
    assert_eq!(check_policy("a-operator", Some(&policy), role), [costly]);
}

#[test]
fn roles_that_are_not_as_the_others_are_seen() {
    let (path, role) =
        ("m/cluster-role.yaml", "kind: ClusterRole\nmetadata: {name: operator}\nrules: [{verbs: [get]}]\n");
    assert!(check_roles(path, role).is_empty());
    assert_eq!(check_roles(path, &role.replace("get", "'*'")), ["m/cluster-role.yaml: allows every verb"]);
    let unnamed = ["m/cluster-role.yaml: is no ClusterRole called operator"];
    assert_eq!(check_roles(path, &role.replace("name: operator", "name: x")), unnamed);
    assert_eq!(check_roles(path, &format!("{role}---\n{role}")), unnamed);
    assert_eq!(check_roles(path, &format!("{role}---\n{}", role.replace("ClusterRole", "Role"))), unnamed);
    let (path, one) = ("m/roles.yaml", role.replace("ClusterRole", "Role"));
    let both = format!("{one}---\n{}", one.replace("Role", "RoleBinding"));
    assert!(check_roles(path, &both).is_empty());
    assert_eq!(check_roles(path, &both.replace("get", "'*'")), ["m/roles.yaml: allows every verb"]);
    let more = ["m/roles.yaml: has more than Roles and RoleBindings called operator"];
    assert_eq!(check_roles(path, &format!("{both}---\n{role}")), more);
}

#[test]
fn roles_that_kustomize_cannot_rename_or_move_are_seen() {
    let check = |namespace: &str, name: &str, of_subject: &str| {
        let text = format!(
            "kind: RoleBinding\nmetadata: {{name: operator{namespace}}}\nsubjects: [{{name: {name}{of_subject}}}]\n"
        );
        check_references("m/roles.yaml", &serde_yaml::from_multiple::<Value>(&text).unwrap())
    };
    let (home, public) = (", namespace: kube-system", ", namespace: kube-public");
    assert!(check("", "operator", "").is_empty());
    assert!(check(public, "operator", home).is_empty());
    assert_eq!(check(home, "operator", home), ["m/roles.yaml: a RoleBinding names the namespace kube-system"]);
    let literal = r#"m/roles.yaml: a RoleBinding is for the account "a-operator", not for operator"#;
    assert_eq!(check("", "a-operator", ""), [literal]);
    let one = ["m/roles.yaml: a RoleBinding names a namespace in one of two places"];
    assert_eq!(check("", "operator", home), one);
    assert_eq!(check(public, "operator", ""), one);
}

#[test]
fn a_kustomization_has_a_component_for_each_file_of_rights() {
    let of = |files: &[&str]| {
        let rights: Vec<String> = files.iter().map(|file| format!("manifests/a-operator/{file}")).collect();
        kustomization("a-operator", &rights, false)
    };
    let parts = |text: &str, files: &str, components: &str| {
        assert!(text.contains(&format!("resources:\n  - ../base\n{files}labels:")), "{text}");
        assert!(text.ends_with(&format!("components:\n{components}")), "{text}");
    };
    let (wide, single) = ("  - cluster-role.yaml\n", "  - roles.yaml\n");
    let (of_wide, of_single) = ("  - ../components/cluster-wide\n", "  - ../components/namespaced\n");
    parts(&of(&["cluster-role.yaml"]), wide, of_wide);
    parts(&of(&["roles.yaml"]), single, of_single);
    parts(&of(&RIGHTS), &format!("{wide}{single}"), &format!("{of_wide}{of_single}"));
}
