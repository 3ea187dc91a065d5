//! One pod on every node that the DaemonSet is for, and none elsewhere.
//!
//! With a surge a node has two for a while: the oldest old one, as long as it is ready, and the oldest new one, until
//! it is available.
//! Left out: beginning to replace old pods, which is [`super::update`]'s.
//!
//! Upstream: `manage`, `podsShouldBeOnNode` and `getUnscheduledPodsWithoutNode`,
//! `pkg/controller/daemon/daemon_controller.go`.

use std::sync::Arc;

use jiff::Timestamp;
use shared::api::pod::{Phase, PodView};

use super::nodes::Eligibility;
use super::places::Places;
use super::reasons::Why;
use super::{Draft, Plan};
use crate::memory::Pause;
use crate::objects::node::Node;
use crate::objects::pod::Pod;
use crate::observe::Observed;

/// Plans which pods are missing, and which are too many.
pub fn manage(observed: &Observed, places: &Places<'_>, hash: &str, now: Timestamp) -> Plan {
    let mut draft = Draft::new(observed, places, hash, now);
    for place in places.iter() {
        let Some((node, eligibility)) = place.node else { continue };
        match eligibility {
            Eligibility::Runs if place.pods.is_empty() => draft.create(node.name(), Why::Missing),
            Eligibility::Runs => draft.keep_one(node, place.pods, true),
            Eligibility::Stays(_) => draft.keep_one(node, place.pods, false),
            Eligibility::Leaves(misfit) => {
                for pod in staying(place.pods) {
                    draft.delete(pod, Why::Misplaced(misfit.clone()));
                }
            }
        }
    }
    draft.delete_without_node(places);
    draft.finish()
}

/// Those that are not being deleted.
fn staying<'a>(pods: &[&'a Arc<Pod>]) -> impl Iterator<Item = &'a Arc<Pod>> {
    pods.iter().copied().filter(|pod| !pod.metadata.is_being_deleted())
}

impl Draft<'_> {
    /// Of the pods of a node, in order, those that have ended go, and those that are too many.
    fn keep_one(&mut self, node: &Node, pods: &[&Arc<Pod>], runs: bool) {
        let mut pause = self.observed.failures.get(node.metadata.name()).copied();
        let mut running = Vec::new();
        for pod in staying(pods) {
            match pod.phase() {
                Phase::Failed => pause = self.end_failed(pod, pause),
                Phase::Succeeded => self.delete(pod, Why::Succeeded),
                Phase::Pending | Phase::Running | Phase::Unknown | Phase::Other => running.push(pod),
            }
        }
        if !self.observed.set.spec.allows_surge() {
            for pod in running.into_iter().skip(1) {
                self.delete(pod, Why::Duplicate);
            }
        } else if running.is_empty() && runs {
            self.create(node.name(), Why::Missing);
        } else if running.len() > 1 {
            self.keep_two(&running);
        }
    }

    /// A kubelet that refuses pods would be in a race with this operator: each failed pod stays longer than the one
    /// before. Gives the wait that holds from now on.
    fn end_failed(&mut self, pod: &Arc<Pod>, pause: Option<Pause>) -> Option<Pause> {
        if let Some(left) = pause.and_then(|pause| pause.left(self.now)) {
            self.look_after(left);
            return pause;
        }
        let next = Pause::next(pause, self.now);
        self.delete(pod, Why::Failed(next));
        Some(next)
    }

    /// Here only the hash tells new from old, as upstream.
    fn keep_two(&mut self, running: &[&Arc<Pod>]) {
        let (mut new, mut old) = (None, None);
        for pod in running {
            let kept = if pod.has_hash(self.hash) { &mut new } else { &mut old };
            match kept {
                None => *kept = Some(*pod),
                Some(_) => self.delete(pod, Why::Duplicate),
            }
        }
        let (Some(new), Some(old)) = (new, old) else { return };
        if !old.readiness.is_ready() {
            self.delete(old, Why::NotReady);
        } else if self.is_available(new) {
            self.delete(old, Why::Replaced);
        }
    }

    /// The garbage collector of pods ends those that were bound to a node that is gone, and no others.
    fn delete_without_node(&mut self, places: &Places<'_>) {
        for place in places.iter().filter(|place| place.node.is_none()) {
            for pod in staying(place.pods).filter(|pod| !pod.is_bound()) {
                self.delete(pod, Why::NodeGone);
            }
        }
    }
}
