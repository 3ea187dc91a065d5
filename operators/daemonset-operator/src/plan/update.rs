//! Old pods are replaced, node by node: without a surge an old one goes and the next sync makes a new one, with a surge
//! a new one comes beside it.
//!
//! Nodes are looked at by name. Left out: the strategy `OnDelete`, for which nothing is planned here.
//!
//! Upstream: `rollingUpdate`, `pkg/controller/daemon/update.go`.

use std::sync::Arc;

use jiff::Timestamp;
use shared::api::int_or_percent::{IntOrPercent, Rounding};
use shared::api::intern::Text;

use super::nodes::Eligibility;
use super::places::{OnNode, Places};
use super::reasons::Why;
use super::{Draft, Plan};
use crate::objects::pod::Pod;
use crate::objects::{DaemonSet, UpdateType};
use crate::observe::Observed;

/// How many nodes may be in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many may have a new pod beside an available old one.
    pub surge: i32,
    /// How many may be without an available pod.
    pub unavailable: i32,
}

/// The limits for a DaemonSet that is for so many nodes. Nobody may ask for neither of them.
///
/// Upstream: `updatedDesiredNodeCounts`, and `SurgeCount` and `UnavailableCount`,
/// `pkg/controller/daemon/util/daemonset_util.go`.
pub fn limits(set: &DaemonSet, desired: i32) -> Result<Limits, String> {
    let strategy = &set.spec.update_strategy;
    let scaled = |name: &str, value: &IntOrPercent| {
        value.of(desired, Rounding::Up).map_err(|error| format!("invalid value for {name}: {error}"))
    };
    let unavailable = match (strategy.type_, &strategy.rolling_update) {
        (UpdateType::RollingUpdate, Some(rolling)) => match &rolling.max_unavailable {
            Some(value) => scaled("MaxUnavailable", value)?,
            None => return Err("invalid value for MaxUnavailable: nil value for IntOrString".to_owned()),
        },
        (UpdateType::RollingUpdate, None) | (UpdateType::OnDelete | UpdateType::Other, _) => 0,
    };
    let surge = strategy.max_surge().map_or(Ok(0), |value| scaled("MaxSurge", value))?;
    let is_neither = desired > 0 && unavailable == 0 && surge == 0;
    Ok(Limits { surge, unavailable: if is_neither { 1 } else { unavailable } })
}

/// The pods of one node that are not being deleted.
enum Kept<'a> {
    /// At most one of each kind.
    Pair { new: Option<&'a Arc<Pod>>, old: Option<&'a Arc<Pod>> },
    /// More, of which [`super::manage`] keeps the right ones.
    Excess,
}

impl<'a> Kept<'a> {
    /// Upstream: `findUpdatedPodsOnNode`.
    fn of(draft: &Draft<'_>, pods: &[&'a Arc<Pod>]) -> Self {
        let (mut new, mut old) = (None, None);
        let generation = draft.observed.set.template_generation;
        for pod in pods.iter().copied().filter(|pod| !pod.metadata.is_being_deleted()) {
            let kind = if pod.is_updated(draft.hash, generation) { &mut new } else { &mut old };
            if kind.replace(pod).is_some() {
                return Self::Excess;
            }
        }
        Self::Pair { new, old }
    }
}

/// Plans which old pods go, and which nodes get a new one beside an old one.
pub fn rolling_update(observed: &Observed, places: &Places<'_>, hash: &str, now: Timestamp) -> Result<Plan, String> {
    let mut draft = Draft::new(observed, places, hash, now);
    let desired = i32::try_from(places.iter().filter(OnNode::runs).count()).unwrap_or(i32::MAX);
    let limits = limits(&observed.set, desired)?;
    if limits.surge == 0 {
        draft.replace(places, limits.unavailable);
    } else {
        draft.surge(places, limits.surge, desired);
    }
    Ok(draft.finish())
}

/// The places that count: those that the DaemonSet is for, and those where it has pods.
fn counted<'a, 'p>(places: &'p Places<'a>) -> impl Iterator<Item = OnNode<'a, 'p>> {
    places.iter().filter(|place| place.runs() || !place.pods.is_empty())
}

/// The first of them, as far as there is room.
fn within<T>(candidates: Vec<T>, room: i32) -> impl Iterator<Item = T> {
    candidates.into_iter().take(usize::try_from(room).unwrap_or(0))
}

impl Draft<'_> {
    /// Old pods that are not available go at once, for they serve nobody; of the others as many as may be unavailable.
    fn replace(&mut self, places: &Places<'_>, max_unavailable: i32) {
        let (mut unavailable, mut candidates) = (0_i32, Vec::new());
        for place in counted(places) {
            let is_available = match Kept::of(self, place.pods) {
                Kept::Excess | Kept::Pair { new: None, old: None } | Kept::Pair { new: Some(_), old: Some(_) } => false,
                Kept::Pair { new: Some(new), old: None } => self.is_available(new),
                Kept::Pair { new: None, old: Some(old) } if self.is_available(old) => {
                    candidates.push(old);
                    true
                }
                Kept::Pair { new: None, old: Some(old) } => {
                    self.delete(old, Why::Outdated);
                    false
                }
            };
            if !is_available {
                unavailable = unavailable.saturating_add(1);
            }
        }
        for pod in within(candidates, max_unavailable.saturating_sub(unavailable)) {
            self.delete(pod, Why::Outdated);
        }
    }

    /// Old pods that are not available get a new one beside them at once, of the others as many as the surge allows.
    /// One on a node that the DaemonSet is for no more stays until enough others are available.
    fn surge(&mut self, places: &Places<'_>, max_surge: i32, desired: i32) {
        let (mut surging, mut available) = (0_i32, 0_i32);
        let (mut candidates, mut deferred) = (Vec::new(), Vec::new());
        for place in counted(places) {
            let Kept::Pair { new, old } = Kept::of(self, place.pods) else {
                surging = surging.saturating_add(1);
                continue;
            };
            let is_available = old.or(new).is_some_and(|pod| self.is_available(pod));
            available = available.saturating_add(i32::from(is_available));
            match (new, old) {
                (_, None) => {}
                (Some(new), Some(old)) if self.is_available(new) => self.delete(old, Why::Replaced),
                (Some(_), Some(_)) => surging = surging.saturating_add(1),
                (None, Some(old)) => {
                    // Its node may have gone a moment ago, and the pod goes, too.
                    let Some((node, eligibility)) = place.node else {
                        // It makes no room for the end of another one.
                        available = available.saturating_sub(i32::from(is_available));
                        continue;
                    };
                    match (is_available, *eligibility == Eligibility::Runs) {
                        (true, true) => candidates.push(node.name()),
                        (true, false) => deferred.push(old),
                        (false, true) => self.create(node.name(), Why::Surge),
                        (false, false) => self.delete(old, Why::Outdated),
                    }
                }
            }
        }
        for old in within(deferred, available.saturating_sub(desired)) {
            self.delete(old, Why::Outdated);
        }
        for node in within::<Text>(candidates, max_surge.saturating_sub(surging)) {
            self.create(node, Why::Surge);
        }
    }
}
