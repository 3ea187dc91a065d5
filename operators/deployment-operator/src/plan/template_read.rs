//! The live read of a template that the next step copies and that is too large for the cache.

use std::sync::Arc;

use shared::controllers::live_spec::{Abridged, NotCached, read_spec};
use shared::working::decisions::LiveRead;

use super::{Plan, Rollback, Step};
use crate::objects::ReplicaSet;
use crate::observe::Observed;

pub enum TemplateOf {
    Deployment,
    ReplicaSet(Arc<ReplicaSet>),
}

/// Plans to read the template that the plan copies, if the cache has no room for it.
pub fn plan_template_read(observed: &Observed, plan: &Plan) -> Option<(LiveRead<NotCached>, TemplateOf)> {
    plan.steps.iter().find_map(|step| match step {
        Step::CreateReplicaSet(_) => Some((read_spec(&*observed.deployment)?, TemplateOf::Deployment)),
        Step::RollBack(rollback) => of_rollback(observed, rollback),
        Step::UpdateReplicaSet(_) | Step::DeleteReplicaSet(_) | Step::Event(_) | Step::Fail(_) => None,
    })
}

fn of_rollback(observed: &Observed, Rollback { to, event: _ }: &Rollback) -> Option<(LiveRead<NotCached>, TemplateOf)> {
    let target = to.as_ref().filter(|to| to.template.left_out() > 0)?;
    let is_target = |set: &&Arc<ReplicaSet>| set.left_out() > 0 && set.spec.template.without_hash() == target.template;
    let replica_set = observed.replica_sets.iter().find(is_target)?;
    Some((read_spec(&**replica_set)?, TemplateOf::ReplicaSet(Arc::clone(replica_set))))
}
