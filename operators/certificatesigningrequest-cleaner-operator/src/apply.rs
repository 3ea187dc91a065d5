//! Executes a plan: at most one deletion.
//!
//! Left out: events, of which upstream has none.

use std::time::Duration;

use anyhow::Context;
use shared::api::object::Key;
use shared::api::resource::CERTIFICATE_SIGNING_REQUESTS;
use shared::runtime::control::{Control, DeleteOptions, Preconditions};

use crate::observe::Observed;
use crate::plan::{End, Plan};

/// Deletes requests.
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
        let Observed { request } = observed;
        let (next, done) = match plan {
            Plan::Keep(_) => (None, Ok(())),
            Plan::Wait { left, end: _ } => (Some(left), Ok(())),
            Plan::Delete { end, preconditions } => (None, self.delete(&request.metadata.key, end, preconditions).await),
        };
        Outcome { next, error: done.err() }
    }

    async fn delete(&self, key: &Key, end: End, preconditions: Preconditions) -> anyhow::Result<()> {
        let End { at, state } = end;
        let options = DeleteOptions::of(preconditions);
        let control = self.control.for_key(key, preconditions.uid);
        match control.delete(&CERTIFICATE_SIGNING_REQUESTS, key, &options).await {
            Ok(()) => {
                tracing::info!(request = %key, %state, end = %at, "deleted the request");
                Ok(())
            }
            // Somebody was faster.
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error).context("delete the request"),
        }
    }
}
