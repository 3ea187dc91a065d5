//! Executes a plan: at most one deletion.

use anyhow::Context;
use shared::api::object::Key;
use shared::api::resource::SECRETS;
use shared::working::context::ControllerContext;
use shared::working::control::{DeleteOptions, Preconditions};
use shared::working::worker::Requeue;

use crate::observe::Observed;
use crate::plan::{Plan, Reason};

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

impl Writer {
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<Requeue> {
        match plan {
            Plan::Keep(_) => Ok(Requeue::Done),
            Plan::Wait { left, expires: _ } => Ok(Requeue::After(left, "its expiration")),
            Plan::Delete { reason, preconditions } => {
                self.delete(&observed.token.metadata.key, reason, preconditions).await?;
                Ok(Requeue::Done)
            }
        }
    }

    async fn delete(&self, key: &Key, reason: Reason, preconditions: Preconditions) -> anyhow::Result<()> {
        let options = DeleteOptions::of(preconditions);
        match self.ctx.for_key(key, preconditions.uid).delete(&SECRETS, key, &options).await {
            Ok(()) => {
                tracing::info!(token = %key, %reason, "deleted bootstrap token");
                Ok(())
            }
            // A changed or recreated token is synced once the watch shows it.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(error) => Err(error).context("cannot delete the bootstrap token"),
        }
    }
}
