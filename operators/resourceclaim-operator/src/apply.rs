//! Executes the plan for a claim: removes users, deallocates it and removes its finalizer, or deletes it.
//!
//! The steps for pods and PodGroups are executed in [`users`].

pub mod users;

use anyhow::Context;
use shared::api::object::Key;
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::{DeleteOptions, Patch, Preconditions};

use crate::objects::{PROTECTION, RESOURCE_CLAIMS};
use crate::plan::{Plan, Release};
use crate::status::released;

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

impl Writer {
    pub(crate) async fn apply(&self, key: &Key, plan: Plan) -> anyhow::Result<()> {
        match plan {
            Plan::Keep(_) => Ok(()),
            Plan::Release(release) => self.release(key, release).await,
            Plan::Delete { preconditions, reason } => self.delete(key, preconditions, &reason.to_string()).await,
        }
    }

    /// The finalizer goes only from exactly the state that the status write has made.
    async fn release(&self, key: &Key, release: Release) -> anyhow::Result<()> {
        let Release { users, deallocate, remove_finalizer, mut preconditions, reason } = release;
        if let Some(status) = released(&users, deallocate) {
            let control = self.ctx.for_key(key, preconditions.uid);
            let patch = Patch::strategic(&status).on_status();
            let patched = control.patch(&RESOURCE_CLAIMS, key, preconditions, patch).await.unless_absent();
            let Some(written) = patched.context("cannot release the claim")? else { return Ok(()) };
            tracing::info!(claim = %key, users = users.len(), deallocate, %reason, "released claim");
            preconditions = Preconditions::of(&written.metadata);
        }
        if remove_finalizer {
            PROTECTION.remove(&self.ctx, key, preconditions).await?;
        }
        Ok(())
    }

    async fn delete(&self, key: &Key, preconditions: Preconditions, reason: &str) -> anyhow::Result<()> {
        let control = self.ctx.for_key(key, preconditions.uid);
        let deleted = control.delete(&RESOURCE_CLAIMS, key, &DeleteOptions::of(preconditions)).await.unless_absent();
        if deleted.context("cannot delete the claim")?.is_some() {
            tracing::info!(claim = %key, reason, "deleted claim");
        }
        Ok(())
    }
}
