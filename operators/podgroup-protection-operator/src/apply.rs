//! Executes a plan: at most one patch of the finalizers.

use shared::api::object::Key;
use shared::working::context::ControllerContext;
use shared::working::worker::Requeue;

use crate::objects::PROTECTION;
use crate::plan::Plan;

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

impl Writer {
    pub(crate) async fn apply(&self, key: &Key, plan: Plan) -> anyhow::Result<Requeue> {
        PROTECTION.apply(&self.ctx, key, plan).await
    }
}
