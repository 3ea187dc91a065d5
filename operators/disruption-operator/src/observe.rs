//! Reads everything that one sync decides on: the budget, the pods that it selects, and, where it asks for a share of
//! them, how many their owners ask for.
//!
//! Left out: pods of namespaces without a budget, which only [`search`] looks for.

pub mod decided;
pub mod evictions;
pub mod scales;
pub mod search;
pub mod selected;
pub mod stale;

use std::sync::Arc;

use shared::api::intern::Text;
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::controllers::revisions::REVISION_LABEL;
use shared::runtime::cache::{Cache, IndexId, IndexValue};
use shared::runtime::consistency::Write;
use shared::runtime::control::Control;
use shared::runtime::informer::{Informer, InformerBuilder};

use crate::objects::{Pod, PodDisruptionBudget};
use decided::Decided;
use evictions::Evictions;
use scales::Scales;
use search::Searches;
use selected::Selected;

/// All that one sync decides on.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The budget.
    pub budget: Arc<PodDisruptionBudget>,
    /// The pods that it selects, by key; none if its selector cannot be read.
    pub pods: Vec<Arc<Pod>>,
    /// How many pods their owners ask for.
    pub scales: Scales,
}

impl Observed {
    /// The evictions that the status has, and whose pod is not among those that are selected.
    pub fn unseen_evictions(&self) -> Vec<&str> {
        let is_seen = |name: &str| self.pods.iter().any(|pod| pod.metadata.name() == name);
        let names = self.budget.status.disrupted_pods.keys().map(|name| &**name);
        names.filter(|name| !is_seen(name)).collect()
    }

    /// Whether the pods that stay are of several revisions: then their owner replaces one by the other, and takes away
    /// again what is healthy beyond the budget.
    pub fn are_pods_rolling(&self) -> bool {
        let staying = self.pods.iter().filter(|pod| !pod.has_ended && !pod.metadata.is_being_deleted());
        let mut revisions = staying.map(|pod| (&pod.metadata.controller, pod.metadata.labels.get(REVISION_LABEL)));
        let first = revisions.next();
        revisions.any(|revision| Some(revision) != first)
    }
}

/// The caches of this operator, and its memory between syncs.
pub struct Caches {
    /// All budgets.
    pub pod_disruption_budgets: Arc<Cache<PodDisruptionBudget>>,
    /// The budgets by namespace.
    pub budgets_by_namespace: IndexId,
    /// The pods of the namespaces with a budget.
    pub pods: Arc<Cache<Pod>>,
    /// Which budgets select which pods.
    pub selected: Selected,
    /// The statuses that were decided last.
    pub decided: Decided,
    /// Since when evictions are noted.
    pub evictions: Evictions,
    /// How far the searches have come.
    pub searches: Searches,
}

/// The informers that fill the caches.
pub(crate) struct Informers {
    pub(crate) pod_disruption_budgets: Informer<PodDisruptionBudget>,
    pub(crate) pods: Informer<Pod>,
}

fn by_namespace(namespace: &str) -> IndexValue {
    IndexValue::Text(Text::new(namespace))
}

impl Caches {
    /// Empty caches, and the informers that fill them.
    pub(crate) fn new() -> (Self, Informers) {
        let mut budgets = InformerBuilder::<PodDisruptionBudget>::new();
        let budgets_by_namespace = budgets.index_by_namespace();
        let (selected, pod_disruption_budgets, pods) = Selected::new(budgets, InformerBuilder::new());
        let caches = Self {
            pod_disruption_budgets: pod_disruption_budgets.cache(),
            budgets_by_namespace,
            pods: pods.cache(),
            selected,
            decided: Decided::default(),
            evictions: Evictions::default(),
            searches: Searches::default(),
        };
        (caches, Informers { pod_disruption_budgets, pods })
    }

    /// Reads the budget of this key; none if it is gone.
    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let budget = self.pod_disruption_budgets.get(key)?;
        let selected = |selector| self.selected.pods(key.namespace(), selector);
        let pods = budget.selects.as_ref().map(selected).unwrap_or_default();
        Some(Observed { budget, pods, scales: Scales::Unread })
    }

    /// Whether the pods of a namespace are followed because it has a budget.
    pub fn has_budgets(&self, namespace: &str) -> bool {
        self.pod_disruption_budgets.count_by_index(self.budgets_by_namespace, &by_namespace(namespace)) > 0
    }
}

/// Whether the pods may be older than an eviction whose pod they have not. Then the budget's key is held until they are
/// not.
///
/// The apiserver notes an eviction in the budget before it deletes the pod. A pod that is not there may be gone, or may
/// not have been seen yet: in the second case it would count as healthy as soon as it is seen, had its eviction been
/// forgotten. So pods have to be as new as the eviction, as they have to be as new as the key's own writes.
pub(crate) fn are_pods_behind(caches: &Caches, control: &Control, observed: &Observed) -> bool {
    let (budget, consistency) = (&*observed.budget, control.consistency());
    let version = caches.evictions.version(budget, &observed.unseen_evictions());
    let (key, uid) = (&budget.metadata.key, budget.metadata.uid);
    consistency.record(key, uid, &PODS, Write { object: key, version, created_with: None });
    consistency.behind(key).is_some()
}
