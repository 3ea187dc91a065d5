//! Carries out a plan: records the events; and writes the status.
//!
//! Decides nothing. Left out: evicting or deleting pods.

pub mod stale;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use shared::runtime::api_error::ApiError;
use shared::runtime::control::{Control, Preconditions};
use shared::runtime::events::Recorder;

use crate::objects::{BudgetCondition, BudgetStatus, POD_DISRUPTION_BUDGETS};
use crate::observe::{Caches, Observed};
use crate::plan::{Counts, Failure, Plan, PlannedEvent};

/// Writes for budgets.
pub(crate) struct Writer {
    pub(crate) control: Control,
    pub(crate) recorder: Recorder,
    /// Where the statuses are noted that are written.
    pub(crate) caches: Arc<Caches>,
}

/// The result of executing a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The numbers for the status, or why there are none.
    pub counts: Result<Counts, Failure>,
    /// When to look again; none if only a change can make a difference.
    pub recheck: Option<Duration>,
}

impl Writer {
    /// Executes the plan.
    pub(crate) fn apply(&self, plan: Plan) -> Outcome {
        let Plan { notices, counts, recheck } = plan;
        for PlannedEvent { about, kind, reason, message } in notices {
            self.recorder.event(&about, kind, reason, message);
        }
        Outcome { counts, recheck }
    }

    /// Writes the status of the state that was observed; the server refuses (409) if there is a newer one. Above all
    /// there is one after each eviction, which must not be written over.
    pub(crate) async fn write_status(&self, observed: &Observed, status: &BudgetStatus) -> Result<(), ApiError> {
        let meta = &observed.budget.metadata;
        let preconditions = Preconditions { uid: meta.uid, resource_version: Some(meta.resource_version) };
        let patch = StatusPatch::new(&observed.budget.status, status);
        self.caches.decided.writes(&meta.key, status.clone());
        let control = self.control.for_key(&meta.key, meta.uid);
        control.patch_status(&POD_DISRUPTION_BUDGETS, &meta.key, preconditions, &patch).await.map(drop)
    }
}

/// The status as a strategic merge patch, in which `null` drops an eviction.
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
    /// Evictions are only ever dropped here: it is the apiserver that adds them.
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
