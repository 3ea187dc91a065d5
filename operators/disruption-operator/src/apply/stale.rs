//! Executes the decisions about pods with the condition DisruptionTarget.

use std::time::Duration;

use anyhow::Context;
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::{Patch, Preconditions};
use shared::working::queue::Queue;

use crate::observe::stale::StalePod;
use crate::plan::stale::{SearchPlan, StalePlan, TIMER, cleared_target};

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

impl Writer {
    /// Execute the plan. Return the time until the next sync; none if only a change can make a difference.
    pub(crate) async fn apply(&self, observed: &StalePod, plan: StalePlan) -> anyhow::Result<Option<Duration>> {
        match plan {
            StalePlan::Keep(_) => Ok(None),
            StalePlan::Wait { left, due: _ } => Ok(Some(left)),
            StalePlan::Clear { preconditions, generation, since: _ } => {
                self.clear(&observed.pod.metadata.key, preconditions, generation).await?;
                Ok(None)
            }
        }
    }

    async fn clear(&self, key: &Key, preconditions: Preconditions, generation: i64) -> anyhow::Result<()> {
        let patch = Patch::strategic(&cleared_target(generation, self.ctx.now())).on_status();
        let patched = self.ctx.for_name(key).patch(&PODS, key, preconditions, patch).await;
        if patched.unless_gone().context("cannot reset condition DisruptionTarget")?.is_some() {
            tracing::info!(pod = %key, "reset condition DisruptionTarget");
        }
        Ok(())
    }
}

/// Schedule the check of each pod found. Return the time until the next page.
pub(crate) fn apply_search(plan: SearchPlan, stale: &Queue) -> Duration {
    let SearchPlan { found, next } = plan;
    for (pod, left) in found {
        stale.add_after(&pod, left, TIMER);
    }
    next
}
