//! The memory that each operator asks for and may have: what `docs/operating.md` says, or that of the base.
//!
//! Left out: whether it is enough, which `bench memory --each` measures.

use std::collections::BTreeMap;

use crate::operators::section;
use crate::tree::{self, read};

/// The head of the table of those that need more than the base gives.
const TABLE: &str = "| operator | keeps | bytes of each | request | limit |";

/// Request and limit, as Kubernetes writes them.
type Memory = (String, String);

/// The rows of the table, by operator.
fn listed(page: &str) -> BTreeMap<String, Memory> {
    let rows = section(page, "Memory").split(TABLE).nth(1).unwrap_or_default().lines().skip(2);
    let cells = rows.take_while(|line| line.starts_with('|')).map(|line| line.trim_matches('|').split('|'));
    let cells = cells.map(|cells| cells.map(|cell| cell.trim().to_owned()).collect::<Vec<String>>());
    cells
        .filter_map(|row| match &row[..] {
            [operator, _, _, request, limit] => Some((operator.clone(), (request.clone(), limit.clone()))),
            _ => None,
        })
        .collect()
}

/// The patch of an operator's kustomization.
fn patch((request, limit): &Memory) -> String {
    let resources = "/spec/template/spec/containers/0/resources";
    format!(
        "patches:
  - target: {{kind: Deployment}}
    patch: |-
      - op: replace
        path: {resources}/requests/memory
        value: {request}
      - op: replace
        path: {resources}/limits/memory
        value: {limit}
"
    )
}

fn mebibytes(text: &str) -> Option<u32> {
    text.strip_suffix("Mi")?.parse().ok()
}

fn check(operator: &str, listed: Option<&Memory>, kustomization: &str) -> Option<String> {
    let path = format!("manifests/{operator}/kustomization.yaml");
    match listed {
        None => kustomization
            .contains("/resources/")
            .then(|| format!("{path}: asks for memory that the table in docs/operating.md does not have")),
        Some(memory @ (request, limit)) => {
            let is_sound = mebibytes(request).zip(mebibytes(limit)).is_some_and(|(request, limit)| request <= limit);
            (!is_sound || !kustomization.contains(&patch(memory)))
                .then(|| format!("{path}: does not ask for {request} and at most {limit}, as docs/operating.md says"))
        }
    }
}

#[test]
fn every_operator_asks_for_the_memory_that_the_page_says() {
    let listed = listed(&read("docs/operating.md"));
    assert!(!listed.is_empty(), "docs/operating.md: has no table {TABLE} under Memory");
    let operators = tree::operators();
    let unknown = listed.keys().filter(|name| !operators.contains(name));
    let unknown = unknown.map(|name| format!("docs/operating.md: the memory of {name}, which is no operator"));
    let wrong = operators.iter().filter_map(|operator| {
        check(operator, listed.get(operator), &read(&format!("manifests/{operator}/kustomization.yaml")))
    });
    crate::none(unknown.chain(wrong));
}

#[test]
fn each_rule_fires() {
    let page =
        format!("## Memory\n\n{TABLE}\n|---|---|---|---|---|\n| a-operator | pods | 400 | 32Mi | 128Mi |\n\nEnd.\n");
    let listed = listed(&page);
    let memory = listed.get("a-operator").unwrap();
    assert_eq!((listed.len(), memory), (1, &("32Mi".to_owned(), "128Mi".to_owned())));
    let kustomization = format!("kind: Kustomization\n{}", patch(memory));
    assert_eq!(check("a-operator", Some(memory), &kustomization), None);
    let missing =
        "manifests/a-operator/kustomization.yaml: does not ask for 32Mi and at most 128Mi, as docs/operating.md says";
    assert_eq!(check("a-operator", Some(memory), "kind: Kustomization\n").as_deref(), Some(missing));
    assert_eq!(check("b-operator", None, "kind: Kustomization\n"), None);
    assert!(check("b-operator", None, &kustomization).is_some());
    let turned = ("128Mi".to_owned(), "32Mi".to_owned());
    assert!(check("a-operator", Some(&turned), &patch(&turned)).is_some());
}
