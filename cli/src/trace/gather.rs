//! Asks the operators about the target, its owners and dependents, and the objects that decisions name.

use std::collections::BTreeMap;

use kube::Client;
use shared::api::explain::Version;
use shared::api::selector::Selector;

use crate::discovery::Kinds;
use crate::evidence::{Asked, Evidence, Unread};
use crate::kinds::{COLLECTOR, operators_of};
use crate::object::Object;
use crate::reach::Reach;
use crate::read::asked::ask;
use crate::read::leases::Leases;
use crate::read::{list, why_not};

const ROUNDS: usize = 4;
const OBJECTS_MAX: usize = 16;
const SKIPPED: [&str; 3] = ["Pod", "Event", "Lease"];

/// Paths of objects, by operator.
type Questions = BTreeMap<&'static str, Vec<String>>;

struct Gatherer<'a> {
    client: &'a Client,
    kinds: &'a Kinds,
    evidence: &'a mut Evidence,
    asked: Questions,
}

/// Asks until the answers name no new object.
pub(crate) async fn follow(client: &Client, reach: &Reach, kinds: &Kinds, evidence: &mut Evidence) {
    let mut gatherer = Gatherer { client, kinds, evidence, asked: Questions::new() };
    gatherer.services().await;
    let leases = Leases::read(client, reach.namespace()).await;
    for _ in 0..ROUNDS {
        let questions = gatherer.questions();
        if questions.is_empty() {
            return;
        }
        for asked in ask(client, reach, &leases, questions).await {
            gatherer.add(asked);
        }
    }
}

impl Gatherer<'_> {
    async fn services(&mut self) {
        let Some(kind) = self.kinds.of("v1", "Service") else { return };
        if self.evidence.object().is_none_or(|object| object.kind() == "Service") {
            return;
        }
        let services = match list(self.client, &kind.path(&self.evidence.target.namespace, ""), "").await {
            Ok(services) => services,
            Err(error) => {
                self.evidence.unread.push(Unread { what: kind.plural.clone(), why: why_not(&error) });
                return;
            }
        };
        for mut service in services {
            let selector = Selector::from_labels(&Object(&service).labels("/spec/selector"));
            let selects = |pod: Object<'_>| selector.matches(&pod.labels("/metadata/labels"));
            if !selector.is_empty()
                && chain(self.evidence).into_iter().any(|object| object.kind() == "Pod" && selects(object))
            {
                service["apiVersion"] = kind.api_version().into();
                service["kind"] = kind.kind.clone().into();
                self.evidence.objects.push(service);
            }
        }
    }

    fn named(&self) -> Vec<&Version> {
        let answers = self.evidence.operators.iter().flat_map(|asked| &asked.answers);
        let decisions = answers.flat_map(|answer| &answer.keys).flat_map(|key| &key.last);
        decisions.flat_map(|decision| decision.wrote.iter().chain(&decision.cause)).collect()
    }

    fn questions(&mut self) -> Questions {
        let mut objects: Vec<(String, String, String)> = Vec::new();
        let services = self.evidence.of_kind("Service");
        for object in chain(self.evidence).into_iter().chain(services) {
            let Some(kind) = self.kinds.of(object.text("/apiVersion"), object.kind()) else { continue };
            objects.push((kind.group.clone(), kind.kind.clone(), kind.path(object.namespace(), object.name())));
        }
        for Version { resource, object, version: _ } in self.named() {
            let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
            let (namespace, name) = object.split_once('/').unwrap_or(("", object));
            let fits = |kind: &&crate::discovery::Kind| kind.group == group && kind.plural == plural;
            let Some(kind) = self.kinds.0.iter().find(fits) else { continue };
            objects.push((kind.group.clone(), kind.kind.clone(), kind.path(namespace, name)));
        }
        let mut new = Questions::new();
        for (group, kind, path) in objects {
            for operator in operators_to_ask(&group, &kind) {
                let asked = self.asked.entry(operator).or_default();
                if asked.len() < OBJECTS_MAX && !asked.contains(&path) {
                    asked.push(path.clone());
                    new.entry(operator).or_default().push(path.clone());
                }
            }
        }
        new
    }

    /// Merges new answers with those of the same operator.
    fn add(&mut self, asked: Asked) {
        let Some(known) = self.evidence.operators.iter_mut().find(|known| known.operator == asked.operator) else {
            self.evidence.operators.push(asked);
            return;
        };
        for answer in asked.answers {
            known.answers.retain(|known| known.object != answer.object);
            known.answers.push(answer);
        }
        known.silence = asked.silence.or(known.silence.take());
    }
}

fn operators_to_ask(group: &str, kind: &str) -> Vec<&'static str> {
    let mut operators = operators_of(group, kind);
    operators.retain(|operator| *operator != COLLECTOR && !SKIPPED.contains(&kind));
    operators
}

/// The object, its owners and dependents; no siblings.
fn chain(evidence: &Evidence) -> Vec<Object<'_>> {
    let mut chain: Vec<Object<'_>> = evidence.object().into_iter().collect();
    let mut at = 0;
    while let Some(object) = chain.get(at).copied() {
        at += 1;
        let above = object.owners().filter_map(|owner| evidence.with_uid(owner.uid));
        let below = evidence.owned_by(object.uid()).filter(|_| !is_above(object, evidence));
        for next in above.chain(below) {
            if !chain.iter().any(|known| known.uid() == next.uid()) {
                chain.push(next);
            }
        }
    }
    chain
}

fn is_above(object: Object<'_>, evidence: &Evidence) -> bool {
    let mut below = evidence.object();
    for _ in 0..evidence.objects.len() {
        let Some(at) = below else { return false };
        if at.owners().any(|owner| owner.uid == object.uid()) {
            return true;
        }
        below = at.owners().find_map(|owner| evidence.with_uid(owner.uid));
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::evidence::Target;
    use crate::kinds::OF_NODE;

    #[test]
    fn nodes_are_asked_about_and_pods_are_not() {
        assert_eq!(operators_to_ask("", "Node"), OF_NODE);
        assert_eq!(operators_to_ask("apps", "Deployment"), ["deployment-operator"]);
        assert_eq!(operators_to_ask("", "Pod"), [""; 0]);
    }

    #[test]
    fn siblings_are_not_on_the_chain() {
        let object = |kind: &str, name: &str, owner: &str| {
            json!({ "kind": kind, "apiVersion": "v1", "metadata": {
                "name": name, "uid": name, "ownerReferences": [{ "uid": owner }] } })
        };
        let objects = vec![
            object("Deployment", "web", ""),
            object("ReplicaSet", "old", "web"),
            object("ReplicaSet", "new", "web"),
            object("Pod", "a", "old"),
            object("Pod", "b", "new"),
        ];
        let chain_of = |kind: &str, name: &str| {
            let target = Target { kind: kind.to_owned(), name: name.to_owned(), ..Target::default() };
            let evidence = Evidence { target, objects: objects.clone(), ..Evidence::default() };
            chain(&evidence).iter().map(|object| object.name()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(chain_of("Deployment", "web"), "web old new a b");
        assert_eq!(chain_of("ReplicaSet", "new"), "new web b");
        assert_eq!(chain_of("Pod", "b"), "b new web");
    }
}
