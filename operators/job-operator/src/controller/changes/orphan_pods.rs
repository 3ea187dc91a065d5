//! Which pods are synced because no Job may count them any more.

use shared::api::object::Key;
use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::Job;
use crate::objects::pod::Pod;
use crate::observe::Caches;

impl Caches {
    /// The pods of a Job that was deleted or has finished.
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

    /// A pod that vanished with its finalizer for no known reason: it may still exist without its label.
    pub fn vanished<'a>(&self, change: Change<'a, Pod>) -> Option<&'a Key> {
        let Change::Deleted(pod) = change else { return None };
        let is_explained = match self.counting_job(pod) {
            // All pods of its namespace are watched.
            Some(job) if job.selects_unlabelled() => true,
            Some(job) => self.memory.is_releasing(&job.metadata.key, pod.metadata.uid),
            // Its own sync began when its Job ended, and it existed for as long as it had the finalizer.
            None => pod.metadata.is_being_deleted(),
        };
        (pod.has_tracking_finalizer() && !is_explained).then_some(&pod.metadata.key)
    }

    /// A changed pod that no cached Job counts. Its sync finds out whether the Job is gone, or not cached yet.
    pub fn orphan_pod_changed(&self, change: Change<'_, Pod>) -> Vec<Effect> {
        let pod = match change {
            Change::Deleted(_) => return Vec::new(),
            Change::Updated { old, new } if old.is_alike(new) => return Vec::new(),
            // Another event follows: the end of its Job, or of the pod.
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
