//! Reads terminated pods and nodes from the caches, and candidates live: stuck pods, pods of missing nodes, and, if too
//! many pods have terminated, those that have not succeeded.
//!
//! A terminated pod stays terminated, a pod being deleted stays so, and a bound pod keeps its node, so a pod is not read
//! again: its delete carries its uid. A node can come back, so it is read again before its pods are deleted. A failed read
//! only skips its own pods.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use anyhow::Context;
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::api::resource::{NODES, PODS};
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};
use shared::transport::api_error::ResultExt;
use shared::transport::client::Accept;
use shared::working::control::{Control, Selection};

use crate::objects::{DeletionReason, ENDED, Node, Pod, PodMetadata, UNSUCCESSFUL, excess};

/// The field selector of pods that are not bound to a node.
const UNSCHEDULED: &str = "spec.nodeName=";
/// How many nodes a field selector excludes, so that the apiserver need not send their pods: a URL has no room for
/// thousands.
const NAMED_MAX: usize = 100;

#[derive(Clone, Debug)]
pub struct Observed {
    pub key: Key,
    /// The terminated pods, by key, if they are too many.
    pub ended: Vec<Arc<PodMetadata>>,
    /// Those of them that have not succeeded; none if they were not read.
    pub unsuccessful: Option<Vec<Arc<Pod>>>,
    /// Pods being deleted that are bound to no node, or to one that is out of service.
    pub stuck: Vec<Arc<Pod>>,
    /// The nodes that are out of service; after the live reads, those with stuck pods.
    pub out_of_service: BTreeSet<Text>,
    pub unread: Vec<Unread>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Why they would be deleted.
    pub reason: DeletionReason,
    /// Why the read failed.
    pub error: String,
}

/// The observation of a search: the nodes that pods are bound to.
#[derive(Clone, Debug)]
pub struct Bindings {
    pub key: Key,
    pub nodes: BTreeSet<Text>,
    /// The nodes that pods are bound to; some nodes of the cache may be left out.
    pub bound_to: BTreeSet<Text>,
    /// Those of them on which such a pod has run.
    pub ran_on: BTreeSet<Text>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All bound pods: a node may have been deleted before it was followed.
    All,
    /// Pending pods: without a kubelet, a pod of a node that never existed stays Pending.
    Pending,
}

/// The observation of a node that was missing for the whole quarantine.
#[derive(Clone, Debug)]
pub struct MissingNode {
    pub key: Key,
    /// Whether the cache has it again.
    pub is_cached: bool,
    /// Whether the apiserver has it; true if it was not read, because it makes no difference.
    pub exists: bool,
    pub pods: Vec<Arc<Pod>>,
}

pub struct Caches {
    pub pods: Arc<Cache<PodMetadata>>,
    pub nodes: Arc<Cache<Node>>,
}

pub(crate) struct Informers {
    pub(crate) pods: Informer<PodMetadata>,
    pub(crate) nodes: Informer<Node>,
}

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        let pods = InformerBuilder::new().metadata_only().fields(ENDED).build();
        let nodes = InformerBuilder::new().build();
        (Self { pods: pods.cache(), nodes: nodes.cache() }, Informers { pods, nodes })
    }

    /// Reads the caches for the round of this key; `threshold` terminated pods may stay.
    pub fn observe(&self, key: &Key, threshold: i32) -> Observed {
        let are_too_many = excess(self.pods.len(), threshold) > 0;
        let nodes = self.nodes.all();
        let out_of_service = nodes.iter().filter(|node| node.is_out_of_service());
        Observed {
            key: key.clone(),
            ended: if are_too_many { self.pods.all() } else { Vec::new() },
            unsuccessful: None,
            stuck: Vec::new(),
            out_of_service: out_of_service.map(|node| node.metadata.name().into()).collect(),
            unread: Vec::new(),
        }
    }

    /// Reads the nodes of the cache for the search of this key.
    pub fn observe_bindings(&self, key: &Key) -> Bindings {
        let nodes = self.nodes.all().iter().map(|node| node.metadata.name().into()).collect();
        Bindings { key: key.clone(), nodes, bound_to: BTreeSet::new(), ran_on: BTreeSet::new() }
    }

    /// Reads whether the cache has the node of this key, which was missing.
    pub fn observe_missing(&self, key: &Key) -> MissingNode {
        let is_cached = self.nodes.get(&Key::new("", key.name())).is_some();
        MissingNode { key: key.clone(), is_cached, exists: true, pods: Vec::new() }
    }
}

impl Observed {
    /// The result of a read; notes its error.
    fn noted<T: Default>(&mut self, reason: DeletionReason, read: anyhow::Result<T>) -> T {
        read.unwrap_or_else(|error| {
            let error = format!("{error:#}");
            tracing::warn!(reason = reason.as_str(), error, "cannot read pods to delete");
            self.unread.push(Unread { reason, error });
            T::default()
        })
    }
}

impl Scope {
    pub(crate) fn key(self) -> Key {
        Key::new("", if self == Self::All { "all" } else { "pending" })
    }

    pub(crate) fn of(key: &Key) -> Self {
        if *key == Self::Pending.key() { Self::Pending } else { Self::All }
    }

    /// The field selector of its pods, without those of the first `nodes`.
    fn fields(self, nodes: &BTreeSet<Text>) -> String {
        let bound = match self {
            Self::All => "spec.nodeName!=",
            Self::Pending => "status.phase=Pending,spec.nodeName!=",
        };
        nodes.iter().take(NAMED_MAX).fold(bound.to_owned(), |mut fields, node| {
            // Writing to a string cannot fail.
            let _ = write!(fields, ",spec.nodeName!={node}");
            fields
        })
    }
}

/// Adds the live reads to the observation of a round.
pub(crate) async fn live_round(control: &Control, mut observed: Observed) -> Observed {
    if !observed.ended.is_empty() {
        let read = live_pods(control, UNSUCCESSFUL, |_| true).await.map(Some);
        observed.unsuccessful = observed.noted(DeletionReason::Terminated, read);
    }
    for node in std::mem::take(&mut observed.out_of_service) {
        let read = live_out_of_service(control, &node).await.with_context(|| format!("node {node}"));
        let stuck = observed.noted(DeletionReason::OutOfService, read);
        if !stuck.is_empty() {
            observed.out_of_service.insert(node);
            observed.stuck.extend(stuck);
        }
    }
    let read = live_stuck(control, UNSCHEDULED).await;
    let unscheduled = observed.noted(DeletionReason::Unscheduled, read);
    observed.stuck.extend(unscheduled);
    observed
}

/// The pods being deleted on a node that is out of service; none if it is back in service.
async fn live_out_of_service(control: &Control, node: &str) -> anyhow::Result<Vec<Arc<Pod>>> {
    let stuck = live_stuck(control, &on_node(node)).await?;
    if stuck.is_empty() {
        return Ok(stuck);
    }
    let live = live_node(control, node).await?;
    Ok(if live.is_some_and(|node| node.is_out_of_service()) { stuck } else { Vec::new() })
}

/// Those of these pods that are being deleted. The metadata shows whether there are any, which is rare.
async fn live_stuck(control: &Control, fields: &str) -> anyhow::Result<Vec<Arc<Pod>>> {
    let (selection, mut is_any) = (Selection { field_selector: fields, ..Selection::default() }, false);
    let each = |pod: PodMetadata| is_any |= pod.metadata.is_being_deleted();
    control
        .list_each(&PODS, "", selection, Accept::Metadata, each)
        .await
        .context("cannot list the metadata of pods")?;
    if !is_any {
        return Ok(Vec::new());
    }
    live_pods(control, fields, |pod| pod.metadata.is_being_deleted()).await
}

pub(crate) async fn live_bindings(control: &Control, observed: Bindings) -> anyhow::Result<Bindings> {
    let fields = Scope::of(&observed.key).fields(&observed.nodes);
    let selection = Selection { field_selector: &fields, ..Selection::default() };
    let (mut bound_to, mut ran_on) = (BTreeSet::new(), BTreeSet::new());
    let each = |pod: Pod| {
        if pod.has_run {
            ran_on.insert(pod.node.clone());
        }
        bound_to.insert(pod.node);
    };
    control.list_each(&PODS, "", selection, Accept::Object, each).await.context("cannot list bound pods")?;
    Ok(Bindings { bound_to, ran_on, ..observed })
}

/// If the node is still missing, adds its pods; if it has pods, reads the node live.
pub(crate) async fn live_missing_node(control: &Control, observed: MissingNode) -> anyhow::Result<MissingNode> {
    if observed.is_cached {
        return Ok(observed);
    }
    let name = observed.key.name();
    let pods = live_pods(control, &on_node(name), |_| true).await?;
    let exists = pods.is_empty() || live_node(control, name).await?.is_some();
    Ok(MissingNode { exists, pods, ..observed })
}

fn on_node(name: &str) -> String {
    format!("spec.nodeName={name}")
}

/// The wanted pods among those of a field selector.
async fn live_pods(control: &Control, fields: &str, is_wanted: fn(&Pod) -> bool) -> anyhow::Result<Vec<Arc<Pod>>> {
    let (selection, mut pods) = (Selection { field_selector: fields, ..Selection::default() }, Vec::new());
    let each = |pod: Pod| {
        if is_wanted(&pod) {
            pods.push(Arc::new(pod));
        }
    };
    control.list_each(&PODS, "", selection, Accept::Object, each).await.context("cannot list pods")?;
    Ok(pods)
}

/// Upstream: `checkIfNodeExists`, `pkg/controller/podgc/gc_controller.go`.
async fn live_node(control: &Control, name: &str) -> anyhow::Result<Option<Node>> {
    control.get(&NODES, &Key::new("", name)).await.unless_absent().context("cannot read the node")
}

#[cfg(test)]
mod tests {
    use shared::api::url::with_query;

    use super::*;

    #[track_caller]
    fn check(scope: Scope, nodes: &[&str], expected: &str) {
        assert_eq!(scope.fields(&nodes.iter().map(|name| Text::new(name)).collect()), expected);
    }

    #[test]
    fn a_search_names_the_nodes_whose_pods_it_need_not_see() {
        check(Scope::All, &[], "spec.nodeName!=");
        check(Scope::All, &["b", "a"], "spec.nodeName!=,spec.nodeName!=a,spec.nodeName!=b");
        check(Scope::Pending, &["a"], "status.phase=Pending,spec.nodeName!=,spec.nodeName!=a");
    }

    #[test]
    fn of_thousands_of_nodes_no_more_are_named_than_a_url_has_room_for() {
        let nodes = (0..5000).map(|n| Text::new(&format!("ip-10-0-123-{n}.eu-central-1.compute.internal"))).collect();
        let fields = Scope::Pending.fields(&nodes);
        assert!(with_query("", &[("fieldSelector", &fields)]).len() < 8 * 1024);
    }

    #[test]
    fn each_search_has_a_key_of_its_own() {
        for scope in [Scope::All, Scope::Pending] {
            assert_eq!(Scope::of(&scope.key()), scope);
        }
    }
}
