//! The Service that a change of Endpoints concerns; [`shared::controllers::endpoints::changes`] has Services and pods.

use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::Endpoints;
use crate::observe::Caches;

impl Caches {
    /// Sync the Service of deleted Endpoints; the watch shows a lost label as a deletion, and edits wait for the next sync.
    ///
    /// Upstream: `onEndpointsDelete`, `pkg/controller/endpoint/endpoints_controller.go`.
    pub(super) fn endpoints_changed(&self, change: Change<'_, Endpoints>) -> Vec<Effect> {
        match change {
            Change::Deleted(endpoints) if self.selects(&endpoints.metadata.key) => {
                vec![Effect::Enqueue(endpoints.metadata.key.clone(), Cause::Event)]
            }
            Change::Added(_) | Change::Updated { .. } | Change::Deleted(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
