//! Reads from the caches, and from what this process remembers, all that one sync decides on.
//!
//! Left out: live reads. The one there is, before an adoption, is part of adopting.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use shared::api::object::{Key, Uid};
use shared::controllers::claims::Claims;
use shared::runtime::cache::Cache;
use shared::runtime::expectations::{Expectations, Outstanding};
use shared::runtime::informer::{Informer, InformerBuilder};

use crate::apply::memory::Memory;
use crate::objects::Job;
use crate::objects::pod::Pod;
use crate::plan::backoff::BackoffRecord;

/// The caches of this operator.
pub struct Caches {
    /// All Jobs.
    pub jobs: Arc<Cache<Job>>,
    /// All pods, those of no Job too.
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

impl Caches {
    /// Empty caches, and the informers that fill them.
    pub fn new() -> (Self, Informers) {
        let (claims, jobs, pods) = Claims::new(InformerBuilder::new(), InformerBuilder::new());
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
}
