//! Executes a plan about a finalizer: at most one patch of the finalizers.

use std::time::Duration;

use anyhow::Context;
use serde_json::json;

use super::Protection;
use super::plan::Plan;
use super::users::Users;
use crate::api::object::Key;
use crate::transport::api_error::ResultExt;
use crate::working::context::ControllerContext;
use crate::working::control::{Patch, Preconditions};
use crate::working::worker::Requeue;

/// When an object is checked again whose users the caches do not show: later than the end of a shared list.
const RECHECK: Duration = Duration::from_secs(2);

impl Protection {
    /// Executes a plan.
    ///
    /// # Errors
    /// When the object has changed, or the write fails.
    pub async fn apply<U: Users>(&self, ctx: &ControllerContext, key: &Key, plan: Plan<U>) -> anyhow::Result<Requeue> {
        match plan {
            Plan::Keep(_) => {}
            Plan::Recheck { users: _ } => return Ok(Requeue::After(RECHECK, U::WORDS.another_list)),
            Plan::Add { preconditions } => self.add(ctx, key, preconditions).await?,
            Plan::Remove { preconditions } => self.remove(ctx, key, preconditions).await?,
        }
        Ok(Requeue::Done)
    }

    /// Adds the finalizer.
    ///
    /// # Errors
    /// When the object has changed, or the write fails.
    pub async fn add(&self, ctx: &ControllerContext, key: &Key, preconditions: Preconditions) -> anyhow::Result<()> {
        let patch = Patch::strategic(&json!({ "metadata": { "finalizers": [self.finalizer] } }));
        if self.patch(ctx, key, preconditions, patch).await.context("cannot add the finalizer")? {
            tracing::info!(kind = %self.resource.kind, object = %key, "added finalizer");
        }
        Ok(())
    }

    /// Removes the finalizer.
    ///
    /// # Errors
    /// When the object has changed, or the write fails.
    pub async fn remove(&self, ctx: &ControllerContext, key: &Key, preconditions: Preconditions) -> anyhow::Result<()> {
        let directive = json!({ "$deleteFromPrimitiveList/finalizers": [self.finalizer] });
        let patch = Patch::strategic(&json!({ "metadata": directive }));
        if self.patch(ctx, key, preconditions, patch).await.context("cannot remove the finalizer")? {
            tracing::info!(kind = %self.resource.kind, object = %key, "removed finalizer");
        }
        Ok(())
    }

    /// Returns whether the object still existed.
    async fn patch(
        &self,
        ctx: &ControllerContext,
        key: &Key,
        preconditions: Preconditions,
        patch: Patch,
    ) -> anyhow::Result<bool> {
        let patched = ctx.for_key(key, preconditions.uid).patch(&self.resource, key, preconditions, patch).await;
        Ok(patched.unless_absent()?.is_some())
    }
}
