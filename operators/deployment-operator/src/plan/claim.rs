//! Which ReplicaSets are a Deployment's own: the first stage of a sync, for the next one counts what it has claimed.
//!
//! Left out: the order of the writes, which is apply's.

use shared::api::object::Kind;
use shared::api::owner::{Claim, claim};

use crate::objects::ReplicaSet;
use crate::observe::Observed;

/// Decides which ReplicaSets to adopt and which to release. A Deployment that would select everything claims nothing, nor
/// does one whose selector nobody can read.
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
