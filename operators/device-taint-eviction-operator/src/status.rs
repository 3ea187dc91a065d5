//! The condition that a pod gets before it is deleted, and the condition EvictionInProgress of a DeviceTaintRule.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use shared::api::condition::{FALSE, TRUE};
use shared::api::time::Time;

use crate::objects::{COMPLETED, DELETION_BY_DEVICE_TAINT_MANAGER, EVICTION_IN_PROGRESS, NO_EFFECT, Pod};
use crate::observe::ObservedRule;
use crate::plan::RuleReason;

const PODS_PENDING_EVICTION: &str = "PodsPendingEviction";
const NOT_STARTED: &str = "NotStarted";
const OTHER_EFFECT: &str = "OtherEffect";

/// The condition EvictionInProgress as it is applied. Upstream sends an empty message too, and owns that field then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleCondition {
    #[serde(rename = "type")]
    pub type_: &'static str,
    pub status: &'static str,
    pub reason: &'static str,
    pub message: String,
    pub observed_generation: i64,
    pub last_transition_time: Time,
}

/// The strategic merge patch of `/status`; none if the pod already has the condition.
///
/// Upstream: `addConditionAndDeletePod`, `pkg/controller/devicetainteviction/device_taint_eviction.go`.
pub fn marked_status(pod: &Pod, now: Timestamp) -> Option<Value> {
    DELETION_BY_DEVICE_TAINT_MANAGER.patch(pod.disruption, None, now)
}

/// The condition to apply; none if the rule has it already, or if it is not written now.
///
/// Upstream: `maybeUpdateRuleStatus`, in the same file.
pub fn next_condition(observed: &ObservedRule, reason: &RuleReason, now: Timestamp) -> Option<RuleCondition> {
    let ObservedRule { rule, pods: _, published: _, allocated: _, evicted } = observed;
    let (status, reason, mut message) = match *reason {
        RuleReason::WrittenJustNow | RuleReason::Simulated | RuleReason::CompletedBefore => return None,
        RuleReason::Pending { pods, namespaces } => (TRUE, PODS_PENDING_EVICTION, pending(pods, namespaces)),
        RuleReason::NothingPending => (FALSE, if *evicted > 0 { COMPLETED } else { NOT_STARTED }, String::new()),
        RuleReason::WouldEvict { published, allocated, pods, namespaces } => {
            (FALSE, NO_EFFECT, simulated((published, allocated), pods, namespaces))
        }
        RuleReason::OtherEffect => (FALSE, OTHER_EFFECT, "Eviction only happens for the NoExecute effect.".to_owned()),
    };
    if *evicted > 0 {
        let space = if message.is_empty() { "" } else { " " };
        let pods = if *evicted == 1 { "1 pod".to_owned() } else { format!("{evicted} pods") };
        message = format!("{message}{space}{pods} evicted since starting the controller.");
    }
    let generation = rule.metadata.generation;
    let is_same = rule.condition.as_ref().is_some_and(|known| {
        known.status == *status
            && known.reason == *reason
            && *known.message == *message
            && known.observed_generation == generation
    });
    (!is_same).then(|| RuleCondition {
        type_: EVICTION_IN_PROGRESS,
        status,
        reason,
        message,
        observed_generation: generation,
        last_transition_time: Time::of(now),
    })
}

fn pending(pods: usize, namespaces: usize) -> String {
    let need = if pods == 1 { "1 pod needs".to_owned() } else { format!("{pods} pods need") };
    format!("{need} to be evicted in {}.", in_namespaces(namespaces))
}

fn simulated((published, allocated): (usize, usize), pods: usize, namespaces: usize) -> String {
    let devices = |count: usize, which: &str| {
        let devices = if count == 1 { "device" } else { "devices" };
        format!("{count} {which} {devices} selected. ")
    };
    let would = if pods == 1 { "1 pod".to_owned() } else { format!("{pods} pods") };
    format!(
        "{}{}{would} would be evicted in {} if the effect was NoExecute. This information will not be updated again. \
         Recreate the DeviceTaintRule to trigger an update.",
        devices(published, "published"),
        devices(allocated, "allocated"),
        in_namespaces(namespaces),
    )
}

fn in_namespaces(count: usize) -> String {
    if count == 1 { "1 namespace".to_owned() } else { format!("{count} different namespaces") }
}
