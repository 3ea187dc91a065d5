//! Reads from the caches, and from what this process remembers, all that one sync decides on; a pod that no watch shows,
//! and the Job of a pod where the cache may not have it yet, are read live.
//!
//! Left out: the live read before an adoption, which is part of adopting.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Context;
use jiff::Timestamp;
use shared::api::object::{Key, Uid};
use shared::api::resource::{JOBS, PODS};
use shared::controllers::claims::Claims;
use shared::runtime::cache::Cache;
use shared::runtime::client::Accept;
use shared::runtime::control::{Control, Selection};
use shared::runtime::expectations::{Expectations, Outstanding};
use shared::runtime::informer::{Informer, InformerBuilder};

use crate::apply::memory::Memory;
use crate::objects::pod::Pod;
use crate::objects::{CONTROLLER_UID, Job};
use crate::plan::backoff::BackoffRecord;

/// The caches of this operator.
pub struct Caches {
    /// All Jobs.
    pub jobs: Arc<Cache<Job>>,
    /// Pods with the label [`CONTROLLER_UID`], and in the namespaces of Jobs that select others, all.
    pub pods: Arc<Cache<Pod>>,
    /// Whose a pod is, or may become.
    pub claims: Claims<Job, Pod>,
}

/// What is followed.
pub struct Informers {
    pub(crate) jobs: Informer<Job>,
    pub(crate) pods: Informer<Pod>,
}

/// One Job, and the pods that are its own or may become so.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The Job.
    pub job: Arc<Job>,
    /// The pods it controls, in any phase, and those of its namespace without a controller.
    pub pods: Vec<Arc<Pod>>,
    /// Creations and deletions that the cache has not shown yet.
    pub outstanding: Option<Outstanding>,
    /// The pods whose tracking finalizer this process has removed, where the cache has not shown that yet.
    pub released: BTreeSet<Uid>,
    /// The failures since the last success, as far as this process has seen them.
    pub backoff: BackoffRecord,
}

/// A pod that may have lost the Job which counts it.
#[derive(Clone, Debug)]
pub struct OrphanPod {
    /// The pod.
    pub pod: Arc<Pod>,
    /// Its Job, if there is one; in a plan, as just read where the cache could not say.
    pub job: Option<Arc<Job>>,
    /// Whether the cache has the pod, so that the sync of its Job sees it.
    pub is_cached: bool,
    /// Whether the cache of Jobs has come as far as the pod's last change, and so has its Job if there is one.
    pub is_job_cached: bool,
}

impl Caches {
    /// Empty caches, and the informers that fill them.
    pub fn new() -> (Self, Informers) {
        let (claims, jobs, pods) = Claims::new(InformerBuilder::new(), InformerBuilder::new().labels(CONTROLLER_UID));
        (Self { jobs: jobs.cache(), pods: pods.cache(), claims }, Informers { jobs, pods })
    }

    /// Observes the Job of this key; `None` if there is none.
    ///
    /// Upstream: the first half of `syncJob`, `pkg/controller/job/job_controller.go`.
    pub fn observe(&self, expectations: &Expectations, memory: &Memory, key: &Key, now: Timestamp) -> Option<Observed> {
        let job = self.jobs.get(key)?;
        // Before the pods: an expectation that is met in between then counts at the next sync, and not twice in this one.
        let outstanding = expectations.outstanding(key, now);
        let released = memory.released(key, job.metadata.uid);
        let backoff = memory.backoff(key, job.metadata.uid);
        let pods = self.claims.candidates(&job);
        Some(Observed { job, pods, outstanding, released, backoff })
    }

    /// Observes the pod of this key, and its Job; `None` if there is no such pod. That the cache has none says little: the
    /// pod may have lost its label, or pods may not be followed any more, now that its Job is gone. So it is read live.
    ///
    /// Upstream: the first half of `syncOrphanPod`, `pkg/controller/job/job_controller.go`.
    pub(crate) async fn observe_orphan(&self, control: &Control, key: &Key) -> anyhow::Result<Option<OrphanPod>> {
        if let Some(cached) = self.cached_orphan(key) {
            return Ok(Some(cached));
        }
        match control.get::<Pod>(&PODS, key).await {
            Ok(pod) => Ok(Some(self.orphan(Arc::new(pod), false))),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error).context("cannot look whether the pod is there"),
        }
    }

    /// The pod of this key and its Job, as far as the caches have them.
    pub(crate) fn cached_orphan(&self, key: &Key) -> Option<OrphanPod> {
        self.pods.get(key).map(|pod| self.orphan(pod, true))
    }

    fn orphan(&self, pod: Arc<Pod>, is_cached: bool) -> OrphanPod {
        // Before the Job: one that is added in between is found.
        let is_job_cached = self.jobs.progress().resource_version >= pod.metadata.resource_version;
        let job = self.claims.resolve(&pod);
        OrphanPod { pod, job, is_cached, is_job_cached }
    }

    /// Reads live which pods of the cluster have the finalizer and are seen by no sync of a Job.
    pub(crate) async fn unseen_pods(&self, control: &Control, each: impl Fn(&Key) + Send) -> anyhow::Result<()> {
        let look = |pod: Pod| {
            if self.is_unseen(&pod) {
                each(&pod.metadata.key);
            }
        };
        let listed = control.list_each(&PODS, "", Selection::default(), Accept::Metadata, look).await;
        listed.context("cannot look for finalizers")
    }

    fn is_unseen(&self, pod: &Pod) -> bool {
        let is_labelled = pod.metadata.labels.get(CONTROLLER_UID).is_some();
        let is_seen = |job: &Arc<Job>| {
            job.external_controller().is_some() || (job.counts_pods() && (is_labelled || job.selects_unlabelled()))
        };
        pod.has_tracking_finalizer() && !self.claims.resolve(pod).as_ref().is_some_and(is_seen)
    }
}

/// The same, with the Job as the apiserver has it. Another Job of the name is another pod's.
pub(crate) async fn live_job(control: &Control, observed: OrphanPod) -> anyhow::Result<OrphanPod> {
    let Some(owner) = observed.pod.job() else { return Ok(observed) };
    let job = match control.get::<Job>(&JOBS, &Key::new(observed.pod.metadata.namespace(), &owner.name)).await {
        Ok(live) => Some(live).filter(|live| live.metadata.uid == owner.uid).map(Arc::new),
        Err(error) if error.is_not_found() => None,
        Err(error) => return Err(error).context("cannot look whether the Job is there"),
    };
    Ok(OrphanPod { job, ..observed })
}
