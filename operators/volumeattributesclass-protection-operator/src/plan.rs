//! Whether a VolumeAttributesClass gets, keeps or loses its finalizer.
//!
//! Upstream: `processVAC`, `pkg/controller/volume/vacprotection/vac_protection_controller.go`.

use shared::controllers::protection::plan;

use crate::objects::PROTECTION;
use crate::observe::{Observed, Users};

pub type Next = plan::Next<Users>;
pub type Plan = plan::Plan<Users>;

/// Plans the next stage. The caches can show that something names a class; only live lists show that nothing does.
///
/// Upstream relies on its caches.
pub fn plan(observed: &Observed) -> Next {
    let Observed { class, cached, live } = observed;
    PROTECTION.plan(&class.metadata, cached, live.as_ref())
}
