//! Executes a plan: at most one patch of a label, or one deletion.
//!
//! Left out: events, of which upstream has none.

use anyhow::Context;
use serde_json::json;
use shared::api::object::{Key, Uid};
use shared::runtime::control::{Control, DeleteOptions, KeyControl, Patch, Preconditions};

use crate::objects::day::Day;
use crate::objects::{INVALID_SINCE, LAST_USED, SECRETS};
use crate::observe::Observed;
use crate::plan::{Plan, Reason};

/// Marks and deletes tokens.
pub(crate) struct Writer {
    pub(crate) control: Control,
}

/// The result of executing a plan.
#[derive(Debug)]
pub struct Outcome {
    /// The error of the write, if it failed.
    pub error: Option<anyhow::Error>,
}

impl Writer {
    /// Executes the plan in the round of this key.
    pub(crate) async fn apply(&self, round: &Key, observed: &Observed, plan: Plan) -> Outcome {
        let Observed { token, account: _, used_by: _ } = observed;
        let (key, control) = (&token.metadata.key, self.control.for_name(round));
        let done = match plan {
            Plan::Keep(Reason::NoDay) => {
                tracing::warn!(secret = %key, label = LAST_USED, "the label of a token's last use says no day");
                Ok(())
            }
            Plan::Keep(_) => Ok(()),
            Plan::Mark { since, uid, last_used: _ } => mark(control, key, uid, since).await,
            Plan::Delete { since, preconditions } => delete(control, key, preconditions, since).await,
        };
        Outcome { error: done.err() }
    }
}

/// From then on the apiserver refuses the token, and a person who takes the label away has it back.
async fn mark(control: KeyControl<'_>, key: &Key, uid: Uid, since: Day) -> anyhow::Result<()> {
    let patch = Patch::merge(&json!({ "metadata": { "labels": { INVALID_SINCE: since } } }));
    match control.patch(&SECRETS, key, uid, patch).await {
        Ok(_) => {
            tracing::info!(secret = %key, %since, "marked the token as invalid");
            Ok(())
        }
        // Somebody was faster.
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error).context("mark the token as invalid"),
    }
}

async fn delete(control: KeyControl<'_>, key: &Key, preconditions: Preconditions, since: Day) -> anyhow::Result<()> {
    match control.delete(&SECRETS, key, &DeleteOptions::of(preconditions)).await {
        Ok(()) => {
            tracing::info!(secret = %key, invalid_since = %since, "deleted the token");
            Ok(())
        }
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error).context("delete the token"),
    }
}
