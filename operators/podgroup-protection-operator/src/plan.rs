//! Whether a PodGroup keeps or loses its finalizer.
//!
//! Upstream: `processPodGroup`, `pkg/controller/scheduling/podgroupprotection/podgroup_protection_controller.go`.

use shared::controllers::protection::State;
use shared::controllers::protection::plan::{self, Reason};
use shared::controllers::protection::users::UsingPods;

use crate::objects::PROTECTION;
use crate::observe::Observed;

pub type Next = plan::Next<UsingPods>;
pub type Plan = plan::Plan<UsingPods>;

/// Plans the next stage. The cache can show that a group has pods; only a live list shows that it has none.
///
/// Upstream relies on its cache.
pub fn plan(observed: &Observed) -> Next {
    let Observed { group, cached, live } = observed;
    match PROTECTION.state(&group.metadata) {
        // The apiserver adds it when a group is created.
        State::Unprotected => Next::Execute(Plan::Keep(Reason::Unprotected)),
        State::Protected | State::Candidate | State::LetGo => PROTECTION.plan(&group.metadata, cached, live.as_ref()),
    }
}
