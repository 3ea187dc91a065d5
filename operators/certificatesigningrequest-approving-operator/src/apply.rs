//! Executes a plan: at most one approval.

use anyhow::Context;
use serde_json::{Value, json};
use shared::api::object::Key;
use shared::api::resource::CERTIFICATE_SIGNING_REQUESTS;
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::{Patch, Preconditions};
use shared::working::worker::Requeue;

use crate::objects::Permission;
use crate::observe::Observed;
use crate::plan::{Plan, Reason};

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

impl Writer {
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<Requeue> {
        let key = &observed.request.metadata.key;
        match plan {
            Plan::Nothing(Reason::Unreadable { fault }) => {
                tracing::warn!(request = %key, %fault, "cannot read request; skipping");
                Ok(Requeue::Done)
            }
            Plan::Nothing(_) => Ok(Requeue::Done),
            Plan::AskAgain { tried: _ } => Ok(Requeue::RateLimited),
            Plan::Approve { permission, conditions, preconditions } => {
                self.approve(key, permission, &conditions, preconditions).await?;
                Ok(Requeue::Done)
            }
        }
    }

    async fn approve(
        &self,
        key: &Key,
        permission: Permission,
        conditions: &[Value],
        preconditions: Preconditions,
    ) -> anyhow::Result<()> {
        let patch = Patch::merge(&json!({ "status": { "conditions": conditions } })).on("approval");
        let control = self.ctx.for_key(key, preconditions.uid);
        let patched = control.patch(&CERTIFICATE_SIGNING_REQUESTS, key, preconditions, patch).await;
        if patched.unless_gone().context("cannot approve the request")?.is_some() {
            tracing::info!(request = %key, permission = permission.subresource(), "approved request");
        }
        Ok(())
    }
}
