//! Reads one role and the roles that it selects.
//!
//! Two indices map a label to the roles that have it, and to the aggregated roles that select by it. Only a selector
//! that names no value of a label, such as `{}` or `Exists`, is matched against every role.

use std::collections::BTreeSet;
use std::sync::Arc;

use shared::api::intern::Text;
use shared::api::labels::Labels;
use shared::api::object::Key;
use shared::api::selector::InvalidSelector;
use shared::following::cache::{Cache, IndexId, IndexValue};
use shared::following::informer::{Informer, InformerBuilder};

use crate::objects::{ClusterRole, RoleSelector, label};

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub cluster_role: Arc<ClusterRole>,
    /// The roles that it selects: by selector, then by name, each once and without itself. The fault of its first
    /// invalid selector, if it has one.
    pub selected: Result<Vec<Arc<ClusterRole>>, InvalidSelector>,
}

pub struct Caches {
    pub cluster_roles: Arc<Cache<ClusterRole>>,
    pub cluster_roles_by_label: IndexId,
    /// The aggregated roles by the labels that their selectors need, or by `""` for a selector that needs none.
    pub cluster_roles_by_needed_label: IndexId,
}

pub struct Informers {
    pub(crate) cluster_roles: Informer<ClusterRole>,
}

/// The index value of selectors that need no label.
fn any_label() -> IndexValue {
    IndexValue::Text(Text::default())
}

impl Caches {
    pub fn new() -> (Self, Informers) {
        let mut cluster_roles = InformerBuilder::<ClusterRole>::new();
        let cluster_roles_by_label = cluster_roles.index(|role, emit| {
            role.metadata.labels.iter().for_each(|(key, value)| emit(IndexValue::Text(label(key, value))));
        });
        let cluster_roles_by_needed_label = cluster_roles.index(|role, emit| {
            for RoleSelector { selector: _, labels } in role.selectors() {
                match labels {
                    Some(labels) => labels.iter().for_each(|label| emit(IndexValue::Text(label.clone()))),
                    None => emit(any_label()),
                }
            }
        });
        let cluster_roles = cluster_roles.build();
        let caches =
            Self { cluster_roles: cluster_roles.cache(), cluster_roles_by_label, cluster_roles_by_needed_label };
        (caches, Informers { cluster_roles })
    }

    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let cluster_role = self.cluster_roles.get(key)?;
        let selected = self.selected_by(&cluster_role);
        Some(Observed { cluster_role, selected })
    }

    /// The keys of the aggregated roles that select a role with these labels.
    pub fn selecting(&self, labels: &Labels) -> BTreeSet<Key> {
        let values = labels.iter().map(|(key, value)| IndexValue::Text(label(key, value))).chain([any_label()]);
        let candidates =
            values.flat_map(|value| self.cluster_roles.by_index(self.cluster_roles_by_needed_label, &value));
        candidates.filter(|role| role.selects(labels)).map(|role| role.metadata.key.clone()).collect()
    }

    fn selected_by(&self, role: &ClusterRole) -> Result<Vec<Arc<ClusterRole>>, InvalidSelector> {
        let mut known = BTreeSet::from([role.metadata.key.clone()]);
        let mut selected = Vec::new();
        for selector in role.selectors() {
            let matching = self.matching(selector)?;
            selected.extend(matching.into_iter().filter(|role| known.insert(role.metadata.key.clone())));
        }
        Ok(selected)
    }

    fn matching(&self, selector: &RoleSelector) -> Result<Vec<Arc<ClusterRole>>, InvalidSelector> {
        let RoleSelector { selector, labels } = selector;
        let selector = selector.as_ref().map_err(Clone::clone)?;
        let with =
            |label: &Text| self.cluster_roles.by_index(self.cluster_roles_by_label, &IndexValue::Text(label.clone()));
        let mut roles: Vec<Arc<ClusterRole>> = match labels {
            Some(labels) => labels.iter().flat_map(with).collect(),
            None => self.cluster_roles.all(),
        };
        roles.retain(|role| selector.matches(&role.metadata.labels));
        roles.sort_unstable_by(|a, b| a.metadata.key.cmp(&b.metadata.key));
        Ok(roles)
    }
}
