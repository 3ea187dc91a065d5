//! Which revisions and pods are a DaemonSet's own: the first stage of a sync, for the next ones count what it has
//! claimed.
//!
//! Left out: the order of the writes, which is apply's.

use shared::api::object::Kind;
use shared::api::owner::{Claim, claim};
use shared::controllers::revisions::ControllerRevision;

use crate::objects::pod::Pod;
use crate::observe::Observed;

/// Decides which revisions to adopt and which to release.
///
/// Upstream: `controlledHistories`, `pkg/controller/daemon/update.go`.
pub fn plan_revision_claim(observed: &Observed) -> Claim<ControllerRevision> {
    let (set, revisions) = (&*observed.set, observed.revisions.iter().cloned());
    claim(&set.owner(), revisions, |revision| set.spec.selects(&revision.metadata.labels))
}

/// Decides which pods to adopt and which to release, in whatever phase they are.
///
/// Upstream: `getDaemonPods`, `pkg/controller/daemon/daemon_controller.go`.
pub fn plan_pod_claim(observed: &Observed) -> Claim<Pod> {
    let (set, pods) = (&*observed.set, observed.pods.iter().cloned());
    claim(&set.owner(), pods, |pod| set.spec.selects(&pod.metadata.labels))
}
