//! Executes a plan: at most one deletion, or one write of the status.

use anyhow::Context;
use serde_json::Value;
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::{DeleteOptions, Preconditions};

use crate::objects::STORAGE_VERSIONS;
use crate::observe::Observed;
use crate::plan::Plan;

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

/// The entries that the status keeps; none if it stays as it is.
#[derive(Debug)]
pub struct Outcome {
    pub entries: Option<Vec<Value>>,
}

impl Writer {
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<Outcome> {
        let metadata = &observed.storage_version.metadata;
        let key = &metadata.key;
        let entries = match plan {
            Plan::Keep(_) => None,
            Plan::Shrink { entries, dead: _ } => Some(entries),
            Plan::Delete { preconditions, dead } => {
                let options = DeleteOptions::of(preconditions);
                let deleted = self.ctx.for_key(key, metadata.uid).delete(&STORAGE_VERSIONS, key, &options).await;
                if deleted.unless_gone().context("cannot delete the StorageVersion")?.is_some() {
                    tracing::info!(storage_version = %key, ?dead, "deleted StorageVersion of dead apiservers");
                }
                None
            }
        };
        Ok(Outcome { entries })
    }

    /// Writes the whole StorageVersion with the version that was read, so that no entry is lost that has been added since.
    pub(crate) async fn write_status(&self, observed: &Observed, body: &Value) -> anyhow::Result<()> {
        let metadata = &observed.storage_version.metadata;
        let (key, control) = (&metadata.key, self.ctx.for_key(&metadata.key, metadata.uid));
        let written = control.replace(&STORAGE_VERSIONS, key, "status", Preconditions::of_read(body), body).await;
        if written.unless_gone().context("cannot write the status")?.is_some() {
            tracing::info!(storage_version = %key, "dropped entries of dead apiservers");
        }
        Ok(())
    }
}
