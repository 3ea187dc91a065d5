//! What monitors and workers share: the graph, what is served, and the two queues.
//!
//! The graph's lock is the counterpart of upstream's single graph worker: an event is taken whole, and what it is worth
//! is enqueued before the next one. It is never held over an await.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shared::api::object::{Key, ObjectReference, ResourceVersion, Uid};
use shared::api::resource::Resource;
use shared::runtime::discovery::Discovery;
use shared::runtime::events::{EventType, Recorder};
use shared::runtime::queue::{Backoff, Cause, Queue};
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
    /// Objects that wait for a kind to be served, and how often they were looked at in vain.
    unserved: Mutex<BTreeMap<Uid, u32>>,
}

/// How often an object is looked at while nothing new is served. Upstream: `AttemptToDelete`'s rate limiter, which
/// is client-go's default with a longest wait of 1000 s.
const UNSERVED: Backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_secs(1000) };

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
        let (unreadable, unserved) = (Mutex::default(), Mutex::default());
        Self { graph, served, attempt_to_delete, attempt_to_orphan, recorder, unreadable, unserved }
    }

    /// Reads or changes the graph. What it gives is a copy: nothing can wait in here.
    pub fn with_graph<T>(&self, look: impl FnOnce(&mut Graph) -> T) -> T {
        look(&mut self.graph.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes an event, and enqueues what it is worth.
    pub fn update(&self, event: Event<'_>) -> Followed {
        self.with_graph(|graph| {
            let effects = graph.update(event);
            self.enqueue(graph, effects)
        })
    }

    /// Enqueues what all that is known is worth: while another replica was at work, nobody here has kept that.
    pub fn resume(&self) {
        self.with_graph(|graph| {
            let effects = graph.resume();
            self.enqueue(graph, effects);
        });
    }

    fn enqueue(&self, graph: &Graph, effects: Effects) -> Followed {
        let Effects { attempt_to_delete, attempt_to_delete_later, attempt_to_orphan, invalid_namespace } = effects;
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

    /// Notes what the apiserver serves. If it is not what it was, all that waited for it is looked at.
    pub fn set_served(&self, discovery: Discovery) {
        let is_new = self.served.send_if_modified(|served| {
            let is_new = **served != discovery;
            if is_new {
                *served = Arc::new(discovery);
            }
            is_new
        });
        if is_new {
            let waiting = std::mem::take(&mut *self.unserved());
            self.attempt(&waiting.into_keys().collect::<Vec<_>>());
        }
    }

    /// An object that waited for a kind is looked at; gives how often it was before, in vain.
    pub fn take_unserved(&self, uid: Uid) -> u32 {
        self.unserved().remove(&uid).unwrap_or_default()
    }

    /// An object waits for a kind that was not among those `served`, looked at so many times. Gives how long at the
    /// longest, which is not at all if others are served by now.
    pub fn wait_for_kinds(&self, uid: Uid, looks: u32, served: &Arc<Discovery>) -> Duration {
        let mut unserved = self.unserved();
        if !Arc::ptr_eq(&self.served(), served) {
            return Duration::ZERO;
        }
        unserved.insert(uid, looks);
        UNSERVED.after(looks)
    }

    fn unserved(&self) -> MutexGuard<'_, BTreeMap<Uid, u32>> {
        self.unserved.lock().unwrap_or_else(PoisonError::into_inner)
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
pub(crate) mod tests {
    use shared::api::resource::PODS;
    use shared::runtime::client::{Client, ClientOptions, load_config};
    use shared::runtime::clock::Clock;
    use shared::runtime::consistency::{Consistency, Watched};
    use shared::runtime::control::Control;
    use shared::runtime::discovery::Served;
    use shared::runtime::events::Events;
    use shared::runtime::metrics::Metrics;
    use shared::runtime::queue::Finish;

    use super::*;
    use crate::objects::PartialObject;

    /// A collector that has seen these objects, and a writer; their apiserver refuses every connection.
    pub(crate) async fn collector(seen: &[(&str, &str, &str)]) -> (Collector, Control) {
        let config = load_config(None, Some("http://127.0.0.1:1")).await.unwrap();
        let client = Client::new(&config, ClientOptions::default()).unwrap();
        let events = Events::start(client.clone(), Clock::system(), Metrics::new("test").events());
        let queue = || Queue::new("test", Backoff::default(), None);
        let collector = Collector::new(queue(), queue(), events.recorder("test"));
        collector.with_graph(|graph| {
            for (api_version, kind, json) in seen {
                see(graph, api_version, kind, json);
            }
        });
        let consistency = Consistency::new(client.clone(), Watched::default());
        (collector, Control::new(client, None, Arc::new(consistency)))
    }

    /// Of these resources alone.
    pub(crate) fn serving(resources: &[Resource]) -> Discovery {
        let served =
            |resource: &Resource| Served { resource: resource.clone(), verbs: BTreeSet::default(), is_preferred: true };
        Discovery { served: resources.iter().map(served).collect(), ..Discovery::default() }
    }

    #[tokio::test]
    async fn what_waits_for_a_kind_is_looked_at_when_others_are_served_and_else_seldom() {
        let (collector, _) = collector(&[("v1", "Pod", POD)]).await;
        let (pod, nothing) = (Uid::parse("11111111-2222-4333-8444-555555555555"), collector.served());
        let waits: Vec<u64> = (1..12).map(|looks| collector.wait_for_kinds(pod, looks, &nothing).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000]);
        let queue = collector.attempt_to_delete.clone();
        Queue::start(std::slice::from_ref(&queue), || ());
        collector.set_served(Discovery::default());
        assert!(queue.is_empty(), "nothing new is served");

        collector.set_served(serving(&[PODS]));
        let key = queue.next().await.unwrap();
        assert_eq!(uid_of(&collector.graph.lock().unwrap(), &key), Some(pod));
        queue.finish(&key, Finish::Done);
        assert_eq!(collector.take_unserved(pod), 0);
        // It was looked at while the apiserver served less than it does now.
        assert_eq!(collector.wait_for_kinds(pod, 7, &nothing), Duration::ZERO);
        collector.wait_for_kinds(pod, 7, &collector.served());
        assert_eq!((collector.take_unserved(pod), collector.take_unserved(pod)), (7, 0));
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
