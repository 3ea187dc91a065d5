//! Which operator is asked about which object.

use std::cmp::Reverse;
use std::iter::once;

use crate::diagnose::deletion;
use crate::discovery::Kinds;
use crate::evidence::Evidence;
use crate::kinds::{COLLECTOR, operators_about};
use crate::object::Object;

const OBJECTS_MAX: usize = 4;

pub(super) fn of(evidence: &Evidence, kinds: &Kinds) -> Vec<(&'static str, Vec<String>)> {
    let Some(object) = evidence.object() else { return Vec::new() };
    let owners = object.owners().filter_map(|owner| evidence.with_uid(owner.uid));
    let owned = evidence.owned_by(object.uid()).filter(|owned| !["Pod", "Event"].contains(&owned.kind()));
    let mut owned: Vec<Object<'_>> = owned.collect();
    // Objects with replicas first, then the newest.
    owned.sort_by_key(|owned| (owned.count("/spec/replicas") == 0, Reverse(owned.created())));
    let acted_on = once(object).chain(owners).chain(owned).flat_map(|about| {
        let operators = operators_about(about).into_iter().filter(|operator| *operator != COLLECTOR);
        operators.map(move |operator| (operator, about))
    });
    let collected = collected(evidence, object).into_iter().map(|about| (COLLECTOR, about));
    let mut questions: Vec<(&'static str, Vec<String>)> = Vec::new();
    for (operator, about) in acted_on.chain(collected) {
        let Some(kind) = kinds.of(about.text("/apiVersion"), about.kind()) else { continue };
        let path = kind.path(about.namespace(), about.name());
        match questions.iter_mut().find(|(name, _)| *name == operator) {
            Some((_, paths)) if paths.len() < OBJECTS_MAX => paths.push(path),
            Some(_) => {}
            None => questions.push((operator, vec![path])),
        }
    }
    questions
}

/// The object, if it is being deleted, and the dependents that its foreground deletion waits for; first those that
/// only the garbage collector deletes.
fn collected<'a>(evidence: &'a Evidence, object: Object<'a>) -> Vec<Object<'a>> {
    let goes = object.deleted().is_some() || !evidence.absent_owners.is_empty();
    let mut blocking = deletion::blocking(evidence, object);
    blocking.sort_by_key(|dependent| dependent.deleted().is_some());
    once(object).filter(|_| goes).chain(blocking).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::discovery::Kind;
    use crate::evidence::Target;

    /// An object whose uid is its name; one with finalizers is being deleted.
    fn object(kind: &str, name: &str, owner: &str, finalizers: &[&str]) -> Value {
        let api_version = if kind == "Pod" { "v1" } else { "apps/v1" };
        let deleted = (!finalizers.is_empty()).then_some("2026-01-01T00:00:00Z");
        let references = json!([{"uid": owner, "blockOwnerDeletion": true}]);
        let metadata = json!({
            "name": name, "namespace": "team", "uid": name, "ownerReferences": references,
            "finalizers": finalizers, "deletionTimestamp": deleted,
        });
        json!({"apiVersion": api_version, "kind": kind, "metadata": metadata})
    }

    /// The questions about the Deployment `web`, by operator.
    fn asked(objects: Vec<Value>) -> Vec<String> {
        let kind = |group: &str, kind: &str| Kind {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: format!("{}s", kind.to_lowercase()),
            is_namespaced: true,
            ..Kind::default()
        };
        let kinds = Kinds(vec![kind("apps", "Deployment"), kind("apps", "ReplicaSet"), kind("", "Pod")]);
        let [group, kind, namespace, name] = ["apps", "Deployment", "team", "web"].map(str::to_owned);
        let target = Target { group, kind, namespace, name, ..Target::default() };
        let evidence = Evidence { target, objects, ..Evidence::default() };
        let name = |path: &String| path.rsplit('/').next().unwrap_or_default().to_owned();
        let line = |(operator, paths): (&str, Vec<String>)| {
            format!("{operator}: {}", paths.iter().map(name).collect::<Vec<_>>().join(" "))
        };
        of(&evidence, &kinds).into_iter().map(line).collect()
    }

    #[test]
    fn the_garbage_collector_is_asked_about_what_a_deletion_waits_for() {
        let foreground = &["foregroundDeletion"];
        let found = asked(vec![
            object("Deployment", "web", "", foreground),
            object("ReplicaSet", "web-a", "web", foreground),
            object("ReplicaSet", "web-b", "web", &[]),
            object("Pod", "web-a-x", "web-a", &["acme.example/hold"]),
            object("Pod", "web-b-x", "web-b", &[]),
        ]);
        assert_eq!(
            found,
            [
                "deployment-operator: web web-a web-b",
                "replicaset-operator: web-a web-b",
                "garbage-collector-operator: web web-b web-a web-a-x",
            ]
        );
    }

    #[test]
    fn the_garbage_collector_is_not_asked_about_what_stays() {
        let found = asked(vec![object("Deployment", "web", "", &[]), object("ReplicaSet", "web-a", "web", &[])]);
        assert_eq!(found, ["deployment-operator: web web-a", "replicaset-operator: web-a"]);
    }
}
