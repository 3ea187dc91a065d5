//! Carries out the decisions about pods that something outside of them was to end.
//!
//! Left out: events, of which upstream has none.

use std::time::Duration;

use anyhow::Context;
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::runtime::clock::Clock;
use shared::runtime::control::{Control, Patch, Preconditions};
use shared::runtime::queue::Queue;

use crate::observe::stale::StalePod;
use crate::plan::stale::{SearchPlan, StalePlan};
use crate::status::cleared_target;

/// The purpose of the timer of such a pod.
pub(crate) const STALE: &str = "the time in which something may end the pod";

/// Writes to pods.
pub(crate) struct Writer {
    pub(crate) control: Control,
    pub(crate) clock: Clock,
}

/// The result of executing a plan.
#[derive(Debug)]
pub struct Outcome {
    /// When to look again; none if only a change can make a difference.
    pub next: Option<Duration>,
    /// The error of the write, if it failed.
    pub error: Option<anyhow::Error>,
}

impl Writer {
    /// Executes the plan.
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
                tracing::info!(pod = %key, "took back that the pod is about to be disrupted");
                Ok(())
            }
            // It is as good as ended.
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error).context("take back the condition"),
        }
    }
}

/// Has every pod looked at that a search has found. Gives the time until the next page.
pub(crate) fn apply_search(plan: SearchPlan, stale: &Queue) -> Duration {
    let SearchPlan { found, next } = plan;
    for (pod, left) in found {
        stale.add_after(&pod, left, STALE);
    }
    next
}
