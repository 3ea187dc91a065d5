//! Executes a plan: at most one deletion.

use anyhow::Context;
use shared::api::object::Key;
use shared::api::resource::CERTIFICATE_SIGNING_REQUESTS;
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::{DeleteOptions, Preconditions};
use shared::working::worker::Requeue;

use crate::observe::Observed;
use crate::plan::{End, Plan};

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

impl Writer {
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<Requeue> {
        match plan {
            Plan::Keep(_) => Ok(Requeue::Done),
            Plan::Wait { left, end: _ } => Ok(Requeue::After(left, "the end of its time")),
            Plan::Delete { end, preconditions } => {
                self.delete(&observed.request.metadata.key, end, preconditions).await?;
                Ok(Requeue::Done)
            }
        }
    }

    async fn delete(&self, key: &Key, end: End, preconditions: Preconditions) -> anyhow::Result<()> {
        let End { at, state } = end;
        let options = DeleteOptions::of(preconditions);
        let control = self.ctx.for_key(key, preconditions.uid);
        let deleted = control.delete(&CERTIFICATE_SIGNING_REQUESTS, key, &options).await;
        if deleted.unless_gone().context("cannot delete the request")?.is_some() {
            tracing::info!(request = %key, %state, end = %at, "deleted request");
        }
        Ok(())
    }
}
