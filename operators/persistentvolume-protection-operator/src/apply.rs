//! Executes a plan: at most one patch of the finalizers.

use shared::api::object::Key;
use shared::working::context::ControllerContext;

use crate::objects::PROTECTION;
use crate::plan::Plan;

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

impl Writer {
    pub(crate) async fn apply(&self, key: &Key, plan: Plan) -> anyhow::Result<()> {
        match plan {
            Plan::Keep(_) => Ok(()),
            Plan::Add { preconditions } => PROTECTION.add(&self.ctx, key, preconditions).await,
            Plan::Remove { preconditions, phase: _ } => PROTECTION.remove(&self.ctx, key, preconditions).await,
        }
    }
}
