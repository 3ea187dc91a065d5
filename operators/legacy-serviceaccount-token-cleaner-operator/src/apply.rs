//! Executes a plan: at most one patch of a label, or one deletion.

use anyhow::Context;
use serde_json::json;
use shared::api::object::{Key, Uid};
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::{DeleteOptions, KeyControl, Patch, Preconditions};

use crate::objects::day::Day;
use crate::objects::{INVALID_SINCE, LAST_USED, SECRETS};
use crate::observe::Observed;
use crate::plan::{Plan, Reason};

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

impl Writer {
    pub(crate) async fn apply(&self, round: &Key, observed: &Observed, plan: Plan) -> anyhow::Result<()> {
        let (key, control) = (&observed.token.metadata.key, self.ctx.for_name(round));
        match plan {
            Plan::Keep(Reason::NoDay) => {
                tracing::warn!(secret = %key, label = LAST_USED, "last-used label is not a date");
                Ok(())
            }
            Plan::Keep(_) => Ok(()),
            Plan::Mark { since, uid, last_used: _ } => mark(control, key, uid, since).await,
            Plan::Delete { since, preconditions } => delete(control, key, preconditions, since).await,
        }
    }
}

/// The apiserver refuses a marked token. Removing the label makes it valid again.
async fn mark(control: KeyControl<'_>, key: &Key, uid: Uid, since: Day) -> anyhow::Result<()> {
    let patch = Patch::merge(&json!({ "metadata": { "labels": { INVALID_SINCE: since } } }));
    let marked = control.patch(&SECRETS, key, uid, patch).await;
    if marked.unless_gone().context("cannot mark the token as invalid")?.is_some() {
        tracing::info!(secret = %key, %since, "marked token as invalid");
    }
    Ok(())
}

async fn delete(control: KeyControl<'_>, key: &Key, preconditions: Preconditions, since: Day) -> anyhow::Result<()> {
    let deleted = control.delete(&SECRETS, key, &DeleteOptions::of(preconditions)).await;
    if deleted.unless_gone().context("cannot delete the token")?.is_some() {
        tracing::info!(secret = %key, invalid_since = %since, "deleted token");
    }
    Ok(())
}
