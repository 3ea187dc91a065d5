//! A finalizer that keeps an object while others use it: what the object's metadata ask for, the decision, and the two
//! writes.
//!
//! Left out: what uses an object, and how that is read. Each operator knows its own.
//!
//! Upstream: `pkg/controller/util/protectionutil/utils.go`, and the same two writes in each controller.

mod changes;
pub mod plan;
pub mod users;

use std::time::Duration;

use anyhow::Context;
use serde_json::json;

use crate::api::object::{Key, Meta};
use crate::api::resource::Resource;
use crate::transport::api_error::ResultExt;
use crate::working::context::ControllerContext;
use crate::working::control::{Patch, Preconditions};
use crate::working::worker::Requeue;
use plan::Plan;
use users::Users;

/// When an object is checked again whose users the caches do not show: later than the end of a shared list.
const RECHECK: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct Protection {
    pub resource: Resource,
    pub finalizer: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not being deleted, without the finalizer. Upstream: `NeedToAddFinalizer`.
    Unprotected,
    /// Not being deleted, with the finalizer.
    Protected,
    /// Being deleted, with the finalizer. Upstream: `IsDeletionCandidate`.
    Candidate,
    /// Being deleted, without the finalizer.
    LetGo,
}

impl Protection {
    pub fn state<A>(&self, metadata: &Meta<A>) -> State {
        let has_finalizer = metadata.finalizers.iter().any(|finalizer| finalizer == self.finalizer);
        match (metadata.is_being_deleted(), has_finalizer) {
            (false, false) => State::Unprotected,
            (false, true) => State::Protected,
            (true, true) => State::Candidate,
            (true, false) => State::LetGo,
        }
    }

    /// Executes a plan: at most one patch of the finalizers.
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
