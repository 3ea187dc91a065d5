//! Executes a plan: records its events and writes the status.

pub mod stale;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use shared::transport::api_error::ApiError;
use shared::working::context::ControllerContext;
use shared::working::control::Preconditions;

use crate::objects::{BudgetCondition, BudgetStatus, Failure, POD_DISRUPTION_BUDGETS};
use crate::observe::{Caches, Observed};
use crate::plan::Plan;
use crate::plan::counts::Counts;

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
    pub(crate) caches: Arc<Caches>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The numbers for the status, or why there are none.
    pub counts: Result<Counts, Failure>,
    /// The time until the next sync, and its purpose; none if only a change can make a difference.
    pub recheck: Option<(Duration, &'static str)>,
    /// Why owners must be read again at once.
    pub unread: Option<Failure>,
}

impl Writer {
    pub(crate) fn apply(&self, plan: Plan) -> Outcome {
        let Plan { notices, counts, recheck, unread } = plan;
        for notice in notices {
            self.ctx.event(notice);
        }
        Outcome { counts, recheck, unread }
    }

    /// Write the status under the observed resourceVersion: an eviction that came in between must not be overwritten.
    pub(crate) async fn write_status(
        &self,
        observed: &Observed,
        status: &BudgetStatus,
        now: Timestamp,
    ) -> Result<(), ApiError> {
        let memory = &self.caches.memory;
        let meta = &observed.budget.metadata;
        let preconditions = Preconditions::of(meta);
        let patch = StatusPatch::new(&observed.budget.status, status);
        // The budget may have been deleted since it was observed, and nothing would forget this note.
        if self.caches.exists(&observed.budget) {
            memory.decided.writes(&meta.key, status.clone());
        }
        let control = self.ctx.for_key(&meta.key, meta.uid);
        control.patch_status(&POD_DISRUPTION_BUDGETS, &meta.key, preconditions, &patch).await?;
        memory.statuses.wrote(&meta.key, now);
        Ok(())
    }
}

/// The status as a strategic merge patch. `null` removes an eviction; only the apiserver adds them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusPatch<'a> {
    observed_generation: i64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    disrupted_pods: BTreeMap<&'a str, Option<()>>,
    disruptions_allowed: i32,
    current_healthy: i32,
    desired_healthy: i32,
    expected_pods: i32,
    conditions: &'a [BudgetCondition],
}

impl<'a> StatusPatch<'a> {
    fn new(before: &'a BudgetStatus, status: &'a BudgetStatus) -> Self {
        let BudgetStatus {
            observed_generation,
            disrupted_pods,
            disruptions_allowed,
            current_healthy,
            desired_healthy,
            expected_pods,
            conditions,
        } = status;
        let dropped = before.disrupted_pods.keys().filter(|name| !disrupted_pods.contains_key(*name));
        Self {
            observed_generation: *observed_generation,
            disrupted_pods: dropped.map(|name| (&**name, None)).collect(),
            disruptions_allowed: *disruptions_allowed,
            current_healthy: *current_healthy,
            desired_healthy: *desired_healthy,
            expected_pods: *expected_pods,
            conditions,
        }
    }
}
