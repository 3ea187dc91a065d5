//! Executes a plan: at most one deletion.
//!
//! Left out: events, of which upstream has none.

use std::time::Duration;

use anyhow::Context;
use shared::api::object::Key;
use shared::api::resource::JOBS;
use shared::api::time::Time;
use shared::runtime::clock::Clock;
use shared::runtime::control::{Control, DeleteOptions, Preconditions, Propagation};

use crate::metrics::DeletionDelay;
use crate::observe::Observed;
use crate::plan::{Plan, Reason};

/// Deletes Jobs.
pub(crate) struct Writer {
    pub(crate) control: Control,
    pub(crate) delay: DeletionDelay,
    pub(crate) clock: Clock,
}

/// The result of executing a plan.
#[derive(Debug)]
pub struct Outcome {
    /// When to look again; none if only a change can make a difference.
    pub next: Option<Duration>,
    /// The error of the deletion, if it failed.
    pub error: Option<anyhow::Error>,
}

impl Writer {
    /// Executes the plan.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let Observed { job } = observed;
        let key = &job.metadata.key;
        let (next, done) = match plan {
            Plan::Keep(Reason::UnknownFinishTime) => {
                tracing::warn!(job = %key, "unable to find the time when the Job finished");
                (None, Ok(()))
            }
            Plan::Keep(_) => (None, Ok(())),
            Plan::Wait { left, expires: _ } => (Some(left), Ok(())),
            Plan::Delete { expired, preconditions } => (None, self.delete(key, expired, preconditions).await),
        };
        Outcome { next, error: done.err() }
    }

    /// The pods go first, so that a Job is never gone while its pods still run.
    async fn delete(&self, key: &Key, expired: Time, preconditions: Preconditions) -> anyhow::Result<()> {
        let options = DeleteOptions::of(preconditions).with_dependents(Propagation::Foreground);
        match self.control.for_key(key, preconditions.uid).delete(&JOBS, key, &options).await {
            Ok(()) => {
                tracing::info!(job = %key, %expired, "cleaned up the Job");
                self.delay.observe(expired, self.clock.now());
                Ok(())
            }
            // Somebody was faster.
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error).context("delete the Job"),
        }
    }
}
