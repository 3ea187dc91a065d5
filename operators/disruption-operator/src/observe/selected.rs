//! Indices between budgets and pods, by one label that the budget's selector requires. A sync does not read every pod of
//! its namespace, and a pod event does not check every budget. A selector without such a label reads its whole namespace.

use std::sync::Arc;

use shared::api::labels::Labels;
use shared::api::selector::Selector;
use shared::controllers::by_label::{ByLabel, label_value};
use shared::following::cache::{Cache, IndexId};
use shared::following::informer::{Informer, InformerBuilder};

use crate::objects::{Pod, PodDisruptionBudget};

pub struct Selected {
    pods: ByLabel<Pod>,
    budgets: Arc<Cache<PodDisruptionBudget>>,
    budgets_by_anchor: IndexId,
}

impl Selected {
    pub(crate) fn new(
        mut budgets: InformerBuilder<PodDisruptionBudget>,
        pods: InformerBuilder<Pod>,
    ) -> (Self, Informer<PodDisruptionBudget>, Informer<Pod>) {
        let budgets_by_anchor = budgets.index(|budget, emit| {
            if let Ok(selector) = &budget.selects {
                emit(label_value(budget.metadata.namespace(), selector.anchor()));
            }
        });
        let ((pods, informer), budgets) = (ByLabel::new(pods), budgets.build());
        let selected = Self { pods, budgets: budgets.cache(), budgets_by_anchor };
        (selected, budgets, informer)
    }

    pub(crate) fn pods(&self, namespace: &str, selector: &Selector) -> Vec<Arc<Pod>> {
        if *selector == Selector::nothing() {
            return Vec::new();
        }
        let mut pods = self.pods.find(namespace, selector.anchor());
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
            .map(Some)
            .chain([None])
            .flat_map(|anchor| self.budgets.by_index(self.budgets_by_anchor, &label_value(namespace, anchor)));
        let selects =
            |budget: &Arc<PodDisruptionBudget>| budget.selects.as_ref().is_ok_and(|selector| selector.matches(labels));
        let mut budgets: Vec<_> = candidates.filter(selects).collect();
        budgets.sort_unstable_by(|a, b| a.metadata.key.cmp(&b.metadata.key));
        budgets
    }
}
