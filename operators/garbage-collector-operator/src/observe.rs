//! What one attempt reads: the object, then its owners, each live, for the graph may lag.
//!
//! An owner is absent only if the apiserver knows its kind and says that there is no such object. Every other answer
//! (the kind is not served, its API service is down, its conversion webhook is broken, RBAC refuses) leaves the
//! question open, and the object alone.

use std::sync::Arc;

use anyhow::Context;
use shared::api::intern::Text;
use shared::api::object::{Key, Uid};
use shared::api::resource::Resource;
use shared::api::url::is_segment;
use shared::runtime::control::Control;

use crate::controller::collector::Collector;
use crate::graph::Stage;
use crate::objects::{FOREGROUND_DELETION, Identity, LiveObject, OwnerReference};
use crate::plan::{Dependents, Live, Observed, Owner, Owners, Present};

/// Reads; none if the graph does not know the object any more.
///
/// # Errors
/// When this build cannot read an object's owners.
pub async fn observe(collector: &Collector, control: &Control, uid: Uid) -> anyhow::Result<Option<Observed>> {
    let Some((identity, stage)) = collector.with_graph(|graph| {
        let node = graph.node(uid)?;
        Some((node.identity.clone(), node.stage))
    }) else {
        return Ok(None);
    };
    let live =
        if stage == Stage::BeingDeleted { Live::NotAsked } else { read(collector, control, &identity, stage).await? };
    // As late as possible: what the graph learned during the reads counts.
    let dependents = collector.with_graph(|graph| Dependents::of(uid, graph.dependents(uid)));
    Ok(Some(Observed { identity, stage, dependents, live }))
}

async fn read(collector: &Collector, control: &Control, identity: &Identity, stage: Stage) -> anyhow::Result<Live> {
    let Some(resource) = collector.resource_of(&identity.object.kind) else { return Ok(Live::Unserved) };
    if resource.namespaced && identity.namespace.is_empty() {
        return Ok(Live::NoNamespace);
    }
    if !is_segment(&identity.object.name) {
        return Ok(Live::InvalidName);
    }
    let key = key_in(&resource, &identity.namespace, &identity.object.name);
    let live = match get(collector, control, &resource, &key).await {
        Got::Object(live) if live.uid() == identity.object.uid => live,
        Got::Object(_) | Got::Absent => return Ok(Live::Absent),
        Got::Unserved => return Ok(Live::Unserved),
        Got::Failed(error) => return Ok(Live::Unread(error)),
    };
    let owners = if stage == Stage::DeletingDependents {
        Owners::NotAsked
    } else {
        let references = live.owners().with_context(|| format!("read the owners of {identity}"))?;
        owners_of(collector, control, identity, references).await?
    };
    Ok(Live::Present(Box::new(Present { resource, live, owners })))
}

async fn owners_of(
    collector: &Collector,
    control: &Control,
    dependent: &Identity,
    references: Vec<Arc<OwnerReference>>,
) -> anyhow::Result<Owners> {
    let mut known = Vec::with_capacity(references.len());
    for reference in references {
        if !is_segment(&reference.owner.name) {
            return Ok(Owners::InvalidName(reference));
        }
        let in_namespace =
            |namespace: &Text| Identity { object: reference.owner.clone(), namespace: namespace.clone() };
        let (anywhere, here) = (in_namespace(&Text::default()), in_namespace(&dependent.namespace));
        if collector.with_graph(|graph| graph.is_absent(&anywhere) || graph.is_absent(&here)) {
            known.push((reference, Owner::Dangling));
            continue;
        }
        let kind = &reference.owner.kind;
        let Some(resource) = collector.resource_of(kind) else { return Ok(Owners::Unserved(Arc::clone(kind))) };
        if resource.namespaced && dependent.namespace.is_empty() {
            return Ok(Owners::Namespaced(reference));
        }
        let key = key_in(&resource, &dependent.namespace, &reference.owner.name);
        let owner = match get(collector, control, &resource, &key).await {
            Got::Unserved => return Ok(Owners::Unserved(Arc::clone(kind))),
            Got::Failed(error) => return Ok(Owners::Unread(error)),
            Got::Object(live) if live.uid() == reference.owner.uid => {
                let waits = live.is_being_deleted() && live.has_finalizer(FOREGROUND_DELETION);
                if waits { Owner::Waiting } else { Owner::Solid }
            }
            Got::Object(_) | Got::Absent => {
                let absent = if resource.namespaced { here } else { anywhere };
                collector.with_graph(|graph| graph.note_absent(absent));
                Owner::Dangling
            }
        };
        known.push((reference, owner));
    }
    Ok(Owners::Known(known))
}

pub(crate) enum Got {
    Object(LiveObject),
    Absent,
    /// The path is not known: the kind went since the last discovery.
    Unserved,
    /// There is no answer to build on.
    Failed(String),
}

/// A live read of one object's metadata.
pub(crate) async fn get(collector: &Collector, control: &Control, resource: &Resource, key: &Key) -> Got {
    let got = control.get_metadata(resource, key).await;
    let got = match got {
        Ok(live) => Got::Object(live),
        Err(error) if error.is_object_not_found() => Got::Absent,
        Err(error) if error.code() == Some(404) => Got::Unserved,
        Err(error) => Got::Failed(format!("read {resource} {key}: {error}")),
    };
    collector.note_read(resource, if let Got::Failed(error) = &got { Some(error) } else { None });
    got
}

/// Where an object of this name is, seen from a namespace.
pub(crate) fn key_in(resource: &Resource, namespace: &str, name: &str) -> Key {
    Key::new(if resource.namespaced { namespace } else { "" }, name)
}

#[cfg(test)]
mod tests {
    use shared::api::resource::{PODS, REPLICA_SETS};

    use super::*;
    use crate::controller::collector::tests::{collector, serving};

    const POD: &str = "11111111-2222-4333-8444-555555555555";
    const OWNER: &str = "0b6cd1a8-9b7e-4a0e-9a53-0c7a3e1f2d4b";

    fn pod_of(owner: &str) -> String {
        format!(
            r#"{{"metadata":{{"name":"a","namespace":"ns","uid":"{POD}","ownerReferences":[
                {{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{owner}","uid":"{OWNER}"}}]}}}}"#
        )
    }

    /// What is known of an owner of this name, and of the owners of a pod that refers to it, where nobody answers.
    async fn check(name: &str, is_asked_for: bool) {
        let pod = pod_of(name);
        let (collector, control) = collector(&[("v1", "Pod", &pod)]).await;
        collector.set_served(serving(&[PODS, REPLICA_SETS]));
        let owner = observe(&collector, &control, Uid::parse(OWNER)).await.unwrap().unwrap();
        let live: LiveObject = serde_json::from_str(&pod).unwrap();
        let identity = collector.with_graph(|graph| graph.node(Uid::parse(POD)).unwrap().identity.clone());
        let owners = owners_of(&collector, &control, &identity, live.owners().unwrap()).await.unwrap();
        let seen = (matches!(owner.live, Live::Unread(_)), matches!(owners, Owners::Unread(_)));
        assert_eq!(seen, (is_asked_for, is_asked_for), "{name:?}");
        let seen = (matches!(owner.live, Live::InvalidName), matches!(owners, Owners::InvalidName(_)));
        assert_eq!(seen, (!is_asked_for, !is_asked_for), "{name:?}");
    }

    #[tokio::test]
    async fn an_owner_is_asked_for_by_every_name_that_an_object_can_have_and_by_no_other() {
        for name in ["web", "dev?x", "a b#c", "system:a", "..."] {
            check(name, true).await;
        }
        for name in ["", ".", "..", "a/b", "../../../secrets", "50%", "%2e%2e"] {
            check(name, false).await;
        }
    }
}
