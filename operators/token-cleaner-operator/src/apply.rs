//! Executes a plan: at most one deletion.
//!
//! Left out: events, of which upstream has none.

use std::time::Duration;

use anyhow::Context;
use shared::api::object::Key;
use shared::api::resource::SECRETS;
use shared::runtime::control::{Control, DeleteOptions, Preconditions};

use crate::observe::Observed;
use crate::plan::{Plan, Reason};

/// Deletes tokens.
pub(crate) struct Writer {
    pub(crate) control: Control,
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
        let Observed { token } = observed;
        let key = &token.metadata.key;
        let (next, done) = match plan {
            Plan::Keep(_) => (None, Ok(())),
            Plan::Wait { left, expires: _ } => (Some(left), Ok(())),
            Plan::Delete { reason, preconditions } => (None, self.delete(key, reason, preconditions).await),
        };
        Outcome { next, error: done.err() }
    }

    async fn delete(&self, key: &Key, reason: Reason, preconditions: Preconditions) -> anyhow::Result<()> {
        let options = DeleteOptions::of(preconditions);
        match self.control.for_key(key, preconditions.uid).delete(&SECRETS, key, &options).await {
            Ok(()) => {
                tracing::info!(token = %key, %reason, "deleted the bootstrap token");
                Ok(())
            }
            // Somebody was faster. A token that was changed, or made anew, is looked at once it is seen.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(error) => Err(error).context("delete the bootstrap token"),
        }
    }
}
