//! Executes a plan: remembers a pending deletion, drops it, or marks the pod and deletes it.
//!
//! As upstream, it does not use the eviction API, so no PodDisruptionBudget keeps a pod on such a node.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use shared::api::object::{Key, ObjectReference, ResourceVersion, Uid};
use shared::api::resource::PODS;
use shared::controllers::deletion_metrics::DeletionMetrics;
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::{DeleteOptions, Patch};
use shared::working::events::PlannedEvent;
use shared::working::queue::{Cause, Queue};

use crate::memory::{Evictions, Pending};
use crate::observe::Observed;
use crate::plan::{Eviction, NodePlan, Plan, Step};
use crate::status::marked_status;

const TAINT_MANAGER_EVICTION: &str = "TaintManagerEviction";

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
    pub(crate) metrics: DeletionMetrics,
    pub(crate) evictions: Arc<Evictions>,
}

impl Writer {
    /// Executes the plan for a pod. Returns when to sync it again; none if only a change can make a difference.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<Option<Duration>> {
        let Observed { key, pod: _, node: _, pending: _ } = observed;
        let Plan { cancel, step, reason } = plan;
        if cancel {
            tracing::info!(pod = %key, %reason, "canceled deletion of pod");
            self.event(key, format!("Cancelling deletion of Pod {key}"));
        }
        match step {
            Step::Keep => {
                self.evictions.forget(key);
                Ok(None)
            }
            Step::Start { pending, node, left } => {
                self.evictions.remember(key, &node, pending, self.ctx.now());
                Ok(Some(left))
            }
            Step::Wait { left } => Ok(Some(left)),
            Step::Evict(eviction) => self.evict(key, eviction).await.map(|()| None),
        }
    }

    /// Remembers a due deletion that the brake delays: what explains it may come meanwhile.
    pub(crate) fn hold(&self, key: &Key, plan: Plan) {
        if let Step::Evict(Eviction { pod, due, users, announce, delete: _, is_explained: _ }) = plan.step {
            let pending = Pending { uid: pod.metadata.uid, due, users, is_announced: !announce };
            self.evictions.remember(key, &pod.node, pending, self.ctx.now());
        }
    }

    /// The deletion is pending until it succeeds, so one event announces it, however often it is retried.
    ///
    /// Upstream: `deletePodHandler`, `pkg/controller/tainteviction/taint_eviction.go`.
    async fn evict(&self, key: &Key, eviction: Eviction) -> anyhow::Result<()> {
        let Eviction { pod, due, users, announce, delete, is_explained: _ } = eviction;
        let pending = Pending { uid: pod.metadata.uid, due, users, is_announced: true };
        self.evictions.remember(key, &pod.node, pending, self.ctx.now());
        if announce {
            self.event(key, format!("Marking for deletion Pod {key}"));
        }
        let (uid, now) = (pod.metadata.uid, self.ctx.now());
        let control = self.ctx.for_key(key, uid);
        let mut exists = true;
        if let Some(body) = marked_status(&pod, now) {
            let patched = control.patch(&PODS, key, uid, Patch::strategic(&body).on_status()).await;
            exists = patched.unless_absent().context("cannot mark pod")?.is_some();
        }
        let mut is_deleted = false;
        if delete && exists {
            // A conflict is an error: the name may belong to another pod by now.
            let deleted = control.delete(&PODS, key, &DeleteOptions::of(uid)).await;
            is_deleted = deleted.unless_absent().context("cannot delete pod")?.is_some();
        }
        self.evictions.forget(key);
        if is_deleted {
            tracing::info!(pod = %key, node = pod.node.as_str(), %due, "deleted pod for a taint of its node");
            self.metrics.observe(due, self.ctx.now());
        }
        Ok(())
    }

    /// Posts an event. As upstream's, it names the pod without its uid.
    fn event(&self, pod: &Key, message: String) {
        let (uid, resource_version) = (Uid::default(), ResourceVersion::default());
        let about = ObjectReference { resource: PODS, key: pod.clone(), uid, resource_version };
        self.ctx.event(PlannedEvent::normal(about, TAINT_MANAGER_EVICTION, message));
    }
}

/// Executes the plan for a node: its pods are synced before others.
pub(crate) fn apply_node(pods: &Queue, plan: NodePlan) {
    let NodePlan { sync, reason: _ } = plan;
    for pod in &sync {
        pods.add(pod, Cause::Edit);
    }
}
