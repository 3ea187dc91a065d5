//! Reads one Job: from the cache, and before it is deleted from the apiserver.
//!
//! The two reads are the two stages of a sync: the first finds out cheaply that there is nothing to do yet, the second
//! that the time to live was not changed meanwhile. Left out: the Job's pods.

use std::sync::Arc;

use anyhow::Context;
use shared::api::object::Key;
use shared::api::resource::JOBS;
use shared::runtime::cache::Cache;
use shared::runtime::control::Control;
use shared::runtime::informer::{Informer, InformerBuilder};

use crate::objects::Job;

/// The observation of one Job.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// One state of it.
    pub job: Arc<Job>,
}

/// The caches of this operator.
pub struct Caches {
    /// All Jobs.
    pub jobs: Arc<Cache<Job>>,
}

/// The informers that fill the caches.
pub(crate) struct Informers {
    pub(crate) jobs: Informer<Job>,
}

impl Caches {
    /// Empty caches, and the informers that fill them.
    pub(crate) fn new() -> (Self, Informers) {
        let jobs = InformerBuilder::new().build();
        (Self { jobs: jobs.cache() }, Informers { jobs })
    }

    /// Reads the Job of this key, as it was last seen; none if it is gone.
    pub fn observe(&self, key: &Key) -> Option<Observed> {
        self.jobs.get(key).map(|job| Observed { job })
    }
}

/// The Job as it is; none if it is gone.
pub(crate) async fn live_job(control: &Control, key: &Key) -> anyhow::Result<Option<Observed>> {
    match control.get(&JOBS, key).await {
        Ok(job) => Ok(Some(Observed { job: Arc::new(job) })),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error).context("read the Job anew"),
    }
}
