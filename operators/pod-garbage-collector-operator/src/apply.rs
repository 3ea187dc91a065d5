//! Deletes pods by force, each after its status says that it has failed.
//!
//! Every pod is tried, whatever happens to the others. Left out: events, of which upstream has none.

use anyhow::Context;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::runtime::api_error::ApiError;
use shared::runtime::control::{Control, DeleteOptions, Patch};
use shared::runtime::decisions::Decisions;

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
    /// Deletes these for the sync of this key; gives what failed.
    pub(crate) async fn delete_all(&self, key: &Key, deletions: Vec<Deletion>, now: Timestamp) -> Vec<anyhow::Error> {
        let deleting = stream::iter(deletions).map(|deletion| self.delete(key, deletion, now));
        let outcomes: Vec<anyhow::Result<()>> = deleting.buffered(AT_ONCE).collect().await;
        outcomes.into_iter().filter_map(Result::err).collect()
    }

    async fn delete(&self, of: &Key, deletion: Deletion, now: Timestamp) -> anyhow::Result<()> {
        let Deletion { pod, reason } = &deletion;
        let (key, reason) = (&pod.metadata.key, reason.as_str());
        self.decisions.record(now, key, &deletion);
        let outcome = self.try_delete(of, &deletion, now).await.with_context(|| format!("delete pod {key}"));
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

    async fn try_delete(&self, of: &Key, deletion: &Deletion, now: Timestamp) -> anyhow::Result<()> {
        let Deletion { pod, reason: _ } = deletion;
        let (key, uid, control) = (&pod.metadata.key, pod.metadata.uid, self.control.for_name(of));
        if let Some(body) = failed_status(deletion, now) {
            let patched = control.patch(&PODS, key, uid, Patch::strategic(&body).on_status()).await;
            if outcome(patched.map(drop)).context("mark it as failed")? == Outcome::Gone {
                return Ok(());
            }
        }
        outcome(control.delete(&PODS, key, &DeleteOptions::of(uid).within(0)).await)?;
        Ok(())
    }
}

/// What a write to a pod has come to.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Written,
    Gone,
}

/// A pod that is gone is as good as deleted. One that conflicts is not: if its name is another pod's by now, the cache
/// will tell before the next round, and if a webhook has refused in these words, it is still there.
fn outcome(written: Result<(), ApiError>) -> Result<Outcome, ApiError> {
    match written {
        Ok(()) => Ok(Outcome::Written),
        Err(error) if error.is_not_found() => Ok(Outcome::Gone),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::runtime::api_error::Status;

    #[track_caller]
    fn check(code: u16, reason: &str, expected: Option<&Outcome>) {
        let status = Status { code, reason: reason.to_owned(), ..Status::default() };
        assert_eq!(outcome(Err(ApiError::Status(Box::new(status)))).ok().as_ref(), expected, "{code} {reason}");
    }

    #[test]
    fn a_pod_that_is_gone_is_deleted_and_one_that_conflicts_is_not() {
        assert_eq!(outcome(Ok(())).ok(), Some(Outcome::Written));
        check(404, "NotFound", Some(&Outcome::Gone));
        check(409, "Conflict", None);
        check(403, "Forbidden", None);
        check(500, "InternalError", None);
        assert!(outcome(Err(ApiError::NotLeading)).is_err());
    }
}
