//! Which ReplicaSets are a Deployment's own: the first stage of a sync, for the next one counts what it has claimed.
//!
//! Left out: the order of the writes, which is apply's.

use anyhow::Context;
use shared::api::object::Kind;
use shared::api::owner::{Claim, claim};

use crate::objects::ReplicaSet;
use crate::observe::Observed;

/// Decides which ReplicaSets to adopt and which to release. A Deployment that would select everything claims nothing.
///
/// Upstream: `getReplicaSetsForDeployment`, `pkg/controller/deployment/deployment_controller.go`.
pub fn plan_claim(observed: &Observed) -> anyhow::Result<Claim<ReplicaSet>> {
    let deployment = &*observed.deployment;
    if deployment.selects_everything() {
        return Ok(Claim::default());
    }
    let key = &deployment.metadata.key;
    let selector = deployment.selector().with_context(|| format!("deployment {key} has invalid label selector"))?;
    let candidates = observed.replica_sets.iter().cloned();
    Ok(claim(&deployment.owner(), candidates, |candidate| selector.matches(&candidate.metadata.labels)))
}
