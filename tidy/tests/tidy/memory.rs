//! The memory that each operator asks for and may have: what its facts say, or that of the base.
//!
//! Left out: whether it is enough, which `bench memory --each` measures.

use facts::Memory;

use crate::tree::{self, read};

/// The patch of an operator's kustomization.
fn patch(Memory { request, limit, .. }: &Memory) -> String {
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

fn check(operator: &str, memory: Option<&Memory>, kustomization: &str) -> Option<String> {
    let path = format!("manifests/{operator}/kustomization.yaml");
    match memory {
        None => {
            kustomization.contains("/resources/").then(|| format!("{path}: asks for memory that FACTS does not have"))
        }
        Some(memory @ Memory { request, limit, .. }) => {
            let is_sound = mebibytes(request).zip(mebibytes(limit)).is_some_and(|(request, limit)| request <= limit);
            (!is_sound || !kustomization.contains(&patch(memory)))
                .then(|| format!("{path}: does not ask for {request} and at most {limit}, as FACTS says"))
        }
    }
}

#[test]
fn every_operator_asks_for_the_memory_that_its_facts_say() {
    crate::none(tree::operators().iter().filter_map(|operator| {
        let memory = facts::of(operator).and_then(|facts| facts.memory.as_ref());
        check(operator, memory, &read(&format!("manifests/{operator}/kustomization.yaml")))
    }));
}

#[test]
fn each_rule_fires() {
    let memory = Memory { keeps: "pods", bytes: "400", request: "32Mi", limit: "128Mi" };
    let kustomization = format!("kind: Kustomization\n{}", patch(&memory));
    assert_eq!(check("a-operator", Some(&memory), &kustomization), None);
    let missing = "manifests/a-operator/kustomization.yaml: does not ask for 32Mi and at most 128Mi, as FACTS says";
    assert_eq!(check("a-operator", Some(&memory), "kind: Kustomization\n").as_deref(), Some(missing));
    assert_eq!(check("b-operator", None, "kind: Kustomization\n"), None);
    assert!(check("b-operator", None, &kustomization).is_some());
    let turned = Memory { request: "128Mi", limit: "32Mi", ..memory };
    assert!(check("a-operator", Some(&turned), &patch(&turned)).is_some());
}
