//! Whether a PersistentVolumeClaim gets, keeps or loses its finalizer.
//!
//! Upstream: `processPVC`, `pkg/controller/volume/pvcprotection/pvc_protection_controller.go`.

use shared::controllers::protection::plan;
use shared::controllers::protection::users::UsingPods;

use crate::objects::PROTECTION;
use crate::observe::Observed;

pub type Next = plan::Next<UsingPods>;
pub type Plan = plan::Plan<UsingPods>;

/// Plans the next stage. The cache can show that a pod uses a claim; only a live list shows that none does.
///
/// Upstream: `isBeingUsedWith`.
pub fn plan(observed: &Observed) -> Next {
    let Observed { claim, cached, live } = observed;
    PROTECTION.plan(&claim.metadata, cached, live.as_ref())
}
