//! A pod that never got ready, and that one of the template of now would replace, is evicted where the StatefulSet asks
//! for that.
//!
//! Upstream leaves two cases to people: in order its sync ends at the first pod that is not ready, whatever revision it
//! is of (k/k#67250), and with `maxUnavailable` a pod that never was available counts as one that the update has taken
//! down (k/k#137409). In neither does the update get to the pod, and nothing else ever changes it.
//! Left out: disruption budgets, to which the apiserver holds an eviction.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use shared::api::object::{Key, Uid};
use shared::runtime::decisions::{self, Reasoned};

use super::reason::{Reason, Until, Why};
use super::stateful_set_utils::{is_of_current, ordinal};
use super::{Draft, is_available, rolling};
use crate::objects::UpdateType;
use crate::objects::pod::Pod;

/// How long until an eviction that a budget has refused is tried again, as `kubectl drain` does it: budgets are not
/// followed.
pub const BUDGET_RETRY: Duration = Duration::from_secs(5);
/// The purpose of that timer.
pub const BUDGET: &str = "a disruption budget";

/// The end of a pod, as far as disruption budgets let it go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Eviction {
    /// Its namespace and name.
    pub key: Key,
    /// Its identity: another pod of the same name stays.
    pub uid: Uid,
    /// Why.
    pub why: Why,
}

/// The stage after an eviction that a budget has refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The budget's words.
    pub reason: Reason,
}

impl Reasoned for Refused {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason } = self;
        write!(f, "nothing ({reason})")
    }
}

impl fmt::Display for Eviction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, uid: _, why } = self;
        write!(f, "evict {} [{why}]", key.name())
    }
}

/// In order the pod that is looked at is the one that all others wait for. Gives a break where it is replaced.
pub(super) fn plan_in_order(draft: &mut Draft<'_>, pod: &Arc<Pod>) -> ControlFlow<()> {
    if !is_stuck(draft, pod) || !draft.observed.set.replaces_stuck_pods() {
        return ControlFlow::Continue(());
    }
    plan_replacement(draft, pod);
    if draft.stuck.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// In parallel the pod of the highest ordinal goes first, as in an update; and none while the update goes on by itself,
/// or pods are still made.
pub(super) fn plan_in_parallel(draft: &mut Draft<'_>) {
    let places = draft.places;
    let wanted = i64::from(draft.spec().replicas);
    let is_complete = i64::try_from(places.replicas.len()).is_ok_and(|present| present >= wanted);
    if !draft.outdated.is_empty() || !is_complete {
        return;
    }
    let Some(pod) = places.replicas.values().copied().rev().find(|pod| is_stuck(draft, pod)) else { return };
    if draft.observed.set.replaces_stuck_pods() {
        plan_replacement(draft, pod);
    }
}

/// Whether another pod of its name would be of the template of now, and this one has never been of any use.
fn is_stuck(draft: &Draft<'_>, pod: &Pod) -> bool {
    let set = &*draft.observed.set;
    pod.was_never_ready
        && !pod.phase.is_terminal()
        && !is_going(draft, pod)
        && pod.revision() != &*draft.revisions.update
        && set.spec.update_strategy.type_ == UpdateType::RollingUpdate
        && !is_of_current(set, ordinal(pod))
}

fn is_going(draft: &Draft<'_>, pod: &Pod) -> bool {
    pod.metadata.is_being_deleted() || draft.is_deleted(pod)
}

/// Plans the eviction, or notes the pod that has to get further before it.
fn plan_replacement(draft: &mut Draft<'_>, pod: &Arc<Pod>) {
    if let Some((other, until)) = obstacle(draft, pod) {
        return draft.wait(other, until);
    }
    draft.wait(pod, Until::Replaced);
    let (key, uid) = (pod.metadata.key.clone(), pod.metadata.uid);
    draft.stuck = Some(Eviction { key, uid, why: Why::Stuck(draft.revisions.update.clone()) });
}

/// The pod on whose account this one may not be replaced yet.
///
/// One is replaced at a time: one that goes has to be gone, and one of the template of now to be available, which shows
/// that the template is better. All others that are not available count against `maxUnavailable`, but for those that
/// are stuck as well: the update has not taken them down. In order pods that are missing or have ended wait for this
/// one.
fn obstacle<'a>(draft: &Draft<'a>, pod: &Pod) -> Option<(&'a Arc<Pod>, Until)> {
    let (spec, places) = (draft.spec(), draft.places);
    let mut room = if draft.gates.max_unavailable { rolling::max_unavailable(spec) } else { 1 };
    let others = places.replicas.values().copied().rev();
    for other in others.filter(|other| other.metadata.uid != pod.metadata.uid) {
        if is_going(draft, other) {
            return Some((other, Until::Gone));
        }
        if is_available(other, spec, draft.now) || is_stuck(draft, other) || other.phase.is_terminal() {
            continue;
        }
        room -= 1;
        if room <= 0 || other.revision() == &*draft.revisions.update {
            return Some((other, Until::Available));
        }
    }
    None
}
