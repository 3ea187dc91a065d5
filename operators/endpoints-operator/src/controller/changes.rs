//! Which Services a change of Endpoints concerns.
//!
//! Left out: which changes of Services and of pods matter, which [`shared::controllers::endpoints::changes`] says, and
//! changes that somebody makes to Endpoints: they last until the Service is looked at for another cause.

use shared::runtime::cache::Change;
use shared::runtime::effect::Effect;
use shared::runtime::queue::Cause;

use crate::objects::Endpoints;
use crate::observe::Caches;

impl Caches {
    /// The Service whose Endpoints are gone, or have lost their label.
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
