//! Executes a plan: notes a pending deletion, drops it, or marks the pod and deletes it.
//!
//! Left out: the eviction API. No budget keeps a pod on such a node, as upstream.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use shared::api::object::{Key, ObjectReference, ResourceVersion, Uid};
use shared::api::resource::PODS;
use shared::runtime::api_error::ApiError;
use shared::runtime::clock::Clock;
use shared::runtime::control::{Control, DeleteOptions, Patch};
use shared::runtime::events::{EventType, Recorder};
use shared::runtime::queue::{Cause, Queue};

use crate::metrics::DeletionMetrics;
use crate::observe::{Evictions, Observed, Pending};
use crate::plan::{Eviction, NodePlan, Plan, Step};
use crate::status::marked_status;

/// The reason of all events.
const TAINT_MANAGER_EVICTION: &str = "TaintManagerEviction";

/// Deletes pods.
pub(crate) struct Writer {
    pub(crate) control: Control,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: DeletionMetrics,
    pub(crate) clock: Clock,
    pub(crate) evictions: Arc<Evictions>,
}

/// The result of executing a plan.
#[derive(Debug)]
pub struct Outcome {
    /// When to look again; none if only a change can make a difference.
    pub next: Option<Duration>,
    /// The error of the first write that failed.
    pub error: Option<anyhow::Error>,
}

impl Writer {
    /// Executes the plan for a pod.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let Observed { key, pod: _, node: _, pending: _ } = observed;
        let Plan { cancel, step, reason } = plan;
        if cancel {
            tracing::info!(pod = %key, %reason, "the pod's deletion is cancelled");
            self.tell(key, format!("Cancelling deletion of Pod {key}"));
        }
        let (next, done) = match step {
            Step::Keep => {
                self.evictions.forget(key);
                (None, Ok(()))
            }
            Step::Start { pending, node, left } => {
                self.evictions.remember(key, &node, pending);
                (Some(left), Ok(()))
            }
            Step::Wait { left } => (Some(left), Ok(())),
            Step::Evict(eviction) => (None, self.evict(key, eviction).await),
        };
        Outcome { next, error: done.err() }
    }

    /// A deletion is pending until it has succeeded: people are told of it once, however often it is tried.
    ///
    /// Upstream: `deletePodHandler`, `pkg/controller/tainteviction/taint_eviction.go`.
    async fn evict(&self, key: &Key, eviction: Eviction) -> anyhow::Result<()> {
        let Eviction { pod, due, announce, delete, is_explained: _ } = eviction;
        let pending = Pending { uid: pod.metadata.uid, due, is_announced: true };
        self.evictions.remember(key, &pod.node, pending);
        if announce {
            self.tell(key, format!("Marking for deletion Pod {key}"));
        }
        let (uid, now) = (pod.metadata.uid, self.clock.now());
        let control = self.control.for_key(key, uid);
        let mut written = Written::There;
        if let Some(body) = marked_status(&pod, now) {
            let patched = control.patch(&PODS, key, uid, Patch::strategic(&body).on_status()).await;
            written = outcome(patched.map(drop)).context("mark the pod")?;
        }
        if delete && written == Written::There {
            written = outcome(control.delete(&PODS, key, &DeleteOptions::of(uid)).await).context("delete the pod")?;
        }
        self.evictions.forget(key);
        if delete && written == Written::There {
            tracing::info!(pod = %key, node = pod.node.as_str(), %due, "deleted the pod for a taint of its node");
            self.metrics.observe(due, self.clock.now());
        }
        Ok(())
    }

    /// As upstream's, an event names the pod and not its uid.
    fn tell(&self, pod: &Key, message: String) {
        let (uid, resource_version) = (Uid::default(), ResourceVersion::default());
        let about = ObjectReference { resource: PODS, key: pod.clone(), uid, resource_version };
        self.recorder.event(&about, EventType::Normal, TAINT_MANAGER_EVICTION, message);
    }
}

/// Executes the plan for a node: its pods are synced before others.
pub(crate) fn apply_node(pods: &Queue, plan: NodePlan) {
    let NodePlan { sync, reason: _ } = plan;
    for pod in &sync {
        pods.add(pod, Cause::Edit);
    }
}

/// The result of a write to a pod.
#[derive(Debug, PartialEq, Eq)]
enum Written {
    There,
    Gone,
}

/// A pod that is gone needs no more writes. After a conflict the next sync decides anew: the name may be another pod's
/// by now.
fn outcome(answer: Result<(), ApiError>) -> Result<Written, ApiError> {
    match answer {
        Ok(()) => Ok(Written::There),
        Err(error) if error.is_not_found() => Ok(Written::Gone),
        Err(error) => Err(error),
    }
}
