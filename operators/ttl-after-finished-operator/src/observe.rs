//! Reads one Job: from the cache, and before its deletion live, in case its time to live was changed.

use std::sync::Arc;

use anyhow::Context;
use shared::api::object::Key;
use shared::api::resource::JOBS;
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};
use shared::transport::api_error::ResultExt;
use shared::working::control::Control;

use crate::objects::Job;

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub job: Arc<Job>,
}

pub struct Caches {
    pub jobs: Arc<Cache<Job>>,
}

pub(crate) struct Informers {
    pub(crate) jobs: Informer<Job>,
}

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        let jobs = InformerBuilder::new().build();
        (Self { jobs: jobs.cache() }, Informers { jobs })
    }

    pub fn observe(&self, key: &Key) -> Option<Observed> {
        self.jobs.get(key).map(|job| Observed { job })
    }
}

pub(crate) async fn live_job(control: &Control, key: &Key) -> anyhow::Result<Option<Observed>> {
    let job = control.get(&JOBS, key).await.unless_absent().context("cannot read the Job")?;
    Ok(job.map(|job| Observed { job: Arc::new(job) }))
}
