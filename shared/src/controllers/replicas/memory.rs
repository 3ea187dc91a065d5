//! The memory between syncs: pods of each owner that have ended without having been seen to run, and the rejections
//! found among them.
//!
//! Pods that have ended are not followed: one only leaves the cache, and a live read tells how it has ended. Nothing is
//! kept about an owner whose pods run. The memory is lost with this process, and counting starts again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

use crate::api::intern::Text;
use crate::api::object::{Key, Meta, Uid};
use crate::api::pod::Phase;
use crate::api::pod::rejection::{ContainerStatuses, rejection};
use crate::api::resource::PODS;
use crate::api::template::PodTemplate;
use crate::api::time::Time;
use crate::controllers::rejections::{FORGOTTEN_AFTER, FREE, Rejection, Rejections};
use crate::controllers::replicas::ReplicaOwner;
use crate::controllers::replicas::pod::Pod;
use crate::following::cache::Change;
use crate::transport::clock::left_of;

/// How many of an owner's pods are read at a time: one more than may be rejected without back-off.
const READ_MAX: usize = FREE + 1;
/// The most owners that are remembered; others have no back-off.
const OWNERS_MAX: usize = 4096;

/// A pod that has ended, or was deleted without grace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub key: Key,
    pub uid: Uid,
    pub seen: Timestamp,
}

#[derive(Debug)]
pub struct EndedPod {
    pub metadata: Meta,
    /// The reason for which its node has rejected it, if it did.
    pub rejection: Option<Text>,
}

crate::view!(EndedPod, PODS);

impl<'de> Deserialize<'de> for EndedPod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Raw {
            metadata: Meta,
            #[serde(default)]
            status: RawStatus,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct RawStatus {
            phase: Phase,
            reason: String,
            container_statuses: ContainerStatuses,
            init_container_statuses: ContainerStatuses,
        }
        let Raw { metadata, status } = Raw::deserialize(deserializer)?;
        let RawStatus { phase, reason, container_statuses, init_container_statuses } = status;
        let rejection = rejection(phase, &reason, &[container_statuses, init_container_statuses]);
        Ok(Self { metadata, rejection })
    }
}

/// The rejected pods of all owners of a kind, as far as they are known.
#[derive(Debug, Default)]
pub struct Rejected(Mutex<BTreeMap<Uid, OfOwner>>);

#[derive(Clone, Debug, Default)]
struct OfOwner {
    /// The template when this was last looked at.
    template: Option<PodTemplate>,
    /// When it was seen to be another one. Rejections of pods from before that say nothing.
    edited: Option<Timestamp>,
    rejections: Rejections,
    /// The pods that are not read yet.
    ended: Vec<Ended>,
}

impl Rejected {
    fn owners(&self) -> MutexGuard<'_, BTreeMap<Uid, OfOwner>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a pod of an owner of this kind that has left without having run.
    pub fn pod_changed<T: ReplicaOwner>(&self, change: &Change<'_, Pod>, now: Timestamp) {
        let Change::Deleted(pod) = change else { return };
        let meta = &pod.metadata;
        let Some(owner) = meta.controller.as_ref().filter(|owner| owner.kind == *T::RESOURCE.kind) else { return };
        if !may_be_rejected(pod) {
            return;
        }
        let mut owners = self.owners();
        if owners.len() >= OWNERS_MAX && !owners.contains_key(&owner.uid) {
            owners.retain(|_, known| !known.is_over(now));
            if owners.len() >= OWNERS_MAX {
                return;
            }
        }
        let known = owners.entry(owner.uid).or_default();
        if known.ended.len() < READ_MAX {
            known.ended.push(Ended { key: meta.key.clone(), uid: meta.uid, seen: now });
        }
    }

    pub fn owner_changed<T: ReplicaOwner>(&self, change: &Change<'_, T>) {
        if let Change::Deleted(owner) = change {
            self.owners().remove(&owner.meta().uid);
        }
    }

    /// The rejections that count for an owner with these pods, and the pods that are still to be read.
    pub fn of<T: ReplicaOwner>(&self, owner: &T, pods: &[Arc<Pod>], now: Timestamp) -> (Rejections, Vec<Ended>) {
        let Some(mut known) = self.owners().get(&owner.meta().uid).cloned() else { return Default::default() };
        known.settle(owner, pods, now);
        (known.rejections, known.ended)
    }

    /// Forgets what does not count any more.
    pub fn settle<T: ReplicaOwner>(&self, owner: &T, pods: &[Arc<Pod>], now: Timestamp) {
        let (mut owners, uid) = (self.owners(), owner.meta().uid);
        let Some(known) = owners.get_mut(&uid) else { return };
        known.settle(owner, pods, now);
        if known.is_over(now) {
            owners.remove(&uid);
        }
    }

    pub fn note<T: ReplicaOwner>(
        &self,
        owner: &T,
        read: &[Ended],
        rejections: Vec<Rejection>,
        now: Timestamp,
    ) -> Option<Rejection> {
        let mut owners = self.owners();
        let known = owners.get_mut(&owner.meta().uid)?;
        known.ended.retain(|pod| !read.contains(pod));
        // If the clock was set back since, the edit says nothing about pods that come now.
        let edited = known.edited.filter(|edited| *edited <= now).map(Time::of);
        let mut begun = None;
        for rejection in rejections.into_iter().filter(|rejection| rejection.created >= edited) {
            if known.rejections.note(&rejection, now) && begun.is_none() {
                begun = Some(rejection);
            }
        }
        begun
    }
}

/// One that was on a node and did not run. What was deleted is not looked at, unless it went without grace.
fn may_be_rejected(pod: &Pod) -> bool {
    let has_not_run = matches!(pod.phase, Phase::Pending | Phase::Other);
    has_not_run && !pod.node.is_empty() && !pod.metadata.is_being_deleted()
}

impl OfOwner {
    fn settle<T: ReplicaOwner>(&mut self, owner: &T, pods: &[Arc<Pod>], now: Timestamp) {
        let (uid, template) = (owner.meta().uid, &owner.spec().template);
        if self.template.as_ref().is_some_and(|known| known != template) {
            *self = Self { edited: Some(now), ..Self::default() };
        }
        self.template = Some(template.clone());
        let is_running = |pod: &&Arc<Pod>| pod.phase == Phase::Running && pod.metadata.is_controlled_by(uid);
        let runs = |_: &str| pods.iter().filter(is_running).filter_map(|pod| pod.metadata.creation).max();
        self.rejections.forget(runs, now);
        // More of the same would only be counted.
        let is_delaying = self.rejections.is_delaying(now);
        self.ended.retain(|pod| !is_delaying && left_of(FORGOTTEN_AFTER, pod.seen, now).is_some());
    }

    fn is_over(&self, now: Timestamp) -> bool {
        let Self { template: _, edited, rejections, ended } = self;
        let is_past = |at: Timestamp| left_of(FORGOTTEN_AFTER, at, now).is_none();
        let is_forgotten = || {
            let mut left = rejections.clone();
            left.forget(|_| None, now);
            left.is_empty()
        };
        edited.is_none_or(is_past) && ended.iter().all(|pod| is_past(pod.seen)) && is_forgotten()
    }
}

#[cfg(test)]
mod tests;
