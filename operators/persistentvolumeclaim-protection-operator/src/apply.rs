//! Executes a plan: at most one patch of the finalizers.

use std::time::Duration;

use shared::api::object::Key;
use shared::working::context::ControllerContext;
use shared::working::worker::Requeue;

use crate::objects::PROTECTION;
use crate::plan::Plan;

/// When a claim is checked again whose pods the cache does not show: later than the end of a shared list.
const RECHECK: Duration = Duration::from_secs(2);

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

impl Writer {
    pub(crate) async fn apply(&self, key: &Key, plan: Plan) -> anyhow::Result<Requeue> {
        match plan {
            Plan::Keep(_) => {}
            Plan::Recheck { pods: _ } => return Ok(Requeue::After(RECHECK, "another list of pods")),
            Plan::Add { preconditions } => PROTECTION.add(&self.ctx, key, preconditions).await?,
            Plan::Remove { preconditions } => PROTECTION.remove(&self.ctx, key, preconditions).await?,
        }
        Ok(Requeue::Done)
    }
}
