//! Which key an object has that somebody asks about, and why it has none.
//!
//! Keys are uids, so the graph is searched by kind and name: that costs a look at every node, once a question.
//! Left out: objects that are gone. Their last decisions are found by their uid alone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shared::api::explain::Subject;
use shared::api::object::Key;
use shared::api::resource::{LEASES, Resource};
use shared::runtime::discovery::Served;
use shared::runtime::informer::Health;

use crate::graph::{Graph, Node, Stage};
use crate::objects::Identity;
use crate::observe::Caches;
use crate::observe::caches::key_of;
use crate::plan::unseen::Unseen;

/// The mark of the key of an object that no monitor has seen; kind and name follow.
const UNSEEN: &str = "unseen";
/// The namespace of kubelets' Leases.
const NODE_LEASES: &str = "kube-node-lease";

/// How each monitor fares.
#[derive(Default)]
pub(super) struct Monitored(Mutex<BTreeMap<Resource, Arc<Health>>>);

impl Monitored {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Resource, Arc<Health>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A kind and a namespace, in the words of a path.
struct Path<'a> {
    group: &'a str,
    plural: &'a str,
    namespace: &'a str,
}

impl<'a> Path<'a> {
    fn of_key(key: &'a Key) -> Option<Self> {
        let mut parts = key.as_str().strip_prefix(UNSEEN)?.strip_prefix('/')?.splitn(4, '/');
        let mut next = || parts.next();
        Some(Self { group: next()?, plural: next()?, namespace: next()? })
    }

    fn is_of(&self, resource: &Resource) -> bool {
        (self.group, self.plural) == (&*resource.group, &*resource.plural)
    }
}

impl Caches {
    /// A monitor runs for this kind.
    pub(crate) fn monitor_started(&self, resource: &Resource, health: Arc<Health>) {
        self.monitored.all().insert(resource.clone(), health);
    }

    /// No monitor runs for this kind any more.
    pub(crate) fn monitor_stopped(&self, resource: &Resource) {
        self.monitored.all().remove(resource);
    }

    /// Why a kind cannot be listed or watched at the moment.
    pub(super) fn failing(&self, resource: &Resource) -> Option<String> {
        let is_meant = |known: &Resource| (&known.group, &known.plural) == (&resource.group, &resource.plural);
        self.monitored.all().iter().find(|(known, _)| is_meant(known)).and_then(|(_, health)| health.failing())
    }

    /// The key of the attempts to delete this object; one by which [`Self::unseen`] finds out more where the graph does
    /// not know it.
    pub(crate) fn key_of(&self, object: &Subject) -> Key {
        self.with_graph(|graph| self.find(graph, object).map(|node| key_of(graph, node.identity.object.uid)))
            .unwrap_or_else(|| {
                let Subject { group, version: _, resource, namespace, name } = object;
                Key::new(UNSEEN, &format!("{group}/{resource}/{namespace}/{name}"))
            })
    }

    /// The key of the attempts to orphan this object's dependents, if it is deleted so.
    pub(crate) fn orphaning_key_of(&self, object: &Subject) -> Option<Key> {
        self.with_graph(|graph| {
            let node = self.find(graph, object).filter(|node| node.is_orphaning())?;
            Some(Key::new("", &node.identity.object.uid.to_string()))
        })
    }

    /// Why no monitor has seen the object of this key; none where the key is a node's.
    pub(crate) fn unseen(&self, key: &Key) -> Option<Unseen> {
        let path = Path::of_key(key)?;
        let served = self.served();
        let Some(Served { resource, .. }) = served.served.iter().find(|served| path.is_of(&served.resource)) else {
            return Some(Unseen::Unserved);
        };
        if path.is_of(&LEASES) && path.namespace == NODE_LEASES {
            return Some(Unseen::LeaseOfNode);
        }
        if !self.monitored.all().keys().any(|known| path.is_of(known)) {
            return Some(Unseen::NotFollowed);
        }
        Some(self.failing(resource).map_or(Unseen::NotSeen, |error| Unseen::Failing { error }))
    }

    /// The node of an object: rather one that was observed than one that is only referred to.
    fn find<'a>(&self, graph: &'a Graph, object: &Subject) -> Option<&'a Node> {
        let served = self.served();
        let mut resources = served.served.iter().map(|served| &served.resource);
        let resource = resources.find(|resource| object.key_of(resource).is_some())?;
        let is_meant = |identity: &Identity| {
            let kind = &identity.object.kind;
            let group = kind.api_version.rsplit_once('/').map_or("", |(group, _)| group);
            // A reference does not say that its owner is in no namespace.
            let is_here = !resource.namespaced || identity.namespace == *object.namespace;
            is_here && *identity.object.name == *object.name && *kind.kind == *resource.kind && group == object.group
        };
        let nodes = graph.nodes().filter(|node| is_meant(&node.identity));
        nodes.max_by_key(|node| node.stage != Stage::Virtual)
    }
}
