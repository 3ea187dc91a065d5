//! Deletes pods by force, each after its status says that it has failed.
//!
//! Every pod is tried, whatever happens to the others. Left out: events, of which upstream has none.

use std::time::Duration;

use anyhow::Context;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::runtime::api_error::ApiError;
use shared::runtime::clock::Clock;
use shared::runtime::control::{Control, DeleteOptions, Patch, aggregate};
use shared::runtime::decisions::Decisions;
use shared::runtime::queue::Queue;

use crate::metrics::DeletionMetrics;
use crate::observe::{MissingNode, Observed};
use crate::plan::{BindingsPlan, Deletion, MissingPlan, Plan};
use crate::status::failed_status;

/// So many pods at once.
const AT_ONCE: usize = 16;
/// How long a node may be missing. Upstream: `quarantineTime`, `pkg/controller/podgc/gc_controller.go`.
pub(crate) const QUARANTINE: Duration = Duration::from_secs(40);
/// The purpose of that timer.
pub(crate) const QUARANTINE_PURPOSE: &str = "the end of its quarantine";

/// Deletes pods.
#[derive(Clone)]
pub(crate) struct Writer {
    pub(crate) control: Control,
    /// The nodes that are missing.
    pub(crate) missing: Queue,
    pub(crate) metrics: DeletionMetrics,
    pub(crate) clock: Clock,
    pub(crate) decisions: Decisions,
}

/// The result of executing a plan.
#[derive(Debug)]
pub struct Outcome {
    /// The errors of all deletions that failed, as one.
    pub error: Option<anyhow::Error>,
}

impl Writer {
    /// Does what was planned for a round.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let Plan { delete, unread: _ } = plan;
        self.delete_all(&observed.key, delete).await
    }

    /// Does what was planned after a search: every missing node gets its time.
    pub(crate) fn apply_bindings(&self, plan: BindingsPlan) {
        let BindingsPlan { missing } = plan;
        for node in &missing {
            self.missing.add_after(&Key::new("", node), QUARANTINE, QUARANTINE_PURPOSE);
        }
    }

    /// Does what was planned for a node that was missing.
    pub(crate) async fn apply_missing(&self, observed: &MissingNode, plan: MissingPlan) -> Outcome {
        match plan {
            MissingPlan::Keep(_) => Outcome { error: None },
            MissingPlan::Delete(pods) => self.delete_all(&observed.key, pods).await,
        }
    }

    /// Deletes these for the sync of this key.
    async fn delete_all(&self, of: &Key, deletions: Vec<Deletion>) -> Outcome {
        let now = self.clock.now();
        let deleting = stream::iter(deletions).map(|deletion| self.delete(of, deletion, now));
        let done: Vec<anyhow::Result<()>> = deleting.buffered(AT_ONCE).collect().await;
        Outcome { error: aggregate(done.into_iter().filter_map(Result::err).collect()).err() }
    }

    async fn delete(&self, of: &Key, deletion: Deletion, now: Timestamp) -> anyhow::Result<()> {
        let Deletion { pod, reason } = &deletion;
        let (key, reason) = (&pod.metadata.key, reason.as_str());
        self.decisions.record(now, key, &deletion);
        let done = self.try_delete(of, &deletion, now).await.with_context(|| format!("delete pod {key}"));
        self.metrics.observe(&deletion, done.is_ok());
        match &done {
            Ok(()) => {
                self.decisions.finish(key, Ok(()));
                tracing::info!(pod = %key, node = pod.node.as_str(), reason, "deleted the pod by force");
            }
            Err(error) => {
                self.decisions.finish(key, Err(&format_args!("{error:#}")));
                if !ApiError::is_shadows(error) {
                    tracing::warn!(pod = %key, reason, error = format!("{error:#}"), "cannot delete the pod");
                }
            }
        }
        done
    }

    async fn try_delete(&self, of: &Key, deletion: &Deletion, now: Timestamp) -> anyhow::Result<()> {
        let Deletion { pod, reason: _ } = deletion;
        let (key, uid, control) = (&pod.metadata.key, pod.metadata.uid, self.control.for_name(of));
        if let Some(body) = failed_status(deletion, now) {
            let patched = control.patch(&PODS, key, uid, Patch::strategic(&body).on_status()).await;
            if written(patched.map(drop)).context("mark it as failed")? == Written::Gone {
                return Ok(());
            }
        }
        written(control.delete(&PODS, key, &DeleteOptions::of(uid).within(0)).await)?;
        Ok(())
    }
}

/// The result of a write to a pod.
#[derive(Debug, PartialEq, Eq)]
enum Written {
    There,
    Gone,
}

/// A pod that is gone is as good as deleted. One that conflicts is not: if its name is another pod's by now, the next
/// round knows that, and if a webhook has refused in these words, it is still there.
fn written(answer: Result<(), ApiError>) -> Result<Written, ApiError> {
    match answer {
        Ok(()) => Ok(Written::There),
        Err(error) if error.is_not_found() => Ok(Written::Gone),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::runtime::api_error::Status;

    #[track_caller]
    fn check(code: u16, reason: &str, expected: Option<&Written>) {
        let status = Status { code, reason: reason.to_owned(), ..Status::default() };
        assert_eq!(written(Err(ApiError::Status(Box::new(status)))).ok().as_ref(), expected, "{code} {reason}");
    }

    #[test]
    fn a_pod_that_is_gone_is_deleted_and_one_that_conflicts_is_not() {
        assert_eq!(written(Ok(())).ok(), Some(Written::There));
        check(404, "NotFound", Some(&Written::Gone));
        check(409, "Conflict", None);
        check(403, "Forbidden", None);
        check(500, "InternalError", None);
        assert!(written(Err(ApiError::NotLeading)).is_err());
    }
}
