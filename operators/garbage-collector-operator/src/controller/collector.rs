//! What monitors and workers share: the graph, what is served, and the two queues.
//!
//! The graph's lock is the counterpart of upstream's single graph worker: an event is taken whole, and what it is worth
//! is enqueued before the next one. It is never held over an await.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use shared::api::object::{Key, ObjectReference, ResourceVersion, Uid};
use shared::api::resource::Resource;
use shared::runtime::discovery::Discovery;
use shared::runtime::events::{EventType, Recorder};
use shared::runtime::queue::{Cause, Queue};
use tokio::sync::watch;

use crate::graph::{Effects, Event, Graph, Stage};
use crate::objects::{Coordinates, Identity, ObjectKind};

/// The reason of the event about a reference to an owner in another namespace.
pub const OWNER_REF_INVALID_NAMESPACE: &str = "OwnerRefInvalidNamespace";

/// What marks the key of an attempt that is only worth while no monitor has seen the object.
const VIRTUAL: &str = "virtual";

/// What monitors and workers share.
pub struct Collector {
    graph: Mutex<Graph>,
    served: watch::Sender<Arc<Discovery>>,
    attempt_to_delete: Queue,
    attempt_to_orphan: Queue,
    recorder: Recorder,
    /// The kinds of which the last read failed.
    unreadable: Mutex<BTreeSet<Resource>>,
}

/// What an event means for the very object that was attempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// All that follows is enqueued.
    Enqueued,
    /// As before, and it is to be looked at again, later.
    LookAgain,
}

impl Collector {
    /// An empty graph before these queues.
    pub fn new(attempt_to_delete: Queue, attempt_to_orphan: Queue, recorder: Recorder) -> Self {
        let (graph, served) = (Mutex::default(), watch::Sender::default());
        Self { graph, served, attempt_to_delete, attempt_to_orphan, recorder, unreadable: Mutex::default() }
    }

    /// Reads or changes the graph. What it gives is a copy: nothing can wait in here.
    pub fn with_graph<T>(&self, look: impl FnOnce(&mut Graph) -> T) -> T {
        look(&mut self.graph.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes an event, and enqueues what it is worth.
    pub fn update(&self, event: Event<'_>) -> Followed {
        self.with_graph(|graph| {
            let Effects { attempt_to_delete, attempt_to_delete_later, attempt_to_orphan, invalid_namespace } =
                graph.update(event);
            for uid in attempt_to_delete {
                self.attempt_to_delete.add(&key_of(graph, uid), Cause::Event);
            }
            for uid in attempt_to_orphan {
                self.attempt_to_orphan.add(&Key::new("", &uid.to_string()), Cause::Event);
            }
            for (dependent, owner) in invalid_namespace {
                self.report(&dependent, &owner);
            }
            // The one who is told is the one who asked, and whose queue waits for the answer.
            if attempt_to_delete_later.is_empty() { Followed::Enqueued } else { Followed::LookAgain }
        })
    }

    /// Enqueues objects for an attempt.
    pub fn attempt(&self, uids: &[Uid]) {
        self.with_graph(|graph| {
            for uid in uids {
                self.attempt_to_delete.add(&key_of(graph, *uid), Cause::Event);
            }
        });
    }

    /// What the apiserver served when it was last asked.
    pub fn served(&self) -> Arc<Discovery> {
        Arc::clone(&self.served.borrow())
    }

    /// Notes what the apiserver serves.
    pub fn set_served(&self, discovery: Discovery) {
        self.served.send_replace(Arc::new(discovery));
    }

    /// Where objects of this kind are served.
    pub fn resource_of(&self, kind: &ObjectKind) -> Option<Resource> {
        self.served.borrow().resource_of(&kind.api_version, &kind.kind).cloned()
    }

    /// Logs that objects of a kind cannot be read, once until they can again.
    pub fn note_read(&self, resource: &Resource, failure: Option<&str>) {
        let mut unreadable = self.unreadable.lock().unwrap_or_else(PoisonError::into_inner);
        match failure {
            Some(error) if unreadable.insert(resource.clone()) => {
                tracing::warn!(%resource, error, "cannot read objects of a kind; what depends on them waits");
            }
            None if unreadable.remove(resource) => tracing::info!(%resource, "objects of a kind can be read again"),
            Some(_) | None => {}
        }
    }

    /// Upstream: `reportInvalidNamespaceOwnerRef`, `pkg/controller/garbagecollector/graph_builder.go`.
    fn report(&self, dependent: &Identity, owner: &Coordinates) {
        let Some(resource) = self.resource_of(&dependent.object.kind) else { return };
        let about = ObjectReference {
            resource,
            key: dependent.key(),
            uid: dependent.object.uid,
            resource_version: ResourceVersion::default(),
        };
        self.recorder.event(
            &about,
            EventType::Warning,
            OWNER_REF_INVALID_NAMESPACE,
            invalid_namespace(dependent, owner),
        );
    }
}

fn invalid_namespace(dependent: &Identity, owner: &Coordinates) -> String {
    let Coordinates { kind, name, uid } = owner;
    let (ObjectKind { api_version, kind }, namespace) = (&**kind, dependent.namespace.as_str());
    format!(
        "ownerRef [{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}] does not exist in namespace \
         {namespace:?}"
    )
}

fn key_of(graph: &Graph, uid: Uid) -> Key {
    let is_virtual = graph.node(uid).is_some_and(|node| node.stage == Stage::Virtual);
    Key::new(if is_virtual { VIRTUAL } else { "" }, &uid.to_string())
}

/// The uid of a key, unless the attempt was only worth while the object was virtual, and it is so no more.
///
/// Upstream: `attemptToDeleteWorker`, `pkg/controller/garbagecollector/garbagecollector.go`.
pub fn uid_of(graph: &Graph, key: &Key) -> Option<Uid> {
    let uid = Uid::parse(key.name());
    let stage = graph.node(uid)?.stage;
    (key.namespace() != VIRTUAL || stage == Stage::Virtual).then_some(uid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::PartialObject;

    const POD: &str = r#"{"metadata":{"name":"a","namespace":"ns","uid":"11111111-2222-4333-8444-555555555555",
        "ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"rs",
        "uid":"0b6cd1a8-9b7e-4a0e-9a53-0c7a3e1f2d4b"}]}}"#;
    const REPLICA_SET: &str =
        r#"{"metadata":{"name":"rs","namespace":"ns","uid":"0b6cd1a8-9b7e-4a0e-9a53-0c7a3e1f2d4b"}}"#;

    fn see(graph: &mut Graph, api_version: &str, kind: &str, json: &str) -> Uid {
        let object: PartialObject = serde_json::from_str(json).unwrap();
        graph.update(Event::Observed(&ObjectKind::shared(api_version, kind), &object));
        object.uid
    }

    #[test]
    fn an_attempt_on_a_virtual_object_ends_once_it_is_seen_or_gone() {
        let mut graph = Graph::default();
        let pod = see(&mut graph, "v1", "Pod", POD);
        let owner = Uid::parse("0b6cd1a8-9b7e-4a0e-9a53-0c7a3e1f2d4b");
        let (of_pod, of_virtual) = (key_of(&graph, pod), key_of(&graph, owner));
        assert_eq!((uid_of(&graph, &of_pod), uid_of(&graph, &of_virtual)), (Some(pod), Some(owner)));
        see(&mut graph, "apps/v1", "ReplicaSet", REPLICA_SET);
        assert_eq!(uid_of(&graph, &of_virtual), None);
        assert_eq!(uid_of(&graph, &key_of(&graph, owner)), Some(owner));
        assert_eq!(uid_of(&Graph::default(), &of_pod), None);
    }

    #[test]
    fn an_owner_in_another_namespace_is_told_of_in_upstreams_words() {
        let mut graph = Graph::default();
        let pod = see(&mut graph, "v1", "Pod", POD);
        let node = graph.node(pod).unwrap();
        assert_eq!(
            invalid_namespace(&node.identity, &node.owners[0].owner),
            "ownerRef [apps/v1/ReplicaSet, namespace: ns, name: rs, uid: 0b6cd1a8-9b7e-4a0e-9a53-0c7a3e1f2d4b] does not \
             exist in namespace \"ns\""
        );
    }
}
