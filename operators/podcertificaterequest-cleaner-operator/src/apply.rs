//! Executes plans: timers for the requests of a round, and at most one deletion for a request.

use anyhow::Context;
use shared::api::object::{Key, Uid};
use shared::api::time::Time;
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::DeleteOptions;
use shared::working::queue::Queue;
use shared::working::worker::Requeue;

use crate::objects::POD_CERTIFICATE_REQUESTS;
use crate::plan::{Look, Plan, RoundPlan};

const PURPOSE: &str = "the end of its time";

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

/// Sets the timers of a round. A timer that is already set stays.
pub(crate) fn apply_round(requests: &Queue, plan: RoundPlan) {
    let RoundPlan { looks, reason: _ } = plan;
    for Look { key, left } in looks {
        requests.add_after(&key, left, PURPOSE);
    }
}

impl Writer {
    pub(crate) async fn apply(&self, key: &Key, plan: Plan) -> anyhow::Result<Requeue> {
        match plan {
            Plan::Keep => Ok(Requeue::Done),
            Plan::Wait { left, until: _ } => Ok(Requeue::After(left, PURPOSE)),
            Plan::Delete { since, uid } => {
                self.delete(key, since, uid).await?;
                Ok(Requeue::Done)
            }
        }
    }

    async fn delete(&self, key: &Key, since: Time, uid: Uid) -> anyhow::Result<()> {
        let options = DeleteOptions::of(uid);
        let deleted = self.ctx.for_key(key, uid).delete(&POD_CERTIFICATE_REQUESTS, key, &options).await;
        if deleted.unless_gone().context("cannot delete the request")?.is_some() {
            tracing::info!(request = %key, end = %since, "deleted request");
        }
        Ok(())
    }
}
