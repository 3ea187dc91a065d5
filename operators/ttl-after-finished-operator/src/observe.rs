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

use crate::objects::Job;

/// Where to read.
pub(crate) struct Sources {
    pub(crate) jobs: Arc<Cache<Job>>,
    pub(crate) control: Control,
}

impl Sources {
    /// The Job as it was last seen.
    pub(crate) fn cached(&self, key: &Key) -> Option<Arc<Job>> {
        self.jobs.get(key)
    }

    /// The Job as it is.
    pub(crate) async fn live(&self, key: &Key) -> anyhow::Result<Option<Job>> {
        match self.control.get(&JOBS, key).await {
            Ok(job) => Ok(Some(job)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error).context("read the Job anew"),
        }
    }
}
