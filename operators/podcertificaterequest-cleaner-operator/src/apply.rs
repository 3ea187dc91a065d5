//! Executes plans: timers for the requests of a round, and at most one deletion for a request.
//!
//! Left out: events, of which upstream has none.

use std::time::Duration;

use anyhow::Context;
use shared::api::object::{Key, Uid};
use shared::api::time::Time;
use shared::runtime::control::{Control, DeleteOptions};
use shared::runtime::queue::Queue;

use crate::objects::POD_CERTIFICATE_REQUESTS;
use crate::plan::{Look, Plan, RoundPlan};

/// The purpose of a request's timer.
pub(crate) const PURPOSE: &str = "the end of its time";

/// Deletes requests.
pub(crate) struct Writer {
    pub(crate) control: Control,
}

/// The result of executing a plan.
#[derive(Debug)]
pub struct Outcome {
    /// When to look again; none if only the next round can make a difference.
    pub next: Option<Duration>,
    /// The error of the deletion, if it failed.
    pub error: Option<anyhow::Error>,
}

/// Sets the timers of a round; those that are set already stay.
pub(crate) fn apply_round(requests: &Queue, plan: RoundPlan) {
    let RoundPlan { looks, reason: _ } = plan;
    for Look { key, left } in looks {
        requests.add_after(&key, left, PURPOSE);
    }
}

impl Writer {
    /// Executes the plan for the request of this key.
    pub(crate) async fn apply(&self, key: &Key, plan: Plan) -> Outcome {
        let (next, done) = match plan {
            Plan::Keep => (None, Ok(())),
            Plan::Wait { left, until: _ } => (Some(left), Ok(())),
            Plan::Delete { since, uid } => (None, self.delete(key, since, uid).await),
        };
        Outcome { next, error: done.err() }
    }

    async fn delete(&self, key: &Key, since: Time, uid: Uid) -> anyhow::Result<()> {
        let options = DeleteOptions::of(uid);
        match self.control.for_key(key, uid).delete(&POD_CERTIFICATE_REQUESTS, key, &options).await {
            Ok(()) => {
                tracing::info!(request = %key, end = %since, "deleted the request");
                Ok(())
            }
            // Somebody was faster.
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error).context("delete the request"),
        }
    }
}
