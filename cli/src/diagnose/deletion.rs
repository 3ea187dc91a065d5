//! Why a deleted object still exists, or why an object is about to be deleted.

use std::collections::HashSet;

use crate::cause::Cause;
use crate::cause::deletion::Deletion;
use crate::evidence::Evidence;
use crate::kinds;
use crate::object::{Condition, Object};
use crate::words::line;

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";
/// Conditions that block a namespace's deletion, by priority.
const BLOCKED: [&str; 3] = [
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
];

/// None for an object that is neither being deleted nor orphaned.
pub(crate) fn cause(evidence: &Evidence, object: Object<'_>) -> Option<Cause> {
    if object.deleted().is_none() {
        return orphaned(evidence, object).map(Cause::from);
    }
    let found = namespace(object)
        .or_else(|| foreign(object))
        .or_else(|| collected(evidence, object))
        .or_else(|| pod(evidence, object));
    Some(found.unwrap_or_else(|| Deletion::Going { since: object.deleted() }).into())
}

fn foreign(object: Object<'_>) -> Option<Deletion> {
    let of_spec = object.texts("/spec/finalizers").into_iter().filter(|_| object.kind() == "Namespace");
    let all = object.texts("/metadata/finalizers").into_iter().chain(of_spec);
    let known = [FOREGROUND, ORPHAN, "kubernetes"];
    let finalizer = all.into_iter().find(|finalizer| !known.contains(finalizer))?;
    let remover = kinds::remover(finalizer);
    Some(Deletion::Finalizer { finalizer: finalizer.to_owned(), remover, since: object.deleted() })
}

/// A finalizer of another controller on an object that is being deleted.
fn held(dependent: Object<'_>) -> Option<&str> {
    let own = dependent.texts("/metadata/finalizers").into_iter().find(|name| ![FOREGROUND, ORPHAN].contains(name));
    own.filter(|_| dependent.deleted().is_some())
}

/// Waiting for the garbage collector: dependents come first.
fn collected(evidence: &Evidence, object: Object<'_>) -> Option<Deletion> {
    let finalizers = object.texts("/metadata/finalizers");
    let since = object.deleted();
    if finalizers.contains(&ORPHAN) {
        let dependents = evidence.owned_by(object.uid()).count();
        return Some(Deletion::Orphaning { dependents: i64::try_from(dependents).unwrap_or(i64::MAX), since });
    }
    if !finalizers.contains(&FOREGROUND) {
        return None;
    }
    let direct = evidence.owned_by(object.uid()).filter(|dependent| blocks(*dependent, object));
    let dependents: Vec<String> = direct.map(Object::called).collect();
    if dependents.is_empty() {
        return Some(Deletion::Foreground { since });
    }
    // One blocked dependent blocks all.
    let all = blocking(evidence, object);
    let by_finalizer = all.iter().find_map(|dependent| Some((dependent.called(), held(*dependent)?.to_owned())));
    let by_node = all.iter().find_map(|dependent| Some((dependent.called(), lost(evidence, *dependent)?)));
    let (held, finalizer, node) = match (by_finalizer, by_node) {
        (Some((held, finalizer)), _) => (held, finalizer, String::new()),
        (None, Some((held, node))) => (held, String::new(), node),
        (None, None) => (String::new(), String::new(), String::new()),
    };
    let remover = if finalizer.is_empty() { String::new() } else { kinds::remover(&finalizer) };
    Some(Deletion::BlockedByDependents { dependents, held, finalizer, remover, node, since })
}

fn blocks(dependent: Object<'_>, owner: Object<'_>) -> bool {
    dependent.owners().any(|reference| reference.uid == owner.uid() && reference.blocks)
}

/// All dependents that the object's foreground deletion waits for, nearest first, including those of dependents that
/// are being deleted in the foreground.
pub(crate) fn blocking<'a>(evidence: &'a Evidence, object: Object<'a>) -> Vec<Object<'a>> {
    let mut found: Vec<Object<'a>> = Vec::new();
    let mut known = HashSet::from([object.uid()]);
    let mut next = Some(object);
    let mut looked_at = 0;
    while let Some(owner) = next {
        if owner.deleted().is_some() && owner.texts("/metadata/finalizers").contains(&FOREGROUND) {
            let own = evidence.owned_by(owner.uid()).filter(|dependent| blocks(*dependent, owner));
            found.extend(own.filter(|dependent| known.insert(dependent.uid())));
        }
        next = found.get(looked_at).copied();
        looked_at += 1;
    }
    found
}

/// The node that has not removed a pod after its grace period.
fn lost(evidence: &Evidence, dependent: Object<'_>) -> Option<String> {
    dependent.deleted()?;
    let Some(Deletion::NodeHolds { node, .. }) = pod(evidence, dependent) else { return None };
    Some(node)
}

fn pod(evidence: &Evidence, object: Object<'_>) -> Option<Deletion> {
    if object.kind() != "Pod" {
        return None;
    }
    let (node, until) = (object.text("/spec/nodeName").to_owned(), object.time("/metadata/deletionTimestamp"));
    if until.is_some_and(|until| until > evidence.now) {
        return Some(Deletion::Grace { node, until });
    }
    (!node.is_empty()).then(|| Deletion::NodeHolds { node, since: object.deleted() })
}

fn namespace(object: Object<'_>) -> Option<Deletion> {
    if object.kind() != "Namespace" {
        return None;
    }
    let since = object.deleted();
    let holding = |name: &str| object.condition(name).filter(|condition| condition.status == "True");
    if let Some(Condition { name, message, .. }) = BLOCKED.iter().find_map(|name| holding(name)) {
        let api_services = api_services(message);
        return Some(Deletion::NamespaceBlocked { condition: name.to_owned(), api_services, message: line(message) });
    }
    let after = |condition: Condition<'_>| {
        let message = condition.message;
        line(message.split_once(": ").map_or(message, |(_, rest)| rest)).replace(". has", " has")
    };
    let content = holding("NamespaceContentRemaining").map(after);
    let finalizers = holding("NamespaceFinalizersRemaining").map(|condition| {
        let named = after(condition);
        let first = named.split(" in ").next().unwrap_or_default().to_owned();
        format!("finalizers: {named}; `{first}` is removed by {}", kinds::remover(&first))
    });
    if content.is_none() && finalizers.is_none() {
        return foreign(object).or(Some(Deletion::NamespaceEmptying { since }));
    }
    let content = content.unwrap_or_else(|| "some content remains".to_owned());
    Some(Deletion::NamespaceContent { content, finalizers: finalizers.unwrap_or_default(), since })
}

/// The `APIService`s of a failed discovery: `…: metrics.example/v1: why, other.example/v1: why`.
///
/// Upstream: `ErrGroupDiscoveryFailed`, staging/src/k8s.io/client-go/discovery/discovery_client.go.
fn api_services(message: &str) -> Vec<String> {
    let Some((_, groups)) = message.split_once("complete list of server APIs: ") else { return Vec::new() };
    let service = |failed: &str| {
        let (group, version) = failed.split_once(": ")?.0.split_once('/')?;
        Some(format!("{version}.{group}"))
    };
    groups.split(", ").filter_map(service).collect()
}

fn orphaned(evidence: &Evidence, object: Object<'_>) -> Option<Deletion> {
    let absent: Vec<_> =
        object.owners().filter(|owner| evidence.absent_owners.iter().any(|uid| uid == owner.uid)).collect();
    let first = absent.first().filter(|_| absent.len() == object.owners().count())?;
    let owner = format!("{}/{}", first.kind.to_lowercase(), first.name);
    if let Some(event) = evidence.event(object, &["OwnerRefInvalidNamespace"]) {
        return Some(Deletion::OwnerElsewhere { owner, message: line(event.text("/message")) });
    }
    let is_another = evidence.of_kind(first.kind).any(|other| other.name() == first.name && other.uid() != first.uid);
    Some(Deletion::OwnerAbsent { owner, is_another })
}
