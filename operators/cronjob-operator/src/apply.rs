//! Executes a plan: deletes, records events, creates; and writes the status.
//!
//! Decides nothing. A delete that fails ends nothing but a replacement; whatever is gone already is as good as deleted.
//! A Job whose deletion has an event gets none that it is over.
//! Left out: upstream's live read before a replacement, for the uid in the delete says which Job is meant.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context;
use jiff::Timestamp;
use serde::Serialize;
use shared::api::object::{Key, Kind, ObjectReference, Uid};
use shared::api::resource::JOBS;
use shared::api::time::Time;
use shared::runtime::api_error::ApiError;
use shared::runtime::control::{Control, DeleteOptions, Preconditions, Propagation};
use shared::runtime::events::{EventType, Recorder};

use crate::metrics::CreationSkew;
use crate::objects::{CRON_JOBS, CronJobStatus, Job, JobReference, reasons};
use crate::observe::Observed;
use crate::plan::{Deletion, Leave, Left, Plan, PlannedEvent, Run, Start};

/// Writes for CronJobs.
pub(crate) struct Writer {
    pub(crate) control: Control,
    pub(crate) recorder: Recorder,
    pub(crate) skew: CreationSkew,
}

/// The result of executing a plan.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The Jobs that are active no more.
    pub left: BTreeSet<Uid>,
    /// The Job that runs now.
    pub started: Option<Started>,
    /// When to look again; none if only a change can make a difference.
    pub next: Option<Duration>,
    /// The error that ended the sync; the writes before it count.
    pub error: Option<anyhow::Error>,
}

/// A Job that was started in this sync, or in an earlier one that could not write it into the status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// When it was due.
    pub due: Timestamp,
    /// Which it is.
    pub job: JobReference,
}

impl Writer {
    /// Executes the plan.
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
        for PlannedEvent { kind, reason, message } in notices {
            self.recorder.event(&about, kind, reason, message);
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
                (reasons::SAW_COMPLETED_JOB, format!("Saw completed job: {name}, condition: {condition}"))
            }
            Left::Missing => (reasons::MISSING_JOB, format!("Active job went missing: {name}")),
        };
        self.recorder.event(about, EventType::Normal, reason, message);
    }

    /// Gives whether the Job was there.
    ///
    /// Upstream: `deleteJob`, `pkg/controller/cronjob/cronjob_controllerv2.go`.
    async fn delete(&self, about: &ObjectReference, Deletion { key, uid }: &Deletion) -> Result<bool, ApiError> {
        let options = DeleteOptions::of(*uid).with_dependents(Propagation::Background);
        match self.control.for_key(&about.key, about.uid).delete(&JOBS, key, &options).await {
            Ok(()) => {
                let message = format!("Deleted job {}", key.name());
                self.recorder.event(about, EventType::Normal, reasons::SUCCESSFUL_DELETE, message);
                Ok(true)
            }
            // Not a conflict: if a webhook has refused in these words, the Job still runs.
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => {
                let message = format!("Deleted job: {error}");
                self.recorder.event(about, EventType::Warning, reasons::FAILED_DELETE, message);
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
                    let context = format!("could not replace job {}", deletion.key);
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

    /// None if there is a Job of that name.
    async fn create(&self, about: &ObjectReference, name: &str, body: String) -> anyhow::Result<Option<Created>> {
        let (namespace, control) = (about.key.namespace(), self.control.for_key(&about.key, about.uid));
        let error = match control.create(&JOBS, namespace, body.into()).await {
            Ok(written) => {
                let message = format!("Created job {name}");
                self.recorder.event(about, EventType::Normal, reasons::SUCCESSFUL_CREATE, message);
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
            self.recorder.event(about, EventType::Warning, reasons::FAILED_CREATE, message);
        }
        Err(error).with_context(|| format!("create job {name}"))
    }

    /// The Job that was created in a sync which did not get to say so; none if it is somebody else's, or if the status
    /// goes on to list it.
    async fn find(&self, observed: &Observed, left: &BTreeSet<Uid>, key: &Key) -> anyhow::Result<Option<Created>> {
        let job: Job = self.control.get(&JOBS, key).await.with_context(|| format!("read the existing job {key}"))?;
        if !job.metadata.is_controlled_by(observed.cron_job.metadata.uid) {
            tracing::warn!(job = %key, "a job of another owner has the name of the one that is due");
            return Ok(None);
        }
        let uid = job.metadata.uid;
        let is_known = observed.cron_job.has_active(uid) && !left.contains(&uid);
        Ok((!is_known).then(|| Created { job: JobReference::new(&job.metadata), creation: None }))
    }

    /// Writes the status of the state that was observed; the server refuses (409) if there is a newer one. A patch, so
    /// that nothing else of the object need be known.
    pub(crate) async fn write_status(&self, observed: &Observed, status: &CronJobStatus) -> anyhow::Result<()> {
        let meta = &observed.cron_job.metadata;
        let preconditions = Preconditions { uid: meta.uid, resource_version: Some(meta.resource_version) };
        let status = Status {
            active: &status.active,
            last_schedule_time: status.last_schedule_time,
            last_successful_time: status.last_successful_time,
        };
        let control = self.control.for_key(&meta.key, meta.uid);
        control.patch_status(&CRON_JOBS, &meta.key, preconditions, &status).await?;
        Ok(())
    }
}

/// A Job that runs now.
struct Created {
    job: JobReference,
    /// When it was created, if this sync did it.
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
