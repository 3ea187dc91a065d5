//! Reads from the caches, and from what this process remembers, all that one sync decides on.
//!
//! Left out: live reads, which a plan asks for. There is one more before an adoption, which is part of adopting, and
//! those after a name was taken, which are part of making a revision.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::value::RawValue;
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::controllers::claims::Claims;
use shared::controllers::revisions::{ControllerRevision, history};
use shared::following::cache::{Cache, IndexId, IndexValue};
use shared::following::informer::{Informer, InformerBuilder};
use shared::working::expectations::{Expectations, Outstanding};

use crate::memory::{Failures, Pause};
use crate::objects::node::Node;
use crate::objects::pod::Pod;
use crate::objects::{DAEMON_SETS, DaemonSet};

pub struct Caches {
    pub daemon_sets: Arc<Cache<DaemonSet>>,
    pub nodes: Arc<Cache<Node>>,
    /// All nodes in order: the namespace of each is the empty one.
    nodes_by_namespace: IndexId,
    /// All pods of the namespaces with a DaemonSet: an orphan that one of them may adopt need not have the labels that
    /// this operator gives to pods.
    pub pods: Arc<Cache<Pod>>,
    pub controller_revisions: Arc<Cache<ControllerRevision>>,
    /// The owners of pods, and who may adopt them.
    pub owners: Claims<DaemonSet, Pod>,
    revisions_by_controller: IndexId,
    daemons_by_node: IndexId,
}

pub struct Informers {
    pub(crate) daemon_sets: Informer<DaemonSet>,
    pub(crate) nodes: Informer<Node>,
    pub(crate) pods: Informer<Pod>,
    pub(crate) controller_revisions: Informer<ControllerRevision>,
}

#[derive(Clone, Debug)]
pub struct Observed {
    pub set: Arc<DaemonSet>,
    pub nodes: Vec<Arc<Node>>,
    /// The pods whose controller it is, and those of its namespace that have none; once they are
    /// [claimed](Self::claimed), its own.
    pub pods: Vec<Arc<Pod>>,
    /// The revisions whose controller it is, and those of its namespace that have none, in order; once they are
    /// [claimed](Self::claimed), its own.
    pub revisions: Vec<Arc<ControllerRevision>>,
    /// The data of the newest revision, where they had to be read.
    pub newest_data: Option<Arc<RawValue>>,
    /// Creations and deletions that the cache has not shown yet.
    pub outstanding: Option<Outstanding>,
    /// When pods have failed lately, by node.
    pub failures: BTreeMap<Text, Pause>,
}

#[derive(Clone, Debug)]
pub struct ObservedNode {
    pub node: Arc<Node>,
    /// Every DaemonSet, and whether it has a pod on the node.
    pub sets: Vec<(Arc<DaemonSet>, bool)>,
}

impl Observed {
    /// From what was read; pods and revisions in any order.
    pub fn new(
        set: Arc<DaemonSet>,
        nodes: Vec<Arc<Node>>,
        pods: Vec<Arc<Pod>>,
        mut revisions: Vec<Arc<ControllerRevision>>,
    ) -> Self {
        history::sort(&mut revisions);
        Self { set, nodes, pods, revisions, newest_data: None, outstanding: None, failures: BTreeMap::new() }
    }

    /// The same, with those pods and revisions alone that are its own now.
    #[must_use]
    pub fn claimed(self, pods: Vec<Arc<Pod>>, mut revisions: Vec<Arc<ControllerRevision>>) -> Self {
        history::sort(&mut revisions);
        Self { pods, revisions, ..self }
    }

    /// The same, once all its pods carry this hash.
    #[must_use]
    pub fn relabelled(mut self, hash: &str) -> Self {
        for pod in &mut self.pods {
            if !pod.has_hash(hash) {
                *pod = Arc::new(pod.with_hash(hash));
            }
        }
        self
    }
}

impl Caches {
    pub fn new() -> (Self, Informers) {
        let mut pods = InformerBuilder::<Pod>::new();
        let daemons_by_node = pods.index(|pod, emit| {
            let is_daemon =
                pod.metadata.controller.as_ref().is_some_and(|controller| controller.kind == *DAEMON_SETS.kind);
            if let Some(node) = pod.node().filter(|_| is_daemon) {
                emit(IndexValue::Text(node.clone()));
            }
        });
        let (owners, daemon_sets, pods) = Claims::new(InformerBuilder::new(), pods);
        let mut controller_revisions = InformerBuilder::<ControllerRevision>::new();
        let revisions_by_controller = controller_revisions.index_by_controller();
        let mut nodes = InformerBuilder::<Node>::new();
        let nodes_by_namespace = nodes.index_by_namespace();
        let (nodes, controller_revisions) = (nodes.build(), controller_revisions.build());
        let informers = Informers { daemon_sets, nodes, pods, controller_revisions };
        let caches = Self {
            daemon_sets: informers.daemon_sets.cache(),
            nodes: informers.nodes.cache(),
            nodes_by_namespace,
            pods: informers.pods.cache(),
            controller_revisions: informers.controller_revisions.cache(),
            owners,
            revisions_by_controller,
            daemons_by_node,
        };
        (caches, informers)
    }

    /// Observes the DaemonSet of this key; `None` if there is none.
    ///
    /// Upstream: the first half of `syncDaemonSet`, `pkg/controller/daemon/daemon_controller.go`.
    pub fn observe(
        &self,
        expectations: &Expectations,
        failures: &Failures,
        key: &Key,
        now: Timestamp,
    ) -> Option<Observed> {
        let set = self.daemon_sets.get(key)?;
        // Before the pods: what is fulfilled in between is then counted at the next sync, and not twice in this one.
        let outstanding = expectations.outstanding(key, now);
        let failures = failures.of(&set, now);
        let pods = self.owners.candidates(&set);
        let index = self.revisions_by_controller;
        let mut revisions = self.controller_revisions.controlled_by(index, &*set);
        revisions.extend(self.controller_revisions.orphans(index, key.namespace()));
        Some(Observed { outstanding, failures, ..Observed::new(set, self.nodes_in_order(), pods, revisions) })
    }

    fn nodes_in_order(&self) -> Vec<Arc<Node>> {
        self.nodes.by_index(self.nodes_by_namespace, &IndexValue::Text(Text::default()))
    }

    /// Observes the node of this key; `None` if there is none.
    ///
    /// Upstream: the first half of `syncNodeUpdate`, `daemon_controller.go`.
    pub fn observe_node(&self, key: &Key) -> Option<ObservedNode> {
        self.nodes.get(key).map(|node| self.beside(node))
    }

    /// A node, which may be gone by now, and the DaemonSets beside it.
    pub(crate) fn beside(&self, node: Arc<Node>) -> ObservedNode {
        let pods = self.pods.by_index(self.daemons_by_node, &IndexValue::Text(node.name()));
        let mut owners: Vec<Key> =
            pods.iter().filter_map(|pod| Some(self.owners.resolve(pod)?.metadata.key.clone())).collect();
        owners.sort_unstable();
        let has_pod = |set: &DaemonSet| owners.binary_search(&set.metadata.key).is_ok();
        let beside = |set: Arc<DaemonSet>| {
            let has_pod = has_pod(&set);
            (set, has_pod)
        };
        let sets = self.daemon_sets.all().into_iter().map(beside).collect();
        ObservedNode { node, sets }
    }
}
