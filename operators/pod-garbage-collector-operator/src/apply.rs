//! Deletes pods by force, each after its status says that it has failed.
//!
//! Every pod is tried, whatever happens to the others. Left out: events, of which upstream has none.

use anyhow::Context;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use serde_json::json;
use shared::client::PatchType;
use shared::control::{self, Control};
use shared::decisions::Decisions;
use shared::resource::PODS;

use crate::metrics::DeletionMetrics;
use crate::plan::Deletion;
use crate::status::failed_status;

/// So many pods at once.
const AT_ONCE: usize = 16;

/// Deletes pods.
#[derive(Clone)]
pub(crate) struct Writer {
    pub(crate) control: Control,
    pub(crate) metrics: DeletionMetrics,
    pub(crate) decisions: Decisions,
}

impl Writer {
    /// Deletes these; gives what failed.
    pub(crate) async fn delete_all(&self, deletions: Vec<Deletion>, now: Timestamp) -> Vec<anyhow::Error> {
        let deleting = stream::iter(deletions).map(|deletion| self.delete(deletion, now));
        let outcomes: Vec<anyhow::Result<()>> = deleting.buffered(AT_ONCE).collect().await;
        outcomes.into_iter().filter_map(Result::err).collect()
    }

    async fn delete(&self, deletion: Deletion, now: Timestamp) -> anyhow::Result<()> {
        let Deletion { pod, reason } = &deletion;
        let (key, reason) = (&pod.metadata.key, reason.as_str());
        self.decisions.record(now, key, &deletion);
        let outcome = self.try_delete(&deletion, now).await.with_context(|| format!("delete pod {key}"));
        self.metrics.observe(&deletion, outcome.is_ok());
        match &outcome {
            Ok(()) => {
                self.decisions.finish(key, Ok(()));
                tracing::info!(pod = %key, node = pod.node.as_str(), reason, "deleted the pod by force");
            }
            Err(error) => {
                self.decisions.finish(key, Err(&format_args!("{error:#}")));
                tracing::warn!(pod = %key, reason, error = format!("{error:#}"), "cannot delete the pod");
            }
        }
        outcome
    }

    /// A pod that is gone, or another one of its name, is as good as deleted.
    async fn try_delete(&self, deletion: &Deletion, now: Timestamp) -> anyhow::Result<()> {
        let Deletion { pod, reason: _ } = deletion;
        let key = &pod.metadata.key;
        if let Some(body) = failed_status(deletion, now) {
            let body = control::json(&body);
            match self.control.patch(&PODS, key, "status", PatchType::StrategicMerge, body).await {
                Err(error) if error.is_not_found() => return Ok(()),
                patched => drop(patched.context("mark it as failed")?),
            }
        }
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
            "preconditions": { "uid": pod.metadata.uid },
        });
        match self.control.delete_with(&PODS, key, control::json(&options)).await {
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            deleted => Ok(deleted?),
        }
    }
}
