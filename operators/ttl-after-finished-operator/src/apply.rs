//! Executes a plan: at most one deletion.
//!
//! Left out: events, of which upstream has none.

use shared::api::object::Key;
use shared::api::resource::JOBS;
use shared::runtime::api_error::ApiError;
use shared::runtime::clock::Clock;
use shared::runtime::control::{Control, DeleteOptions, Propagation};
use shared::runtime::worker::Requeue;

use crate::metrics::DeletionDelay;
use crate::plan::{Plan, Reason};

/// Deletes Jobs.
pub(crate) struct Writer {
    pub(crate) control: Control,
    pub(crate) delay: DeletionDelay,
    pub(crate) clock: Clock,
}

impl Writer {
    /// Does what was planned. The pods go first, so that a Job is never gone while its pods still run.
    pub(crate) async fn apply(&self, key: &Key, plan: Plan) -> Result<Requeue, ApiError> {
        match plan {
            Plan::Keep(Reason::UnknownFinishTime) => {
                tracing::warn!(job = %key, "unable to find the time when the Job finished");
                Ok(Requeue::Done)
            }
            Plan::Keep(Reason::BeingDeleted | Reason::NoTtl | Reason::NotFinished) => Ok(Requeue::Done),
            Plan::Wait(left) => Ok(Requeue::After(left)),
            Plan::Delete { expired, preconditions } => {
                let options = DeleteOptions::of(preconditions).with_dependents(Propagation::Foreground);
                match self.control.for_key(key, preconditions.uid).delete(&JOBS, key, &options).await {
                    Ok(()) => {
                        tracing::info!(job = %key, %expired, "cleaned up the Job");
                        self.delay.observe(expired, self.clock.now());
                        Ok(Requeue::Done)
                    }
                    // Somebody was faster.
                    Err(error) if error.is_not_found() => Ok(Requeue::Done),
                    Err(error) => Err(error),
                }
            }
        }
    }
}
