//! Which PodGroups are synced when one of them or a pod changes: itself if it is being deleted, and that of a pod that has
//! ended or is gone.

use shared::following::cache::Change;
use shared::working::effect::Effect;

use crate::objects::pod::Pod;
use crate::objects::{PROTECTION, PodGroup};
use crate::observe::Caches;

/// Upstream: `handlePodGroupUpdate`, `pkg/controller/scheduling/podgroupprotection/podgroup_protection_controller.go`.
pub fn group_changed(change: Change<'_, PodGroup>) -> Vec<Effect> {
    PROTECTION.changed(change)
}

impl Caches {
    /// A pod that has ended leaves the cache, too.
    ///
    /// Upstream: `handlePodChange`, `pkg/controller/scheduling/podgroupprotection/podgroup_protection_controller.go`.
    pub fn pod_changed(&self, change: Change<'_, Pod>) -> Vec<Effect> {
        let freed = match change {
            Change::Added(_) => None,
            Change::Updated { old, new } => old.group_key().filter(|group| new.group_key().as_ref() != Some(group)),
            Change::Deleted(last) => last.group_key(),
        };
        freed
            .and_then(|key| self.pod_groups.get(&key))
            .and_then(|group| PROTECTION.freed(&*group))
            .into_iter()
            .collect()
    }
}
