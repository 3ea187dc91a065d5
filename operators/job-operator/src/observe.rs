//! Reads one Job, its pods and its memory from the caches; a pod that is not watched, and a Job that may not be cached
//! yet, are read live.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Context;
use jiff::Timestamp;
use shared::api::object::{Key, Uid};
use shared::api::resource::{JOBS, PODS};
use shared::controllers::claims::Claims;
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};
use shared::transport::api_error::ResultExt;
use shared::transport::client::Accept;
use shared::working::control::{Control, Selection};
use shared::working::expectations::{Expectations, Outstanding};

use crate::memory::Memory;
use crate::memory::backoff::BackoffRecord;
use crate::objects::pod::Pod;
use crate::objects::{CONTROLLER_UID, Job};

pub struct Caches {
    pub jobs: Arc<Cache<Job>>,
    /// Pods with the label [`CONTROLLER_UID`], and all pods in the namespaces of Jobs that select others.
    pub pods: Arc<Cache<Pod>>,
    /// The owners of pods, and those that may adopt them.
    pub claims: Claims<Job, Pod>,
    pub memory: Arc<Memory>,
}

pub struct Informers {
    pub(crate) jobs: Informer<Job>,
    pub(crate) pods: Informer<Pod>,
}

#[derive(Clone, Debug)]
pub struct Observed {
    pub job: Arc<Job>,
    /// The pods it controls, in any phase, and those of its namespace without a controller.
    pub pods: Vec<Arc<Pod>>,
    /// Creations and deletions that the cache has not seen.
    pub outstanding: Option<Outstanding>,
    /// Pods whose tracking finalizer this process has removed, unseen by the cache.
    pub released: BTreeSet<Uid>,
    /// The failures since the last success that this process has seen.
    pub backoff: BackoffRecord,
}

/// A pod that may have lost the Job which counts it.
#[derive(Clone, Debug)]
pub struct OrphanPod {
    pub pod: Arc<Pod>,
    /// Its Job, if it exists; read live if the cache could not tell.
    pub job: Option<Arc<Job>>,
    /// Whether the pod is cached, so that the sync of its Job sees it.
    pub is_cached: bool,
    /// Whether the cache of Jobs is as new as the pod, and so would have its Job.
    pub is_job_cached: bool,
}

impl Caches {
    pub fn new() -> (Self, Informers) {
        let (claims, jobs, pods) = Claims::new(InformerBuilder::new(), InformerBuilder::new().labels(CONTROLLER_UID));
        let caches = Self { jobs: jobs.cache(), pods: pods.cache(), claims, memory: Arc::default() };
        (caches, Informers { jobs, pods })
    }

    /// Reads the Job of this key; none if it is gone.
    ///
    /// Upstream: the first half of `syncJob`, `pkg/controller/job/job_controller.go`.
    pub fn observe(&self, expectations: &Expectations, key: &Key, now: Timestamp) -> Option<Observed> {
        let job = self.jobs.get(key)?;
        // Read before the pods, so that a creation seen in between is not counted twice.
        let outstanding = expectations.outstanding(key, now);
        let released = self.memory.released(key, job.metadata.uid);
        let backoff = self.memory.backoff(key, job.metadata.uid);
        let pods = self.claims.candidates(&job);
        Some(Observed { job, pods, outstanding, released, backoff })
    }

    /// Reads the pod of this key, and its Job; none if the pod is gone. A pod that is not cached is read live, because
    /// it may have lost its label, or its Job and with it the watch of pods.
    ///
    /// Upstream: the first half of `syncOrphanPod`, `pkg/controller/job/job_controller.go`.
    pub(crate) async fn observe_orphan(&self, control: &Control, key: &Key) -> anyhow::Result<Option<OrphanPod>> {
        if let Some(cached) = self.cached_orphan(key) {
            return Ok(Some(cached));
        }
        let live = control.get::<Pod>(&PODS, key).await.unless_absent().context("cannot read the pod")?;
        Ok(live.map(|pod| self.orphan(Arc::new(pod), false)))
    }

    /// The pod of this key and its Job, as cached.
    pub(crate) fn cached_orphan(&self, key: &Key) -> Option<OrphanPod> {
        self.pods.get(key).map(|pod| self.orphan(pod, true))
    }

    fn orphan(&self, pod: Arc<Pod>, is_cached: bool) -> OrphanPod {
        // Read before the Job, so that one added in between is found.
        let is_job_cached = self.jobs.progress().resource_version >= pod.metadata.resource_version;
        let job = self.claims.resolve(&pod);
        OrphanPod { pod, job, is_cached, is_job_cached }
    }

    /// Lists the pods that have the finalizer and that no sync of a Job sees.
    pub(crate) async fn unseen_pods(&self, control: &Control, each: impl Fn(&Key) + Send) -> anyhow::Result<()> {
        let look = |pod: Pod| {
            if self.is_unseen(&pod) {
                each(&pod.metadata.key);
            }
        };
        let listed = control.list_each(&PODS, "", Selection::default(), Accept::Metadata, look).await;
        listed.context("cannot list pods with finalizers")
    }

    fn is_unseen(&self, pod: &Pod) -> bool {
        let is_labelled = pod.metadata.labels.get(CONTROLLER_UID).is_some();
        let is_seen = |job: &Arc<Job>| {
            job.external_controller().is_some() || (job.counts_pods() && (is_labelled || job.selects_unlabelled()))
        };
        pod.has_tracking_finalizer() && !self.claims.resolve(pod).as_ref().is_some_and(is_seen)
    }
}

/// Reads the pod's Job live. A Job of the same name and another uid does not count.
pub(crate) async fn live_job(control: &Control, observed: OrphanPod) -> anyhow::Result<OrphanPod> {
    let Some(owner) = observed.pod.job() else { return Ok(observed) };
    let key = Key::new(observed.pod.metadata.namespace(), &owner.name);
    let live = control.get::<Job>(&JOBS, &key).await.unless_absent().context("cannot read the Job")?;
    let job = live.filter(|live| live.metadata.uid == owner.uid).map(Arc::new);
    Ok(OrphanPod { job, ..observed })
}
