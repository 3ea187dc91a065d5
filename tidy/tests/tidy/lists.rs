//! The lists that follow from the operators' folders, where a tool cannot read the folders itself: one line each, without
//! an order, so that a merge may keep the lines of both sides (`.gitattributes`). `make lists` writes them.
//!
//! Left out: lists that a build script makes.

use std::collections::BTreeSet;

use facts::{Memory, needs_cloud};
use serde_json::{Value, json};

use crate::differences;
use crate::families::FAMILIES;
use crate::operators::{HOME, roles};
use crate::threats;
use crate::tree::{self, read, write};
use crate::upstream::CONTROLLERS;

/// A file with a list in it: the lines after `after`, up to an empty one.
struct List {
    path: &'static str,
    after: &'static str,
    /// The lines of an operator, of which there may be none.
    line: fn(&str) -> String,
}

const LISTS: [List; 11] = [
    List {
        path: "all-in-one/Cargo.toml",
        after: "# The operators, one line each; `make lists` writes them.",
        line: |operator| format!("{operator} = {{ path = \"../operators/{operator}\" }}"),
    },
    List { path: "manifests/kustomization.yaml", after: "resources:", line: without_cloud },
    List {
        path: "manifests/one-process/accounts/kustomization.yaml",
        after: "resources:",
        line: |operator| format!("  - ../../{operator}"),
    },
    List { path: "manifests/one-process/process/role.yaml", after: ACCOUNTS, line: account },
    List { path: "docs/operators.md", after: "|---|---|---|", line: row },
    List {
        path: "manifests/components/shadow/kustomization.yaml",
        after: "  # What each may read; `make lists` writes it.",
        line: read_only,
    },
    List {
        path: "manifests/components/daemonset/kustomization.yaml",
        after: "  # The port of each; `make lists` writes it.",
        line: port,
    },
    List {
        path: "docs/sizing.md",
        after: "| operator | keeps | bytes of each | request | limit |\n|---|---|---|---|---|",
        line: memory,
    },
    List {
        path: "docs/security.md",
        after: "| operator | reaches | a stranger could | reads | writes |\n|---|---|---|---|---|",
        line: threats::row,
    },
    List { path: "docs/differences.md", after: "| operator | difference |\n|---|---|", line: differences::rows },
    List {
        path: "docs/SUMMARY.md",
        after: "- [Operators](operators.md)",
        line: |operator| format!("  - [{operator}](../operators/{operator}/README.md)"),
    },
];

const ACCOUNTS: &str = "      # The accounts; `make lists` writes them.";

fn account(operator: &str) -> String {
    format!("      - {operator}")
}

/// Those that need a cloud's provider are installed where there is one.
fn without_cloud(operator: &str) -> String {
    if needs_cloud(operator) { String::new() } else { format!("  - {operator}") }
}

/// The lists of each family, in its folder.
const FAMILY_LISTS: [List; 3] = [
    List {
        path: "accounts/kustomization.yaml",
        after: "resources:",
        line: |operator| format!("  - ../../../{operator}"),
    },
    List { path: "process/role.yaml", after: ACCOUNTS, line: account },
    List {
        path: "process/kustomization.yaml",
        after: "      # Its controllers; `make lists` writes them.",
        line: |operator| {
            let controller = controller_of(operator);
            format!(
                "      - {{op: add, path: /spec/template/spec/containers/0/args/-, value: --controllers={controller}}}"
            )
        },
    },
];

/// Upstream's name of an operator's controller.
fn controller_of(operator: &str) -> String {
    format!("{}-controller", operator.strip_suffix("-operator").unwrap_or(operator))
}

/// The first of the ports on a node: those of Kubernetes' own programs are below, those of Services and of clients far above.
const FIRST_PORT: usize = 10300;

/// The patch that gives an operator its port on a node: by its place among upstream's controllers, so that it stays the
/// same whichever operators there are.
fn port(operator: &str) -> String {
    let controller = controller_of(operator);
    let place = CONTROLLERS.iter().position(|row| row.name == controller);
    let port = FIRST_PORT + place.unwrap_or_else(|| panic!("{operator}: upstream has no {controller}"));
    let container = "/spec/template/spec/containers/0";
    let patch = json!([
        {"op": "replace", "path": format!("{container}/ports/0/containerPort"), "value": port},
        {"op": "add", "path": format!("{container}/args/-"), "value": format!("--secure-port={port}")},
    ]);
    format!("  - {{target: {{kind: DaemonSet, labelSelector: app.kubernetes.io/name={operator}}}, patch: '{patch}'}}")
}

/// The patches that take from an operator's roles every verb but those that change nothing, a line each.
fn read_only(operator: &str) -> String {
    let roles = roles(operator).into_iter().filter(|object| object["kind"] != "RoleBinding");
    roles.map(|role| read_only_role(operator, role)).collect::<Vec<String>>().join("\n")
}

/// The patch of one role. A rule with `resourceNames` stays so, and in a ClusterRole the rights that
/// `manifests/components/cluster-wide` adds.
fn read_only_role(operator: &str, mut role: Value) -> String {
    let Value::Array(mut rules) = role["rules"].take() else { panic!("{operator}: a role has no rules") };
    rules.retain_mut(|rule| {
        let Value::Array(verbs) = &mut rule["verbs"] else { panic!("{operator}: a rule has no verbs") };
        assert!(verbs.iter().all(|verb| verb != "*"), "{operator}: name the verbs");
        verbs.retain(|verb| ["get", "list", "watch"].iter().any(|read| verb == read));
        !verbs.is_empty()
    });
    let kind = role["kind"].as_str().unwrap_or_default();
    if kind == "ClusterRole" {
        let review =
            |group: &str, reviews: &str| json!({"apiGroups": [group], "resources": [reviews], "verbs": ["create"]});
        rules.push(review("authentication.k8s.io", "tokenreviews"));
        rules.push(review("authorization.k8s.io", "subjectaccessreviews"));
    }
    let patch = json!([{"op": "replace", "path": "/rules", "value": rules}]);
    let namespace = role["metadata"]["namespace"].as_str().unwrap_or(HOME);
    let namespace = if kind == "Role" { format!(" namespace: {namespace},") } else { String::new() };
    let target = format!("{{kind: {kind},{namespace} labelSelector: app.kubernetes.io/name={operator}}}");
    format!("  - {{target: {target}, patch: '{patch}'}}")
}

/// The memory of an operator that needs more than the base's.
fn memory(operator: &str) -> String {
    let memory = facts::of(operator).and_then(|facts| facts.memory);
    memory.map_or_else(String::new, |Memory { keeps, bytes, request, limit }| {
        format!("| {operator} | {keeps} | {bytes} | {request} | {limit} |")
    })
}

fn row(operator: &str) -> String {
    let manifest = read(&format!("operators/{operator}/Cargo.toml"));
    let about = manifest.lines().find_map(|line| line.strip_prefix("description = \"")?.strip_suffix('"'));
    let about = about.and_then(|about| about.split(", as ").next()).unwrap_or_default();
    format!("| [{operator}](../operators/{operator}/README.md) | {} | {about} |", controller_of(operator))
}

/// The text in three parts: up to the list, its lines, and the rest.
fn split<'a>(text: &'a str, after: &str) -> (&'a str, Vec<&'a str>, &'a str) {
    let Some(at) = text.find(&format!("{after}\n")) else { return (text, Vec::new(), "") };
    let (head, tail) = text.split_at(at + after.len() + 1);
    let end = if tail.starts_with('\n') { 0 } else { tail.find("\n\n").map_or(tail.len(), |at| at + 1) };
    (head, tail[..end].lines().collect(), &tail[end..])
}

fn rewritten(text: &str, after: &str, lines: &[String]) -> String {
    let (head, _, tail) = split(text, after);
    format!("{head}{}\n{tail}", lines.join("\n"))
}

fn check(path: &str, text: &str, after: &str, lines: &[String]) -> Vec<String> {
    let (_, listed, _) = split(text, after);
    let (found, expected) =
        (listed.iter().copied().collect::<BTreeSet<_>>(), lines.iter().map(String::as_str).collect::<BTreeSet<_>>());
    let lacking = expected.difference(&found).map(|line| format!("{path}: make lists writes the line {line}"));
    let strange = found.difference(&expected).map(|line| format!("{path}: make lists removes the line {line}"));
    let mut complaints: Vec<String> = lacking.chain(strange).collect();
    if listed.len() > found.len() {
        complaints.push(format!("{path}: make lists removes a line that is there twice"));
    }
    complaints
}

#[test]
fn every_list_follows_from_the_operators_folders() {
    let operators = tree::operators();
    for List { path, after, line } in LISTS {
        hold(path, after, operators.iter().map(|operator| line(operator)));
    }
    for (family, controllers) in FAMILIES {
        let is_in_it = |operator: &&String| controllers.contains(&&*controller_of(operator));
        for List { path, after, line } in FAMILY_LISTS {
            let lines = operators.iter().filter(is_in_it).map(|operator| line(operator));
            hold(&format!("manifests/groups/{family}/{path}"), after, lines);
        }
    }
}

/// Checks the list of a file, or writes it first.
fn hold(path: &str, after: &str, of_each: impl Iterator<Item = String>) {
    let of_each: Vec<String> = of_each.collect();
    let lines: Vec<String> = of_each.iter().flat_map(|lines| lines.lines()).map(str::to_owned).collect();
    if std::env::var_os("WRITE_LISTS").is_some() {
        write(path, &rewritten(&read(path), after, &lines));
    }
    crate::none(check(path, &read(path), after, &lines));
}

#[test]
fn each_rule_fires() {
    let lines = ["- a", "- c"].map(str::to_owned);
    let text = "first\nlist:\n- c\n- a\n\nlast\n";
    assert!(check("x", text, "list:", &lines).is_empty());
    assert_eq!(
        check("x", &text.replace("- c", "- b"), "list:", &lines),
        ["x: make lists writes the line - c", "x: make lists removes the line - b"]
    );
    assert_eq!(
        check("x", &text.replace("- c", "- a\n- c"), "list:", &lines),
        ["x: make lists removes a line that is there twice"]
    );
    assert_eq!(check("x", "first\n", "list:", &lines).len(), 2);
    for text in [text, "first\nlist:\n\nlast\n", "first\nlist:\n- b\n\nlast\n"] {
        assert_eq!(rewritten(text, "list:", &lines), "first\nlist:\n- a\n- c\n\nlast\n");
    }
    assert_eq!(rewritten("list:\n- b\n", "list:", &lines), "list:\n- a\n- c\n");
}

#[test]
fn a_shadow_keeps_of_each_role_the_verbs_that_read() {
    let role = |kind: &str, namespace: Option<&str>| {
        let rules =
            json!([{"resources": ["a"], "verbs": ["list", "delete"]}, {"resources": ["b"], "verbs": ["create"]}]);
        json!({"kind": kind, "metadata": {"namespace": namespace}, "rules": rules})
    };
    let reviews = r#",{"apiGroups":["authentication.k8s.io"],"resources":["tokenreviews"],"verbs":["create"]},{"apiGroups":["authorization.k8s.io"],"resources":["subjectaccessreviews"],"verbs":["create"]}"#;
    for (kind, namespace, target, added) in [
        ("ClusterRole", None, "kind: ClusterRole,", reviews),
        ("Role", None, "kind: Role, namespace: kube-system,", ""),
        ("Role", Some("x"), "kind: Role, namespace: x,", ""),
    ] {
        let target = format!("target: {{{target} labelSelector: app.kubernetes.io/name=a-operator}}");
        let rules = format!(r#"[{{"resources":["a"],"verbs":["list"]}}{added}]"#);
        let line = format!(r#"  - {{{target}, patch: '[{{"op":"replace","path":"/rules","value":{rules}}}]'}}"#);
        assert_eq!(read_only_role("a-operator", role(kind, namespace)), line);
    }
}
