//! Which pods are looked at because no Job may count them any more.
//!
//! Left out: whether a Job counts them all the same, which a sync finds out ([`crate::observe`]).

use shared::runtime::cache::Change;
use shared::runtime::effect::Effect;
use shared::runtime::queue::Cause;

use crate::objects::Job;
use crate::objects::pod::Pod;
use crate::observe::Caches;

impl Caches {
    /// Which pods nobody will count any more once a Job has changed.
    pub fn orphaning_job_changed(&self, change: Change<'_, Job>) -> Vec<Effect> {
        match change {
            Change::Deleted(job) => self.orphans_of(job),
            Change::Updated { old: _, new } if new.status.is_finished() => self.orphans_of(new),
            Change::Added(_) | Change::Updated { .. } => Vec::new(),
        }
    }

    fn orphans_of(&self, job: &Job) -> Vec<Effect> {
        self.claims.owned(job).iter().filter_map(|pod| orphan(pod)).collect()
    }

    /// Whether nobody counts a pod that has changed. Its Job may be gone, or not listed yet, which its sync finds out.
    pub fn orphan_pod_changed(&self, change: Change<'_, Pod>) -> Vec<Effect> {
        let pod = match change {
            Change::Deleted(_) => return Vec::new(),
            Change::Updated { old, new } if old.is_alike(new) => return Vec::new(),
            // The end of its Job, or the pod's own, tells of it.
            Change::Updated { old: _, new }
                if !new.metadata.is_being_deleted() && new.metadata.controller.is_some() =>
            {
                return Vec::new();
            }
            Change::Added(pod) | Change::Updated { old: _, new: pod } => pod,
        };
        if self.counting_job(pod).is_some() { Vec::new() } else { orphan(pod).into_iter().collect() }
    }
}

fn orphan(pod: &Pod) -> Option<Effect> {
    pod.has_tracking_finalizer().then(|| Effect::Enqueue(pod.metadata.key.clone(), Cause::Event))
}
