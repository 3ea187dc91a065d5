//! The ReplicaSets of a Deployment: the first stage of a sync, because the next one counts what it has claimed.

use shared::api::object::Kind;
use shared::api::owner::{Claim, claim};

use crate::objects::ReplicaSet;
use crate::observe::Observed;

/// Decide which ReplicaSets to adopt and which to release. A Deployment that selects everything, or whose selector cannot
/// be read, claims nothing.
///
/// Upstream: `getReplicaSetsForDeployment`, `pkg/controller/deployment/deployment_controller.go`.
pub fn plan_claim(observed: &Observed) -> Claim<ReplicaSet> {
    let deployment = &*observed.deployment;
    let Some(selector) = deployment.selector().ok().filter(|_| !deployment.selects_everything()) else {
        return Claim::default();
    };
    let candidates = observed.replica_sets.iter().cloned();
    claim(&deployment.owner(), candidates, |candidate| selector.matches(&candidate.metadata.labels))
}
