//! Executes a plan: deletes Jobs, posts events, creates a Job; and writes the status.
//!
//! A failed delete only prevents a replacement. A Job with an event about its deletion gets none about its end.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context;
use jiff::Timestamp;
use serde::Serialize;
use shared::api::object::{Key, Kind, ObjectReference, Uid};
use shared::api::resource::JOBS;
use shared::api::time::Time;
use shared::transport::api_error::{ApiError, ResultExt};
use shared::working::context::ControllerContext;
use shared::working::control::{DeleteOptions, Preconditions, Propagation};
use shared::working::events::PlannedEvent;

use crate::metrics::CreationSkew;
use crate::objects::{CRON_JOBS, CronJobStatus, Job, JobReference, events};
use crate::observe::Observed;
use crate::plan::{Deletion, Leave, Left, Plan, Run, Start};

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
    pub(crate) skew: CreationSkew,
}

#[derive(Debug, Default)]
pub struct Outcome {
    pub left: BTreeSet<Uid>,
    pub started: Option<Started>,
    /// When to sync again; none if only a change can make a difference.
    pub next: Option<Duration>,
    /// The error that ended the sync; the status has the writes before it.
    pub error: Option<anyhow::Error>,
}

/// A Job that was started in this sync, or in an earlier one that could not write the status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    pub due: Timestamp,
    pub job: JobReference,
}

impl Writer {
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let Plan { cleanup, leave, notices, run, reason: _, next } = plan;
        let about = observed.cron_job.reference();
        let mut outcome = Outcome { next, ..Outcome::default() };
        let mut deleted = BTreeSet::new();
        for deletion in cleanup {
            match self.delete(&about, &deletion).await {
                Ok(true) => drop(deleted.insert(deletion.uid)),
                Ok(false) | Err(ApiError::Shadow) => {}
                Err(error) => tracing::warn!(job = %deletion.key, %error, "cannot delete an old job"),
            }
        }
        for left in leave {
            outcome.left.insert(left.uid);
            if !deleted.contains(&left.uid) {
                self.record_left(&about, left);
            }
        }
        for event in notices {
            self.ctx.event(event);
        }
        match run {
            Run::Start(start) => self.start(observed, &about, start, &mut outcome).await,
            Run::Nothing => {}
        }
        outcome
    }

    fn record_left(&self, about: &ObjectReference, Leave { uid: _, name, why }: Leave) {
        let (reason, message) = match why {
            Left::Ended { condition } => {
                (events::SAW_COMPLETED_JOB, format!("Saw completed job: {name}, condition: {condition}"))
            }
            Left::Missing => (events::MISSING_JOB, format!("Active job went missing: {name}")),
        };
        self.ctx.event(PlannedEvent::normal(about.clone(), reason, message));
    }

    /// Returns whether the Job existed.
    ///
    /// Upstream: `deleteJob`, `pkg/controller/cronjob/cronjob_controllerv2.go`.
    async fn delete(&self, about: &ObjectReference, Deletion { key, uid }: &Deletion) -> Result<bool, ApiError> {
        let options = DeleteOptions::of(*uid).with_dependents(Propagation::Background);
        match self.ctx.for_key(&about.key, about.uid).delete(&JOBS, key, &options).await.unless_gone() {
            Ok(Some(())) => {
                let message = format!("Deleted job {}", key.name());
                self.ctx.event(PlannedEvent::normal(about.clone(), events::SUCCESSFUL_DELETE, message));
                Ok(true)
            }
            Ok(None) => Ok(false),
            // A conflict too: a webhook may answer one, and then the Job still runs.
            Err(error) => {
                let message = format!("Deleted job: {error}");
                self.ctx.event(PlannedEvent::warning(about.clone(), events::FAILED_DELETE, message));
                Err(error)
            }
        }
    }

    async fn start(&self, observed: &Observed, about: &ObjectReference, start: Start, outcome: &mut Outcome) {
        let Start { due, name, body, replace } = start;
        for deletion in &replace {
            match self.delete(about, deletion).await {
                Ok(_) => drop(outcome.left.insert(deletion.uid)),
                Err(error) => {
                    let context = format!("cannot replace job {}", deletion.key);
                    outcome.error = Some(anyhow::Error::from(error).context(context));
                    return;
                }
            }
        }
        let created = match self.create(about, &name, body).await {
            Ok(None) => self.find(observed, &outcome.left, &Key::new(about.key.namespace(), &name)).await,
            created => created,
        };
        match created {
            Ok(Some(created)) => {
                if let Some(creation) = created.creation {
                    self.skew.observe(creation, Time::of(due));
                }
                outcome.started = Some(Started { due, job: created.job });
            }
            Ok(None) => {}
            Err(error) => outcome.error = Some(error),
        }
    }

    /// None if a Job of that name exists.
    async fn create(&self, about: &ObjectReference, name: &str, body: String) -> anyhow::Result<Option<Created>> {
        let (namespace, control) = (about.key.namespace(), self.ctx.for_key(&about.key, about.uid));
        let error = match control.create(&JOBS, namespace, body.into()).await {
            Ok(written) => {
                let message = format!("Created job {name}");
                self.ctx.event(PlannedEvent::normal(about.clone(), events::SUCCESSFUL_CREATE, message));
                let job = JobReference::new(&written.metadata);
                return Ok(Some(Created { job, creation: written.metadata.creation }));
            }
            Err(error) => error,
        };
        if error.is_already_exists() {
            return Ok(None);
        }
        if !error.is_namespace_terminating() {
            let message = format!("Error creating job: {error}");
            self.ctx.event(PlannedEvent::warning(about.clone(), events::FAILED_CREATE, message));
        }
        Err(error).with_context(|| format!("cannot create job {name}"))
    }

    /// The Job that an earlier sync created without writing the status; none if it has another owner, or if the status
    /// still lists it.
    async fn find(&self, observed: &Observed, left: &BTreeSet<Uid>, key: &Key) -> anyhow::Result<Option<Created>> {
        let job: Job = self.ctx.get(&JOBS, key).await.with_context(|| format!("cannot read the existing job {key}"))?;
        if !job.metadata.is_controlled_by(observed.cron_job.metadata.uid) {
            tracing::warn!(job = %key, "the name of the due job is taken by another owner's job");
            return Ok(None);
        }
        let uid = job.metadata.uid;
        let is_known = observed.cron_job.has_active(uid) && !left.contains(&uid);
        Ok((!is_known).then(|| Created { job: JobReference::new(&job.metadata), creation: None }))
    }

    /// Writes the status under the observed version; the apiserver answers 409 if there is a newer one.
    pub(crate) async fn write_status(&self, observed: &Observed, status: &CronJobStatus) -> anyhow::Result<()> {
        let meta = &observed.cron_job.metadata;
        let preconditions = Preconditions::of(meta);
        let status = Status {
            active: &status.active,
            last_schedule_time: status.last_schedule_time,
            last_successful_time: status.last_successful_time,
        };
        let control = self.ctx.for_key(&meta.key, meta.uid);
        control.patch_status(&CRON_JOBS, &meta.key, preconditions, &status).await?;
        Ok(())
    }
}

struct Created {
    job: JobReference,
    /// When it was created, if this sync created it.
    creation: Option<Time>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    active: &'a [JobReference],
    #[serde(skip_serializing_if = "Option::is_none")]
    last_schedule_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_successful_time: Option<Time>,
}
