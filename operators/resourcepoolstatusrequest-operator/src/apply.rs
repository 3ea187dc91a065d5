//! Executes a plan: at most one deletion, or one write of the status.

use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::{DeleteOptions, Patch, Preconditions};

use crate::objects::RESOURCE_POOL_STATUS_REQUESTS;
use crate::observe::Observed;
use crate::plan::{Plan, PoolAnswer};

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

/// The answer to write, if there is one, and when to sync again.
#[derive(Debug, Default)]
pub struct Outcome {
    pub answer: Option<Answer>,
    pub next: Option<(Duration, &'static str)>,
}

#[derive(Debug)]
pub struct Answer {
    pub pools: Vec<PoolAnswer>,
    /// How many pools there are, with those beyond the limit.
    pub total: usize,
}

impl Writer {
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<Outcome> {
        let metadata = &observed.request.metadata;
        let key = &metadata.key;
        let next = match plan {
            Plan::Keep(_) => None,
            Plan::Wait { left, until: _ } => Some((left, "the end of its time")),
            Plan::Retry { after, incomplete: _ } => Some((after, "complete pools")),
            // The watch shows the answer, which leads to the next sync.
            Plan::Answer { pools, total } => {
                return Ok(Outcome { answer: Some(Answer { pools, total }), next: None });
            }
            Plan::Delete { uid, since } => {
                let options = DeleteOptions::of(Preconditions::from(uid));
                let deleted = self.ctx.for_key(key, uid).delete(&RESOURCE_POOL_STATUS_REQUESTS, key, &options).await;
                if deleted.unless_gone().context("cannot delete the request")?.is_some() {
                    tracing::info!(request = %key, end = %since, "deleted request");
                }
                None
            }
        };
        Ok(Outcome { answer: None, next })
    }

    pub(crate) async fn write_status(&self, observed: &Observed, status: &Value) -> anyhow::Result<()> {
        let metadata = &observed.request.metadata;
        let (key, patch) = (&metadata.key, Patch::merge(&json!({ "status": status })).on_status());
        let control = self.ctx.for_key(key, metadata.uid);
        let written = control.patch(&RESOURCE_POOL_STATUS_REQUESTS, key, Preconditions::of(metadata), patch).await;
        if written.unless_gone().context("cannot write the answer")?.is_some() {
            tracing::info!(request = %key, "answered request");
        }
        Ok(())
    }
}
