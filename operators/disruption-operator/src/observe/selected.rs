//! Budgets and pods, found by a label that the budget's selector asks for: neither a sync looks at every pod of its
//! namespace, nor a change of a pod at every budget.
//!
//! A pod is found by those of its labels alone by which some budget looks for pods; there are few such keys. A new one
//! sorts the pods that are known again, once. A selector without such a label looks at its whole namespace.
//! Left out: keys of budgets that are gone. They stay, and cost a place for each pod that has such a label.
//!
//! Upstream looks at all pods, and at all budgets.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use shared::api::intern::Text;
use shared::api::labels::Labels;
use shared::api::object::Object;
use shared::api::selector::Selector;
use shared::runtime::cache::{Cache, IndexId, IndexValue};
use shared::runtime::informer::{Informer, InformerBuilder};

use crate::objects::{Pod, PodDisruptionBudget};

/// In place of a label, where a selector asks for none.
const ALL: (&str, &str) = ("", "");

/// The indices by which pods and budgets find each other.
pub struct Selected {
    pods: Arc<Cache<Pod>>,
    pods_by_anchor: IndexId,
    /// The keys of the labels by which pods are found.
    keys: Arc<RwLock<BTreeSet<Text>>>,
    budgets: Arc<Cache<PodDisruptionBudget>>,
    budgets_by_anchor: IndexId,
}

fn anchored(namespace: &str, (key, value): (&str, &str)) -> IndexValue {
    IndexValue::Text(Text::new(&format!("{namespace}/{key}={value}")))
}

fn anchor_of(selector: &Selector) -> (&str, &str) {
    selector.anchor().unwrap_or(ALL)
}

impl Selected {
    /// Builds the informers, with the indices that are needed here besides those they have.
    pub(crate) fn new(
        mut budgets: InformerBuilder<PodDisruptionBudget>,
        mut pods: InformerBuilder<Pod>,
    ) -> (Self, Informer<PodDisruptionBudget>, Informer<Pod>) {
        let keys = Arc::new(RwLock::new(BTreeSet::<Text>::new()));
        let known = Arc::clone(&keys);
        let pods_by_anchor = pods.index(move |pod, emit| {
            let (meta, known) = (pod.meta(), known.read().unwrap_or_else(PoisonError::into_inner));
            for key in known.iter() {
                let value = if key.is_empty() { Some(ALL.1) } else { meta.labels.get(key) };
                if let Some(value) = value {
                    emit(anchored(meta.namespace(), (key.as_str(), value)));
                }
            }
        });
        let budgets_by_anchor = budgets.index(|budget, emit| {
            if let Ok(selector) = &budget.selects {
                emit(anchored(budget.metadata.namespace(), anchor_of(selector)));
            }
        });
        let (budgets, pods) = (budgets.build(), pods.build());
        let selected = Self { pods: pods.cache(), pods_by_anchor, keys, budgets: budgets.cache(), budgets_by_anchor };
        (selected, budgets, pods)
    }

    /// The pods of a namespace that are selected, by key.
    pub(crate) fn pods(&self, namespace: &str, selector: &Selector) -> Vec<Arc<Pod>> {
        if *selector == Selector::nothing() {
            return Vec::new();
        }
        let anchor = anchor_of(selector);
        if self.keys.write().unwrap_or_else(PoisonError::into_inner).insert(Text::new(anchor.0)) {
            self.pods.reindex(self.pods_by_anchor);
        }
        let mut pods = self.pods.by_index(self.pods_by_anchor, &anchored(namespace, anchor));
        pods.retain(|pod| selector.matches(&pod.metadata.labels));
        pods
    }

    /// The budgets of a namespace that select pods with these labels, by key.
    ///
    /// Upstream: `GetPodPodDisruptionBudgets`,
    /// `staging/src/k8s.io/client-go/listers/policy/v1/poddisruptionbudget_expansion.go`.
    pub(crate) fn budgets(&self, namespace: &str, labels: &Labels) -> Vec<Arc<PodDisruptionBudget>> {
        let candidates = labels
            .iter()
            .chain([ALL])
            .flat_map(|anchor| self.budgets.by_index(self.budgets_by_anchor, &anchored(namespace, anchor)));
        let selects =
            |budget: &Arc<PodDisruptionBudget>| budget.selects.as_ref().is_ok_and(|selector| selector.matches(labels));
        let mut budgets: Vec<_> = candidates.filter(selects).collect();
        budgets.sort_unstable_by(|a, b| a.metadata.key.cmp(&b.metadata.key));
        budgets
    }
}
