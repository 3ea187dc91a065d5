//! Executes the decisions about pods with the condition DisruptionTarget.

use std::time::Duration;

use anyhow::Context;
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::runtime::clock::Clock;
use shared::runtime::control::{Control, Patch, Preconditions};
use shared::runtime::queue::Queue;

use crate::observe::stale::StalePod;
use crate::plan::stale::{SearchPlan, StalePlan, TIMER, cleared_target};

/// Writes to pods.
pub(crate) struct Writer {
    pub(crate) control: Control,
    pub(crate) clock: Clock,
}

/// The result of executing a plan.
#[derive(Debug)]
pub struct Outcome {
    /// The time until the next sync; none if only a change can make a difference.
    pub next: Option<Duration>,
    /// The error of a failed write.
    pub error: Option<anyhow::Error>,
}

impl Writer {
    /// Execute the plan.
    pub(crate) async fn apply(&self, observed: &StalePod, plan: StalePlan) -> Outcome {
        match plan {
            StalePlan::Keep(_) => Outcome { next: None, error: None },
            StalePlan::Wait { left, due: _ } => Outcome { next: Some(left), error: None },
            StalePlan::Clear { preconditions, generation, since: _ } => {
                let done = self.clear(&observed.pod.metadata.key, preconditions, generation).await;
                Outcome { next: None, error: done.err() }
            }
        }
    }

    async fn clear(&self, key: &Key, preconditions: Preconditions, generation: i64) -> anyhow::Result<()> {
        let patch = Patch::strategic(&cleared_target(generation, self.clock.now())).on_status();
        match self.control.for_name(key).patch(&PODS, key, preconditions, patch).await {
            Ok(_) => {
                tracing::info!(pod = %key, "reset condition DisruptionTarget");
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error).context("cannot reset condition DisruptionTarget"),
        }
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
