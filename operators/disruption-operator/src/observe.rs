//! Reads everything one sync decides on: the budget, the pods it selects and, for a percentage or `maxUnavailable`, the
//! scales of their owners.

pub mod scales;
pub mod search;
pub mod selected;
pub mod stale;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::following::cache::{Cache, IndexId, IndexValue};
use shared::following::informer::{Informer, InformerBuilder};
use shared::working::consistency::Write;
use shared::working::control::Control;

use crate::memory::Memory;
use crate::objects::{Pod, PodDisruptionBudget};
use scales::Scales;
use selected::Selected;

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub budget: Arc<PodDisruptionBudget>,
    /// The pods it selects, by key; empty if its selector is invalid.
    pub pods: Vec<Arc<Pod>>,
    /// Whether the pods are known to be as new as every eviction in the status.
    pub has_seen_evictions: bool,
    pub scales: Scales,
    /// The time until remembered scales must be read again; none if every scale was read now.
    pub reread: Option<Duration>,
    /// Since when owners cannot be read, if the last read failed.
    pub failing_since: Option<Timestamp>,
}

impl Observed {
    /// The evictions in the status whose pods are not among those selected.
    pub fn evictions_without_pod(&self) -> Vec<&str> {
        let has_pod = |name: &str| self.pods.iter().any(|pod| pod.metadata.name() == name);
        let names = self.budget.status.disrupted_pods.keys().map(|name| &**name);
        names.filter(|name| !has_pod(name)).collect()
    }
}

pub struct Caches {
    pub pod_disruption_budgets: Arc<Cache<PodDisruptionBudget>>,
    pub budgets_by_namespace: IndexId,
    pub pods: Arc<Cache<Pod>>,
    pub selected: Selected,
    pub memory: Memory,
}

pub(crate) struct Informers {
    pub(crate) pod_disruption_budgets: Informer<PodDisruptionBudget>,
    pub(crate) pods: Informer<Pod>,
}

fn by_namespace(namespace: &str) -> IndexValue {
    IndexValue::Text(Text::new(namespace))
}

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        let mut budgets = InformerBuilder::<PodDisruptionBudget>::new();
        let budgets_by_namespace = budgets.index_by_namespace();
        let (selected, pod_disruption_budgets, pods) = Selected::new(budgets, InformerBuilder::new());
        let caches = Self {
            pod_disruption_budgets: pod_disruption_budgets.cache(),
            budgets_by_namespace,
            pods: pods.cache(),
            selected,
            memory: Memory::default(),
        };
        (caches, Informers { pod_disruption_budgets, pods })
    }

    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let budget = self.pod_disruption_budgets.get(key)?;
        let selected = |selector| self.selected.pods(key.namespace(), selector);
        let pods = budget.selects.as_ref().map(selected).unwrap_or_default();
        let scales = Scales::Unread;
        Some(Observed { budget, pods, has_seen_evictions: false, scales, reread: None, failing_since: None })
    }

    /// Whether a budget that was observed before still exists.
    pub fn exists(&self, budget: &PodDisruptionBudget) -> bool {
        let known = self.pod_disruption_budgets.get(&budget.metadata.key);
        known.is_some_and(|known| known.metadata.uid == budget.metadata.uid)
    }

    /// Whether a namespace has a budget; only then its pods are followed.
    pub fn has_budgets(&self, namespace: &str) -> bool {
        self.pod_disruption_budgets.count_by_index(self.budgets_by_namespace, &by_namespace(namespace)) > 0
    }
}

/// Whether the pods may be older than an eviction whose pod is missing. If so, the budget's key is held until the pods
/// are new enough.
///
/// The apiserver notes an eviction in the budget before it deletes the pod. A missing pod may be gone or not seen yet. If
/// the operator dropped the eviction of a pod not seen yet, this pod would count as healthy once it is seen.
pub(crate) fn are_pods_behind(caches: &Caches, control: &Control, observed: &Observed) -> bool {
    let (budget, consistency) = (&*observed.budget, control.consistency());
    let version = caches.memory.evictions.version(budget, &observed.evictions_without_pod());
    let (key, uid) = (&budget.metadata.key, budget.metadata.uid);
    if caches.memory.evictions.begins_wait(key, version) {
        consistency.record(key, uid, &PODS, Write { object: key, version, created_with: None });
    }
    consistency.behind(key).is_some()
}
