//! Finds the key of an object by its path, for `/why`, or the reason why no monitor has seen it.
//!
//! Keys are uids, so the graph is searched by kind and name, which reads every node. An object that is gone is not
//! found; its last decisions are under its uid.

use serde::Serialize;
use shared::api::explain::Subject;
use shared::api::object::Key;
use shared::api::resource::{LEASES, Resource};
use shared::transport::discovery::Served;

use crate::graph::{Graph, Node, Stage};
use crate::objects::Identity;
use crate::observe::caches::{Caches, key_of};

/// Marks the key of an object that no monitor has seen; kind and name follow.
const UNSEEN: &str = "unseen";
const NODE_LEASES: &str = "kube-node-lease";

/// Why no monitor has seen an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Unseen {
    /// Its kind is not served.
    Unserved,
    /// Objects of its kind cannot be deleted, listed or watched, or are never collected, such as Events.
    NotFollowed,
    Failing {
        error: String,
    },
    /// It is the Lease of a kubelet: these are listed when a Node was deleted.
    LeaseOfNode,
    /// It has not arrived yet, is gone, or never existed.
    NotSeen,
}

/// A kind and a namespace, as in a path.
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
    /// The key of the attempts to delete this object. If the graph does not have it, a key for [`Self::unseen`].
    pub(crate) fn key_of(&self, object: &Subject) -> Key {
        self.with_graph(|graph| self.find(graph, object).map(|node| key_of(graph, node.identity.object.uid)))
            .unwrap_or_else(|| {
                let Subject { group, version: _, resource, namespace, name } = object;
                Key::new(UNSEEN, &format!("{group}/{resource}/{namespace}/{name}"))
            })
    }

    /// The key of the attempts to orphan this object's dependents, if it is deleted with the policy Orphan.
    pub(crate) fn orphaning_key_of(&self, object: &Subject) -> Option<Key> {
        self.with_graph(|graph| {
            let node = self.find(graph, object).filter(|node| node.is_orphaning())?;
            Some(Key::new("", &node.identity.object.uid.to_string()))
        })
    }

    /// Why no monitor has seen the object of this key; none if the key is a node's.
    pub(crate) fn unseen(&self, key: &Key) -> Option<Unseen> {
        let path = Path::of_key(key)?;
        let served = self.kinds.served();
        let Some(Served { resource, .. }) = served.served.iter().find(|served| path.is_of(&served.resource)) else {
            return Some(Unseen::Unserved);
        };
        if path.is_of(&LEASES) && path.namespace == NODE_LEASES {
            return Some(Unseen::LeaseOfNode);
        }
        if !self.kinds.is_monitored(|known| path.is_of(known)) {
            return Some(Unseen::NotFollowed);
        }
        Some(self.kinds.failing(resource).map_or(Unseen::NotSeen, |error| Unseen::Failing { error }))
    }

    /// The node of an object; an observed one has precedence over a virtual one.
    fn find<'a>(&self, graph: &'a Graph, object: &Subject) -> Option<&'a Node> {
        let served = self.kinds.served();
        let mut resources = served.served.iter().map(|served| &served.resource);
        let resource = resources.find(|resource| object.key_of(resource).is_some())?;
        let is_meant = |identity: &Identity| {
            let kind = &identity.object.kind;
            let group = kind.api_version.rsplit_once('/').map_or("", |(group, _)| group);
            // A reference does not say whether its owner is cluster-scoped.
            let is_here = !resource.namespaced || identity.namespace == *object.namespace;
            is_here && *identity.object.name == *object.name && *kind.kind == *resource.kind && group == object.group
        };
        let nodes = graph.nodes().filter(|node| is_meant(&node.identity));
        nodes.max_by_key(|node| node.stage != Stage::Virtual)
    }
}
