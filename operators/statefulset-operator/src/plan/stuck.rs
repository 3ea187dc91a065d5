//! A pod that never got ready, and that one of the template of now would replace, is evicted where the StatefulSet asks
//! for that.
//!
//! Upstream leaves two cases to people: in order its sync ends at the first pod that is not ready, whatever revision it
//! is of (k/k#67250), and with `maxUnavailable` a pod that never was available counts as one that the update has taken
//! down (k/k#137409). In neither does the update get to the pod, and nothing else ever changes it.
//! Left out: disruption budgets, to which the apiserver holds an eviction.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use shared::api::object::{Key, Uid};
use shared::working::decisions::{self, Reasoned};

use super::places::Known;
use super::pods::is_of_current;
use super::reasons::{Reason, Until, Why};
use super::rolling::is_going;
use super::{Wait, rolling};
use crate::objects::UpdateType;
use crate::objects::names::ordinal;
use crate::objects::pod::Pod;

/// How long until an eviction that a budget has refused is tried again, as `kubectl drain` does it: budgets are not
/// followed.
pub const BUDGET_RETRY: Duration = Duration::from_secs(5);
pub const BUDGET: &str = "a disruption budget";

/// The end of a pod, as far as disruption budgets let it go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Eviction {
    pub key: Key,
    /// Its identity: another pod of the same name stays.
    pub uid: Uid,
    pub why: Why,
}

/// The stage after an eviction that a budget has refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
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

/// The replacement of a stuck pod, or the pod that has to get further before it.
#[derive(Default)]
pub(super) struct Replacement {
    pub(super) eviction: Option<Eviction>,
    pub(super) waits: Option<Wait>,
}

/// In order, all others wait for the pod that is looked at.
pub(super) fn in_order(known: &Known<'_>, pod: &Pod) -> Replacement {
    if is_stuck(known, pod, &BTreeSet::new()) { replace(known, pod, &BTreeSet::new()) } else { Replacement::default() }
}

/// In parallel, the pod of the highest ordinal is replaced first, as in an update; none while the update goes on by
/// itself, or pods are still created.
pub(super) fn in_parallel(known: &Known<'_>, deleted: &BTreeSet<Uid>, is_update_over: bool) -> Replacement {
    let replicas = &known.places.replicas;
    let wanted = i64::from(known.spec().replicas);
    let is_complete = i64::try_from(replicas.len()).is_ok_and(|present| present >= wanted);
    let mut from_highest = replicas.values().rev();
    match from_highest.find(|pod| is_stuck(known, pod, deleted)) {
        Some(pod) if is_update_over && is_complete => replace(known, pod, deleted),
        Some(_) | None => Replacement::default(),
    }
}

/// Whether another pod of its name would be of the current template, and this one has never been of any use.
fn is_stuck(known: &Known<'_>, pod: &Pod, deleted: &BTreeSet<Uid>) -> bool {
    let set = &*known.observed.set;
    pod.was_never_ready
        && !pod.phase.is_terminal()
        && !is_going(pod, deleted)
        && !known.is_updated(pod)
        && set.spec.update_strategy.type_ == UpdateType::RollingUpdate
        && !is_of_current(set, ordinal(pod))
}

fn replace(known: &Known<'_>, pod: &Pod, deleted: &BTreeSet<Uid>) -> Replacement {
    if !known.observed.set.replaces_stuck_pods() {
        return Replacement::default();
    }
    if let Some(wait) = obstacle(known, pod, deleted) {
        return Replacement { eviction: None, waits: Some(wait) };
    }
    let (key, uid) = (pod.metadata.key.clone(), pod.metadata.uid);
    let eviction = Eviction { key, uid, why: Why::Stuck(known.revisions.update.clone()) };
    Replacement { eviction: Some(eviction), waits: Some(Wait::on(pod, Until::Replaced)) }
}

/// The pod because of which this one may not be replaced yet.
///
/// One is replaced at a time: one that goes has to be gone, and one of the current template has to be available, which
/// shows that the template is better. All others that are not available count against `maxUnavailable`, except stuck
/// ones: the update has not taken them down. In order, pods that are missing or have ended wait for this one.
fn obstacle(known: &Known<'_>, pod: &Pod, deleted: &BTreeSet<Uid>) -> Option<Wait> {
    let mut room = if known.gates.max_unavailable { rolling::max_unavailable(known.spec()) } else { 1 };
    let others = known.places.replicas.values().rev();
    for other in others.filter(|other| other.metadata.uid != pod.metadata.uid) {
        if is_going(other, deleted) {
            return Some(Wait::on(other, Until::Gone));
        }
        if known.is_available(other) || is_stuck(known, other, deleted) || other.phase.is_terminal() {
            continue;
        }
        room -= 1;
        if room <= 0 || known.is_updated(other) {
            return Some(Wait::on(other, Until::Available));
        }
    }
    None
}
