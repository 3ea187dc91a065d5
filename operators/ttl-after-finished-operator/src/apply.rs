//! Executes a plan: at most one deletion.

use std::time::Duration;

use anyhow::Context;
use shared::api::object::Key;
use shared::api::resource::JOBS;
use shared::api::time::Time;
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::{DeleteOptions, Preconditions, Propagation};

use crate::metrics::DeletionDelay;
use crate::observe::Observed;
use crate::plan::{Plan, Reason};

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
    pub(crate) delay: DeletionDelay,
}

impl Writer {
    /// Executes the plan, and returns when to sync again; none if only a change can make a difference.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<Option<Duration>> {
        let key = &observed.job.metadata.key;
        match plan {
            Plan::Keep(Reason::UnknownFinishTime) => {
                tracing::warn!(job = %key, "condition of the finished Job has no time; not deleting it");
                Ok(None)
            }
            Plan::Keep(_) => Ok(None),
            Plan::Wait { left, expires: _ } => Ok(Some(left)),
            Plan::Delete { expired, preconditions } => {
                self.delete(key, expired, preconditions).await?;
                Ok(None)
            }
        }
    }

    /// Deletes the pods first, so that a Job is never gone while its pods still run.
    async fn delete(&self, key: &Key, expired: Time, preconditions: Preconditions) -> anyhow::Result<()> {
        let options = DeleteOptions::of(preconditions).with_dependents(Propagation::Foreground);
        let deleted = self.ctx.for_key(key, preconditions.uid).delete(&JOBS, key, &options).await;
        if deleted.unless_gone().context("cannot delete the Job")?.is_some() {
            tracing::info!(job = %key, %expired, "deleted expired Job");
            self.delay.observe(expired, self.ctx.now());
        }
        Ok(())
    }
}
