//! Reads one CronJob and its Jobs: from the caches, and live if the cache and the status disagree.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Context;
use jiff::Timestamp;
use shared::api::object::{Key, Uid};
use shared::api::resource::JOBS;
use shared::following::cache::{Cache, IndexId, IndexValue};
use shared::following::informer::{Informer, InformerBuilder};
use shared::transport::api_error::ResultExt;
use shared::working::control::Control;

use crate::memory::Edits;
use crate::objects::{CRON_JOBS, CronJob, Job};

#[derive(Debug)]
pub struct Observed {
    pub cron_job: Arc<CronJob>,
    /// The Jobs of its namespace whose controller has its name, by key.
    pub jobs: Vec<Arc<Job>>,
    /// The active Jobs that are gone, by a live read.
    pub missing: BTreeSet<Uid>,
    /// When its schedule was edited, if this process saw it.
    pub edited_at: Option<Timestamp>,
}

impl Observed {
    /// The Jobs whose controller has its uid too.
    pub fn owned(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.iter().filter(|job| job.metadata.is_controlled_by(self.cron_job.metadata.uid))
    }
}

pub struct Caches {
    pub cron_jobs: Arc<Cache<CronJob>>,
    pub jobs: Arc<Cache<Job>>,
    pub jobs_by_controller_name: IndexId,
    pub edits: Edits,
}

pub(crate) struct Informers {
    pub(crate) cron_jobs: Informer<CronJob>,
    pub(crate) jobs: Informer<Job>,
}

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        let (cron_jobs, mut jobs) = (InformerBuilder::new(), InformerBuilder::<Job>::new());
        let jobs_by_controller_name = jobs.index(|job, emit| {
            if let Some(controller) = &job.metadata.controller {
                emit(IndexValue::from(&Key::new(job.metadata.namespace(), &controller.name)));
            }
        });
        let (cron_jobs, jobs) = (cron_jobs.build(), jobs.build());
        let edits = Edits::default();
        let caches = Self { cron_jobs: cron_jobs.cache(), jobs: jobs.cache(), jobs_by_controller_name, edits };
        (caches, Informers { cron_jobs, jobs })
    }

    /// Upstream: `getJobsToBeReconciled`, `pkg/controller/cronjob/cronjob_controllerv2.go`.
    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let cron_job = self.cron_jobs.get(key)?;
        let jobs = self.jobs.by_index(self.jobs_by_controller_name, &key.into());
        let edited_at = self.edits.last(cron_job.metadata.uid);
        Some(Observed { cron_job, jobs, missing: BTreeSet::new(), edited_at })
    }
}

/// Reads live where the status and the cache of Jobs differ: the CronJob, if it does not list one of its running Jobs,
/// and each listed Job that is not cached.
pub(crate) async fn live_where_they_differ(control: &Control, observed: Observed) -> anyhow::Result<Observed> {
    let cron_job = live_cron_job(control, &observed).await?;
    let missing = live_missing(control, &cron_job, &observed.jobs).await?;
    Ok(Observed { cron_job, missing, ..observed })
}

/// The cached CronJob, or if it does not list a running Job, the live one, if that lists the Job.
///
/// Upstream swaps the state in the middle of a sync and then writes the old one; here a sync has one state.
async fn live_cron_job(control: &Control, observed: &Observed) -> anyhow::Result<Arc<CronJob>> {
    let cached = &observed.cron_job;
    let uid = cached.metadata.uid;
    let is_unlisted = |state: &CronJob, job: &Job| job.ended.is_none() && !state.has_active(job.metadata.uid);
    if !observed.owned().any(|job| is_unlisted(cached, job)) {
        return Ok(Arc::clone(cached));
    }
    let live: CronJob = control.get(&CRON_JOBS, &cached.metadata.key).await.context("cannot read the CronJob")?;
    anyhow::ensure!(live.metadata.uid == uid, "the CronJob was deleted and created again");
    let lists_more = observed.owned().any(|job| is_unlisted(cached, job) && !is_unlisted(&live, job));
    Ok(if lists_more { Arc::new(live) } else { Arc::clone(cached) })
}

/// The Jobs that the CronJob lists as active and that do not exist.
async fn live_missing(control: &Control, cron_job: &CronJob, jobs: &[Arc<Job>]) -> anyhow::Result<BTreeSet<Uid>> {
    let mut missing = BTreeSet::new();
    for active in &cron_job.status.active {
        if jobs.iter().any(|job| job.metadata.uid == active.uid) {
            continue;
        }
        let live = control.get::<Job>(&JOBS, &active.key()).await.unless_absent();
        let live = live.with_context(|| format!("cannot read the active Job {}", active.name))?;
        if live.is_none_or(|job| job.metadata.uid != active.uid) {
            missing.insert(active.uid);
        }
    }
    Ok(missing)
}
