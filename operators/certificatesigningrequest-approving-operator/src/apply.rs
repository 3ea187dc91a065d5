//! Executes a plan: at most one approval.
//!
//! Left out: events, of which upstream has none.

use anyhow::Context;
use serde_json::{Value, json};
use shared::api::object::Key;
use shared::api::resource::CERTIFICATE_SIGNING_REQUESTS;
use shared::runtime::control::{Control, Patch, Preconditions};

use crate::observe::Observed;
use crate::plan::{Permission, Plan, Reason};

/// Approves requests.
pub(crate) struct Writer {
    pub(crate) control: Control,
}

/// The result of executing a plan.
#[derive(Debug)]
pub struct Outcome {
    /// Whether the apiserver is to be asked again after a back-off.
    pub ask_again: bool,
    /// The error of the approval, if it failed.
    pub error: Option<anyhow::Error>,
}

impl Writer {
    /// Executes the plan.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let Observed { request, reviews: _ } = observed;
        let key = &request.metadata.key;
        let (ask_again, done) = match plan {
            Plan::Nothing(Reason::Unreadable { fault }) => {
                tracing::warn!(request = %key, %fault, "cannot read the request, and leaves it to somebody else");
                (false, Ok(()))
            }
            Plan::Nothing(_) => (false, Ok(())),
            Plan::AskAgain { tried: _ } => (true, Ok(())),
            Plan::Approve { permission, conditions, preconditions } => {
                (false, self.approve(key, permission, &conditions, preconditions).await)
            }
        };
        Outcome { ask_again, error: done.err() }
    }

    async fn approve(
        &self,
        key: &Key,
        permission: Permission,
        conditions: &[Value],
        preconditions: Preconditions,
    ) -> anyhow::Result<()> {
        let patch = Patch::merge(&json!({ "status": { "conditions": conditions } })).on("approval");
        let control = self.control.for_key(key, preconditions.uid);
        match control.patch(&CERTIFICATE_SIGNING_REQUESTS, key, preconditions, patch).await {
            Ok(_) => {
                tracing::info!(request = %key, permission = permission.subresource(), "approved the request");
                Ok(())
            }
            // Nobody wants it any more.
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error).context("approve the request"),
        }
    }
}
