//! A finalizer that keeps an object while others use it: what the object's metadata ask for, and the two writes.
//!
//! Left out: what uses an object, and what is read live before the finalizer goes. Each operator knows its own.
//!
//! Upstream: `pkg/controller/util/protectionutil/utils.go`, and the same two writes in each controller.

use anyhow::Context;
use serde_json::json;

use crate::api::object::{Key, Meta, Object};
use crate::api::resource::Resource;
use crate::following::cache::Change;
use crate::transport::api_error::ResultExt;
use crate::working::context::ControllerContext;
use crate::working::control::{Patch, Preconditions};
use crate::working::effect::Effect;
use crate::working::queue::Cause;

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

impl State {
    const fn may_write(self) -> bool {
        match self {
            Self::Unprotected | Self::Candidate => true,
            Self::Protected | Self::LetGo => false,
        }
    }
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

    /// The object is synced if the sync may write to it.
    ///
    /// Upstream: `pvAddedUpdated`, `pvcAddedUpdated` and `vacAddedUpdated`.
    pub fn changed<T: Object>(&self, change: Change<'_, T>) -> Vec<Effect> {
        let metadata = change.existing().map(|object| object.meta());
        let due = metadata.filter(|metadata| self.state(metadata).may_write());
        due.map(|metadata| Effect::Enqueue(metadata.key.clone(), Cause::Event)).into_iter().collect()
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
        Ok(patched.unless_gone()?.is_some())
    }
}
