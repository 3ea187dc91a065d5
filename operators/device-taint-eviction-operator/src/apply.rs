//! Executes a plan: remembers a pending deletion, drops it, or marks the pod and deletes it; and writes the condition of a
//! DeviceTaintRule.
//!
//! As upstream, it does not use the eviction API, so no PodDisruptionBudget keeps a pod.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use shared::api::object::{Key, ObjectReference, ResourceVersion, Uid};
use shared::api::resource::PODS;
use shared::controllers::deletion_metrics::DeletionMetrics;
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::{DeleteOptions, Patch};
use shared::working::events::PlannedEvent;
use shared::working::queue::Queue;

use crate::memory::Pending;
use crate::objects::{DEVICE_TAINT_RULES, DeviceTaintRule};
use crate::observe::{Caches, Observed};
use crate::plan::{Eviction, Plan, RULE_STATUS_PERIOD, Step};
use crate::status::{RuleCondition, marked_status};

const DEVICE_TAINT_MANAGER_EVICTION: &str = "DeviceTaintManagerEviction";
const MARKING: &str = "Marking for deletion";
const CANCELLING: &str = "Cancelling deletion";
/// The field manager of the condition. It is upstream's, so the condition keeps one owner after a handover.
const FIELD_MANAGER: &str = "device-taint-eviction-controller";

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
    pub(crate) metrics: DeletionMetrics,
    pub(crate) caches: Arc<Caches>,
    /// Of DeviceTaintRules.
    pub(crate) rules: Queue,
}

impl Writer {
    /// Executes the plan for a pod. Returns when to sync it again; none if only a change can make a difference.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<Option<Duration>> {
        let Observed { key, pod: _, claims: _, rules: _, pending, by_group: _ } = observed;
        let Plan { cancel, step, report, reason } = plan;
        if cancel && let Some(pending) = pending {
            tracing::info!(pod = %key, %reason, "canceled deletion of pod");
            self.event(key, pending.uid, CANCELLING);
        }
        self.report(&report);
        match step {
            Step::Keep => {
                self.caches.evictions.forget(key);
                Ok(None)
            }
            Step::Start { pending, left } => {
                self.caches.evictions.remember(key, pending);
                Ok(Some(left))
            }
            Step::Wait { left } => Ok(Some(left)),
            Step::Evict(eviction) => {
                self.evict(key, eviction).await?;
                // The deletion may have taken longer than the wait before the next write.
                self.report(&report);
                Ok(None)
            }
        }
    }

    /// Remembers a due deletion that the brake delays: somebody may remove the taint meanwhile.
    pub(crate) fn hold(&self, key: &Key, plan: Plan) {
        if let Step::Evict(eviction) = plan.step {
            self.caches.evictions.remember(key, pending(&eviction, !eviction.announce));
        }
        self.report(&plan.report);
    }

    /// The deletion is pending until it succeeds, so one event announces it, however often it is retried. The event comes
    /// after the first write, which finds out whether the pod is still there.
    ///
    /// Upstream: `addConditionAndDeletePod`, `pkg/controller/devicetainteviction/device_taint_eviction.go`.
    async fn evict(&self, key: &Key, eviction: Eviction) -> anyhow::Result<()> {
        self.caches.evictions.remember(key, pending(&eviction, !eviction.announce));
        let after = pending(&eviction, true);
        let Eviction { pod, due, rules, announce, suspect: _ } = eviction;
        let (uid, now) = (pod.metadata.uid, self.ctx.now());
        let control = self.ctx.for_key(key, uid);
        let mut exists = true;
        if let Some(body) = marked_status(&pod, now) {
            let patched = control.patch(&PODS, key, uid, Patch::strategic(&body).on_status()).await;
            exists = patched.unless_absent().context("cannot mark pod")?.is_some();
        }
        let mut is_deleted = false;
        if exists {
            if announce {
                self.event(key, uid, MARKING);
            }
            self.caches.evictions.remember(key, after);
            // A conflict is an error: the name may belong to another pod by now.
            let deleted = control.delete(&PODS, key, &DeleteOptions::of(uid)).await;
            is_deleted = deleted.unless_absent().context("cannot delete pod")?.is_some();
        }
        self.caches.evictions.forget(key);
        if is_deleted {
            tracing::info!(pod = %key, %due, "deleted pod for a taint of its devices");
            self.metrics.observe(due.timestamp(), self.ctx.now());
            // A count for a rule that is gone would stay forever.
            let existing =
                rules.iter().filter(|(rule, uid)| self.caches.rules.get_with_uid("", rule.name(), *uid).is_some());
            existing.for_each(|(_, uid)| self.caches.evicted.count(*uid));
        }
        Ok(())
    }

    /// Has the conditions of these rules written, once more pods may have changed.
    fn report(&self, rules: &[Key]) {
        for rule in rules {
            self.rules.add_after(rule, RULE_STATUS_PERIOD, "the next write of its condition");
        }
    }

    /// Posts an event. As upstream's, it names no version of the pod.
    fn event(&self, pod: &Key, uid: Uid, message: &str) {
        let resource_version = ResourceVersion::default();
        let about = ObjectReference { resource: PODS, key: pod.clone(), uid, resource_version };
        self.ctx.event(PlannedEvent::normal(about, DEVICE_TAINT_MANAGER_EVICTION, message.to_owned()));
    }
}

fn pending(eviction: &Eviction, is_announced: bool) -> Pending {
    let Eviction { pod, due, rules, announce: _, suspect: _ } = eviction;
    let rules = rules.iter().map(|(rule, _)| rule.clone()).collect();
    Pending { uid: pod.metadata.uid, due: *due, rules, is_announced }
}

/// Applies the condition of a rule.
pub(crate) async fn write_condition(
    ctx: &ControllerContext,
    rule: &DeviceTaintRule,
    condition: RuleCondition,
) -> anyhow::Result<()> {
    let (key, uid) = (&rule.metadata.key, rule.metadata.uid);
    let (status, reason) = (condition.status, condition.reason);
    let patch = Patch::apply(FIELD_MANAGER, &Configuration::new(key.name(), condition)).on_status();
    let patched = ctx.for_key(key, uid).patch(&DEVICE_TAINT_RULES, key, uid, patch).await;
    if patched.unless_gone().context("cannot apply the condition EvictionInProgress")?.is_some() {
        tracing::info!(device_taint_rule = %key, status, reason, "applied condition EvictionInProgress");
    }
    Ok(())
}

/// The applied fields: one condition of the status.
#[derive(Debug, Serialize)]
pub struct Configuration<'a> {
    metadata: Name<'a>,
    status: Status,
}

#[derive(Debug, Serialize)]
struct Name<'a> {
    name: &'a str,
}

#[derive(Debug, Serialize)]
struct Status {
    conditions: [RuleCondition; 1],
}

impl<'a> Configuration<'a> {
    pub fn new(name: &'a str, condition: RuleCondition) -> Self {
        let status = Status { conditions: [condition] };
        Self { metadata: Name { name }, status }
    }
}
