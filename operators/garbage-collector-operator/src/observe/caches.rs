//! The state that monitors and workers share: the graph, the state of the kinds, and the two queues of attempts.
//!
//! The graph's lock stands for upstream's single graph worker: the attempts of one event are enqueued before the next
//! event is handled. It is never held over an await.

use std::sync::{Mutex, PoisonError};

use shared::api::object::{Key, Uid};
use shared::transport::discovery::Discovery;
use shared::working::events::{EventType, Recorder};
use shared::working::queue::{Cause, Queue};

use crate::graph::{Attempts, Event, Graph, Stage};
use crate::memory::Kinds;
use crate::memory::turns::Turns;
use crate::objects::{Coordinates, Identity, ObjectKind};
use crate::observe::ReadOwners;

/// The reason of the event about a reference to an owner in another namespace.
const OWNER_REF_INVALID_NAMESPACE: &str = "OwnerRefInvalidNamespace";

/// Marks the key of an attempt that is dropped once a monitor has seen the object.
const VIRTUAL: &str = "virtual";

pub struct Caches {
    graph: Mutex<Graph>,
    attempt_to_delete: Queue,
    attempt_to_orphan: Queue,
    recorder: Recorder,
    pub(crate) kinds: Kinds,
    pub(crate) turns: Turns<ReadOwners>,
}

/// The effect of an event on the object that was attempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Followed {
    Enqueued,
    /// All attempts are enqueued, and the object itself has to be attempted again later.
    Retry,
}

impl Caches {
    pub(crate) fn new(attempt_to_delete: Queue, attempt_to_orphan: Queue, recorder: Recorder) -> Self {
        let (graph, kinds, turns) = (Mutex::default(), Kinds::default(), Turns::default());
        Self { graph, attempt_to_delete, attempt_to_orphan, recorder, kinds, turns }
    }

    /// Reads or changes the graph under its lock; nothing can be awaited in here.
    pub(crate) fn with_graph<T>(&self, look: impl FnOnce(&mut Graph) -> T) -> T {
        look(&mut self.graph.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Feeds an event to the graph, and enqueues the attempts that follow.
    pub(crate) fn update(&self, event: Event<'_>) -> Followed {
        self.with_graph(|graph| {
            let attempts = graph.update(event);
            self.enqueue(graph, attempts)
        })
    }

    /// Enqueues the attempts that follow from the whole graph: a standby drops those of single events.
    pub(crate) fn resume(&self) {
        self.with_graph(|graph| {
            let attempts = graph.resume();
            self.enqueue(graph, attempts);
        });
    }

    fn enqueue(&self, graph: &Graph, attempts: Attempts) -> Followed {
        let Attempts { attempt_to_delete, attempt_to_delete_later, attempt_to_orphan, invalid_namespace } = attempts;
        for uid in attempt_to_delete {
            self.attempt_to_delete.add(&key_of(graph, uid), Cause::Event);
        }
        for uid in attempt_to_orphan {
            self.attempt_to_orphan.add(&Key::new("", &uid.to_string()), Cause::Event);
        }
        for (dependent, owner) in invalid_namespace {
            self.report(&dependent, &owner);
        }
        // Only the sync that reported the object absent gets these, and its own key is requeued.
        if attempt_to_delete_later.is_empty() { Followed::Enqueued } else { Followed::Retry }
    }

    pub(crate) fn attempt(&self, uids: &[Uid]) {
        self.with_graph(|graph| {
            for uid in uids {
                self.attempt_to_delete.add(&key_of(graph, *uid), Cause::Event);
            }
        });
    }

    /// Replaces the last discovery. If it has changed, enqueues the objects that waited for a kind.
    pub(crate) fn set_served(&self, discovery: Discovery) {
        self.attempt(&self.kinds.set_served(discovery));
    }

    /// Upstream: `reportInvalidNamespaceOwnerRef`, `pkg/controller/garbagecollector/graph_builder.go`.
    fn report(&self, dependent: &Identity, owner: &Coordinates) {
        let Some(resource) = self.kinds.resource_of(&dependent.object.kind) else { return };
        self.recorder.event(
            &dependent.reference(resource),
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

/// The key of the attempts to delete the object of this uid.
pub(super) fn key_of(graph: &Graph, uid: Uid) -> Key {
    let is_virtual = graph.node(uid).is_some_and(|node| node.stage == Stage::Virtual);
    Key::new(if is_virtual { VIRTUAL } else { "" }, &uid.to_string())
}

/// The uid of a key; none if the attempt was about a virtual object that a monitor has seen since.
///
/// Upstream: `attemptToDeleteWorker`, `pkg/controller/garbagecollector/garbagecollector.go`.
pub(crate) fn uid_of(graph: &Graph, key: &Key) -> Option<Uid> {
    let uid = Uid::parse(key.name());
    let stage = graph.node(uid)?.stage;
    (key.namespace() != VIRTUAL || stage == Stage::Virtual).then_some(uid)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::time::Duration;

    use shared::api::resource::{PODS, Resource};
    use shared::process::metrics::Metrics;
    use shared::transport::client::{Client, ClientOptions, load_config};
    use shared::transport::clock::Clock;
    use shared::transport::discovery::Served;
    use shared::working::consistency::{Consistency, Watched};
    use shared::working::control::Control;
    use shared::working::decisions::Decisions;
    use shared::working::events::Events;
    use shared::working::queue::{Backoff, Finish};

    use super::*;
    use crate::objects::PartialObject;
    use crate::observe::Learned;

    /// Caches that have seen these objects, and a control; their apiserver refuses every connection.
    pub(crate) async fn caches(seen: &[(&str, &str, &str)]) -> (Caches, Control) {
        let config = load_config(None, Some("http://127.0.0.1:1")).await.unwrap().config;
        let client = Client::new(&config, ClientOptions::default()).unwrap();
        let events = Events::start(client.clone(), Clock::system(), Metrics::new("test").events());
        let queue = || Queue::new("test", Backoff::default(), None);
        let caches = Caches::new(queue(), queue(), events.recorder("test"));
        caches.with_graph(|graph| {
            for (api_version, kind, json) in seen {
                see(graph, api_version, kind, json);
            }
        });
        let consistency = Consistency::new(client.clone(), Watched::default());
        (caches, Control::new(client, Arc::new(consistency), Decisions::default()))
    }

    pub(crate) fn serving(resources: &[Resource]) -> Discovery {
        let served =
            |resource: &Resource| Served { resource: resource.clone(), verbs: BTreeSet::default(), is_preferred: true };
        Discovery { served: resources.iter().map(served).collect(), ..Discovery::default() }
    }

    #[tokio::test]
    async fn what_waits_for_a_kind_is_looked_at_when_others_are_served_and_else_seldom() {
        let (caches, _) = caches(&[("v1", "Pod", POD)]).await;
        let (pod, nothing) = (Uid::parse("11111111-2222-4333-8444-555555555555"), caches.kinds.served());
        let waits: Vec<u64> = (1..12).map(|looks| caches.kinds.wait(pod, looks, &nothing).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000]);
        let queue = caches.attempt_to_delete.clone();
        Queue::start(std::slice::from_ref(&queue), || ());
        caches.set_served(Discovery::default());
        assert!(queue.is_empty(), "nothing new is served");

        caches.set_served(serving(&[PODS]));
        let key = queue.next().await.unwrap();
        assert_eq!(uid_of(&caches.graph.lock().unwrap(), &key), Some(pod));
        queue.finish(&key, Finish::Done);
        assert_eq!(caches.kinds.looks(pod), 0);
        // It was synced while the apiserver served less than it does now.
        assert_eq!(caches.kinds.wait(pod, 7, &nothing), Duration::ZERO);
        caches.kinds.wait(pod, 7, &caches.kinds.served());
        assert_eq!(caches.kinds.looks(pod), 7);
        caches.remember(pod, &Learned::default());
        assert_eq!(caches.kinds.looks(pod), 0);
    }

    #[tokio::test]
    async fn an_owner_that_was_absent_before_etcd_was_restored_is_asked_for_again() {
        let (caches, _) = caches(&[("v1", "Pod", POD)]).await;
        let pod = Uid::parse("11111111-2222-4333-8444-555555555555");
        let owner = caches.with_graph(|graph| Identity {
            object: graph.node(pod).unwrap().owners[0].owner.clone(),
            namespace: "ns".into(),
        });
        let learned = Learned { absent: vec![owner.clone()], ..Learned::default() };
        caches.remember(pod, &learned);
        assert!(caches.with_graph(|graph| graph.is_absent(&owner)));
        caches.with_graph(Graph::forget_absent);
        caches.remember(pod, &learned);
        assert!(!caches.with_graph(|graph| graph.is_absent(&owner)));
    }

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
