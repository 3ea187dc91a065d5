//! The effects of a change on the memory and on the metrics: observed releases of pods, and uncounted pods.

use std::sync::Arc;

use shared::api::intern::Text;
use shared::api::object::{Key, Uid};
use shared::following::cache::Change;

use crate::memory::Memory;
use crate::metrics::JobMetrics;
use crate::objects::Job;
use crate::objects::pod::Pod;
use crate::observe::Caches;

/// One consequence of a change for the memory or the metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrackingEffect {
    ReleaseObserved(Key, Uid),
    Forget(Key),
    /// A new Job is managed by this external controller.
    External(Text),
    /// An ended pod got (true) or lost the tracking finalizer.
    Tracked(bool),
}

#[derive(Clone)]
pub(in crate::controller) struct TrackingEffects {
    pub(in crate::controller) memory: Arc<Memory>,
    pub(in crate::controller) metrics: JobMetrics,
}

impl TrackingEffects {
    pub(in crate::controller) fn carry_out(&self, effects: Vec<TrackingEffect>) {
        for effect in effects {
            match effect {
                TrackingEffect::ReleaseObserved(key, pod) => self.memory.release_observed(&key, pod),
                TrackingEffect::Forget(key) => self.memory.forget(&key),
                TrackingEffect::External(controller) => self.metrics.count_external(&controller),
                TrackingEffect::Tracked(is_added) => self.metrics.count_tracked(is_added),
            }
        }
    }
}

pub fn tracked_job_changed(change: Change<'_, Job>) -> Vec<TrackingEffect> {
    match change {
        Change::Added(job) => {
            let external = job.external_controller().map(|name| TrackingEffect::External(Text::new(name)));
            external.into_iter().collect()
        }
        Change::Updated { .. } => Vec::new(),
        Change::Deleted(job) => vec![TrackingEffect::Forget(job.metadata.key.clone())],
    }
}

impl Caches {
    /// Upstream: `finalizerRemovalObserved`'s callers, `pkg/controller/job/job_controller.go`.
    pub fn tracked_pod_changed(&self, change: Change<'_, Pod>) -> Vec<TrackingEffect> {
        let waits = |pod: &Pod| pod.phase.is_terminal() && pod.has_tracking_finalizer();
        let (before, after) = match change {
            Change::Added(pod) => (false, waits(pod)),
            Change::Updated { old, new } => (waits(old), waits(new)),
            Change::Deleted(pod) => (waits(pod), false),
        };
        let tracked = (before != after).then_some(TrackingEffect::Tracked(after));
        let uid = change.latest().metadata.uid;
        let released = |job: Arc<Job>| TrackingEffect::ReleaseObserved(job.metadata.key.clone(), uid);
        tracked.into_iter().chain(self.releasing_jobs(change).into_iter().map(released)).collect()
    }

    /// The Jobs for which this change shows a pod without its finalizer.
    fn releasing_jobs(&self, change: Change<'_, Pod>) -> Vec<Arc<Job>> {
        let counting = |pod: &Pod| self.counting_job(pod).into_iter().collect();
        match change {
            Change::Deleted(pod) => counting(pod),
            Change::Added(pod) | Change::Updated { old: _, new: pod } if pod.has_tracking_finalizer() => Vec::new(),
            Change::Added(pod) if pod.metadata.is_being_deleted() => counting(pod),
            Change::Added(_) => Vec::new(),
            Change::Updated { old, new } if old.is_alike(new) => Vec::new(),
            Change::Updated { old: _, new } if new.metadata.is_being_deleted() => counting(new),
            Change::Updated { old, new } => {
                let has_other_owner = old.metadata.controller != new.metadata.controller;
                let before = if has_other_owner { self.claims.resolve(old) } else { None };
                before.into_iter().chain(self.claims.resolve(new)).collect()
            }
        }
    }
}
