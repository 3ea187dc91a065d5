//! Which revisions and pods are a StatefulSet's own: the first stage of a sync, for the next ones count what it has
//! claimed.
//!
//! Left out: the order of the writes, which is apply's.

use shared::api::object::Kind;
use shared::api::owner::{Claim, claim};
use shared::controllers::revisions::ControllerRevision;

use crate::objects::names::is_member_of;
use crate::objects::pod::Pod;
use crate::observe::Observed;

/// Decides which revisions to adopt. None is ever released: one that the selector does not match any more is not seen.
///
/// Upstream: `adoptOrphanRevisions`, `pkg/controller/statefulset/stateful_set.go`.
pub fn plan_revision_claim(observed: &Observed) -> Claim<ControllerRevision> {
    claim(&observed.set.owner(), observed.revisions.iter().cloned(), |_| true)
}

/// Decides which pods to adopt and which to release: a pod of the StatefulSet has its name, too.
///
/// Upstream: `getPodsForStatefulSet`, `stateful_set.go`.
pub fn plan_pod_claim(observed: &Observed) -> Claim<Pod> {
    let set = &*observed.set;
    let Ok(selector) = &set.spec.selector else { return Claim::default() };
    let is_own = |pod: &Pod| selector.matches(&pod.metadata.labels) && is_member_of(set, pod);
    claim(&set.owner(), observed.pods.iter().cloned(), is_own)
}
