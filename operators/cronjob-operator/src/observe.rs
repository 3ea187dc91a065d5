//! Reads what one sync decides on: the CronJob, its Jobs, and, where the cache and the status disagree, the apiserver.
//!
//! Left out: the Jobs' pods.

pub mod edits;

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Context;
use jiff::Timestamp;
use shared::api::intern::Text;
use shared::api::object::{Key, Uid};
use shared::api::resource::JOBS;
use shared::runtime::cache::{Cache, IndexId, IndexValue};
use shared::runtime::control::Control;

use crate::objects::{CRON_JOBS, CronJob, Job};
use edits::Edits;

/// All that one sync decides on.
#[derive(Debug)]
pub struct Observed {
    /// The CronJob.
    pub cron_job: Arc<CronJob>,
    /// The Jobs of its namespace whose controller has its name, by key.
    pub jobs: Vec<Arc<Job>>,
    /// The active Jobs that are not there any more.
    pub missing: BTreeSet<Uid>,
    /// When its schedule was edited, if this process saw it.
    pub edited_at: Option<Timestamp>,
}

impl Observed {
    /// The Jobs that are this very CronJob's.
    pub fn owned(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.iter().filter(|job| job.metadata.is_controlled_by(self.cron_job.metadata.uid))
    }
}

/// Where to read.
pub(crate) struct Sources {
    pub(crate) cron_jobs: Arc<Cache<CronJob>>,
    pub(crate) jobs: Arc<Cache<Job>>,
    /// The Jobs by [`controller_name`].
    pub(crate) by_controller_name: IndexId,
    pub(crate) control: Control,
    pub(crate) edits: Arc<Edits>,
}

/// The value under which a Job is found by its controller's name.
///
/// Upstream: `getJobsToBeReconciled`, `pkg/controller/cronjob/cronjob_controllerv2.go`.
pub(crate) fn controller_name(namespace: &str, name: &str) -> IndexValue {
    IndexValue::Text(Text::new(Key::new(namespace, name).as_str()))
}

impl Sources {
    /// Observes one CronJob; none if it is gone.
    pub(crate) async fn observe(&self, key: &Key) -> anyhow::Result<Option<Observed>> {
        let Some(cached) = self.cron_jobs.get(key) else { return Ok(None) };
        let jobs = self.jobs.by_index(self.by_controller_name, &controller_name(key.namespace(), key.name()));
        let cron_job = self.newest(cached, &jobs).await?;
        let missing = self.missing(&cron_job, &jobs).await?;
        let edited_at = self.edits.last(cron_job.metadata.uid);
        Ok(Some(Observed { cron_job, jobs, missing, edited_at }))
    }

    /// The CronJob as the cache has it, unless one of its Jobs runs and this state does not list it: then the state at
    /// the apiserver, if that lists the Job.
    ///
    /// Upstream swaps the state in the middle of a sync and then writes the old one; here the whole sync has one state.
    async fn newest(&self, cached: Arc<CronJob>, jobs: &[Arc<Job>]) -> anyhow::Result<Arc<CronJob>> {
        let uid = cached.metadata.uid;
        let is_unlisted = |state: &CronJob, job: &Job| {
            job.metadata.is_controlled_by(uid) && job.ended.is_none() && !state.has_active(job.metadata.uid)
        };
        if !jobs.iter().any(|job| is_unlisted(&cached, job)) {
            return Ok(cached);
        }
        let live: CronJob =
            self.control.get(&CRON_JOBS, &cached.metadata.key).await.context("read the CronJob anew")?;
        anyhow::ensure!(live.metadata.uid == uid, "the CronJob was replaced by another of its name");
        let lists_more = jobs.iter().any(|job| is_unlisted(&cached, job) && !is_unlisted(&live, job));
        Ok(if lists_more { Arc::new(live) } else { cached })
    }

    async fn missing(&self, cron_job: &CronJob, jobs: &[Arc<Job>]) -> anyhow::Result<BTreeSet<Uid>> {
        let mut missing = BTreeSet::new();
        for active in &cron_job.status.active {
            if jobs.iter().any(|job| job.metadata.uid == active.uid) {
                continue;
            }
            match self.control.get::<Job>(&JOBS, &active.key()).await {
                Ok(job) if job.metadata.uid == active.uid => {}
                Ok(_) => drop(missing.insert(active.uid)),
                Err(error) if error.is_not_found() => drop(missing.insert(active.uid)),
                Err(error) => return Err(error).with_context(|| format!("read the active Job {}", active.name)),
            }
        }
        Ok(missing)
    }
}
