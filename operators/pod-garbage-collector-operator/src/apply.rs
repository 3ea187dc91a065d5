//! Deletes pods by force, each after its status says that it has failed. One failure does not stop the other deletions.

use std::time::Duration;

use anyhow::Context;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::transport::api_error::{ApiError, ResultExt};
use shared::working::context::ControllerContext;
use shared::working::control::{DeleteOptions, Patch, aggregate};
use shared::working::queue::Queue;

use crate::metrics::DeletionMetrics;
use crate::observe::{MissingNode, Observed};
use crate::plan::{BindingsPlan, Deletion, MissingPlan, Plan};
use crate::status::failed_status;

/// How many pods are deleted at a time.
const AT_ONCE: usize = 16;
/// How long a node has to be missing. Upstream: `quarantineTime`, `pkg/controller/podgc/gc_controller.go`.
pub(crate) const QUARANTINE: Duration = Duration::from_secs(40);
pub(crate) const QUARANTINE_PURPOSE: &str = "the end of its quarantine";

#[derive(Clone)]
pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
    /// Records the decision about each pod, in the queue of rounds.
    pub(crate) of_pods: ControllerContext,
    pub(crate) missing: Queue,
    pub(crate) metrics: DeletionMetrics,
}

impl Writer {
    /// Executes the plan of a round; failures are logged.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) {
        let Plan { delete, unread: _ } = plan;
        self.delete_all(&observed.key, delete).await;
    }

    /// Executes the plan of a search: the quarantine of each missing node begins.
    pub(crate) fn apply_bindings(&self, plan: BindingsPlan) {
        let BindingsPlan { missing, existed: _ } = plan;
        for node in &missing {
            self.missing.add_after(&Key::new("", node), QUARANTINE, QUARANTINE_PURPOSE);
        }
    }

    /// Executes the plan for a node that was missing.
    pub(crate) async fn apply_missing(&self, observed: &MissingNode, plan: MissingPlan) -> anyhow::Result<()> {
        match plan {
            MissingPlan::Keep(_) => Ok(()),
            MissingPlan::Delete(pods) => aggregate(self.delete_all(&observed.key, pods).await),
        }
    }

    /// Deletes these pods in the sync of this key, and returns all errors.
    async fn delete_all(&self, of: &Key, deletions: Vec<Deletion>) -> Vec<anyhow::Error> {
        let now = self.ctx.now();
        let deleting = stream::iter(deletions).map(|deletion| self.delete(of, deletion, now));
        let done: Vec<anyhow::Result<()>> = deleting.buffered(AT_ONCE).collect().await;
        done.into_iter().filter_map(Result::err).collect()
    }

    async fn delete(&self, of: &Key, deletion: Deletion, now: Timestamp) -> anyhow::Result<()> {
        let Deletion { pod, reason } = &deletion;
        let (key, reason) = (&pod.metadata.key, reason.as_str());
        self.of_pods.decide(key, &deletion);
        let done = self.try_delete(of, &deletion, now).await.with_context(|| format!("cannot delete pod {key}"));
        self.metrics.observe(&deletion, done.is_ok());
        self.of_pods.finish(key, &done);
        match &done {
            Ok(()) => tracing::info!(pod = %key, node = pod.node.as_str(), reason, "deleted pod by force"),
            Err(error) if ApiError::is_shadows(error) => {}
            Err(error) => tracing::warn!(pod = %key, reason, error = format!("{error:#}"), "cannot delete pod"),
        }
        done
    }

    /// A conflict is an error. If the name belongs to another pod by now, the next round sees that; if a webhook refuses
    /// the write in these words, the pod still exists.
    async fn try_delete(&self, of: &Key, deletion: &Deletion, now: Timestamp) -> anyhow::Result<()> {
        let Deletion { pod, reason: _ } = deletion;
        let (key, uid, control) = (&pod.metadata.key, pod.metadata.uid, self.ctx.for_name(of));
        if let Some(body) = failed_status(deletion, now) {
            let patched = control.patch(&PODS, key, uid, Patch::strategic(&body).on_status()).await;
            if patched.unless_gone().context("cannot mark it as failed")?.is_none() {
                return Ok(());
            }
        }
        control.delete(&PODS, key, &DeleteOptions::of(uid).within(0)).await.unless_gone()?;
        Ok(())
    }
}
