//! Executes the plans of a sync: claims and pods; then the first status and the finalizers; then the last status.

pub(crate) mod orphan;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use serde::Serialize;
use shared::api::object::{Key, Kind, ObjectReference, ResourceVersion, Uid};
use shared::api::owner::Claim;
use shared::api::resource::{JOBS, PODS};
use shared::controllers::pod_control::{FAILED_CREATE, PodControl};
use shared::transport::api_error::{ApiError, ResultExt};
use shared::working::context::ControllerContext;
use shared::working::control::{Claimed, KeyControl, Patch, Preconditions, Written, aggregate, slow_start, together};
use shared::working::events::{EventType, PlannedEvent};
use shared::working::expectations::Expectations;
use shared::working::queue::{Cause, Queue};

use crate::memory::Memory;
use crate::metrics::JobMetrics;
use crate::objects::pod::Pod;
use crate::objects::status::{JobStatus, events};
use crate::objects::{CONTROLLER_UID, JOB_TRACKING_FINALIZER, Job};
use crate::observe::Observed;
use crate::plan::ending::{Ending, JobResult};
use crate::plan::new_pod::{InvalidTemplate, NewPod, NewPods};
use crate::plan::reasons::Reason;
use crate::plan::scale::{PodRef, Surplus};
use crate::plan::tracking::{End, Executed, Suspension, Tracking};
use crate::plan::{Plan, Pods};

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
    pub(crate) pods: PodControl,
    pub(crate) expectations: Arc<Expectations>,
    pub(crate) memory: Arc<Memory>,
    /// Pods that are not watched.
    pub(crate) orphans_queue: Queue,
    pub(crate) metrics: JobMetrics,
}

#[derive(Debug, Default)]
pub struct Outcome {
    /// What the second stage is decided on.
    pub executed: Executed,
    /// When to sync again at the latest, and the purpose.
    pub wake: Option<(Duration, &'static str)>,
    /// The first failure of a creation or deletion. The second stage follows all the same.
    pub failure: Option<anyhow::Error>,
    /// The error of a claim. Nothing else was executed then.
    pub error: Option<anyhow::Error>,
}

/// The result of executing the second stage.
#[derive(Debug)]
pub struct Tracked {
    /// The Job's newest known version.
    pub version: ResourceVersion,
    /// Its status, decided before the finalizers were removed.
    pub status: JobStatus,
    /// Pods that still have the finalizer.
    pub tracked: BTreeSet<Uid>,
    /// How the Job ends once all pods are counted.
    pub end: Option<End>,
    /// The first failure to remove a finalizer.
    pub failure: Option<ApiError>,
    /// The error of the status write. Nothing else was executed then.
    pub error: Option<anyhow::Error>,
}

impl Writer {
    /// Executes a plan: first the claims, and the rest only if all of them succeed.
    ///
    /// Upstream: `getPodsForJob`, `manageJob` and `deleteActivePods`, `pkg/controller/job/job_controller.go`.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let Plan { claim, pods, reason, ending, outstanding: _, wake, counts } = plan;
        let job = &*observed.job;
        if let Err(error) = self.claim(job, claim).await {
            return Outcome { error: Some(error), ..Outcome::default() };
        }
        let mut outcome = match pods {
            Pods::Leave => self.leave(job, reason),
            Pods::Create(new) => self.create_pods(job, &new).await,
            Pods::Delete(surplus) => self.delete_surplus(job, surplus).await,
            Pods::End(pods) => self.delete_all(job, pods).await,
        };
        (outcome.executed.counts, outcome.executed.ending, outcome.wake) = (counts, ending, wake);
        outcome
    }

    async fn claim(&self, job: &Job, claim: Claim<Pod>) -> anyhow::Result<()> {
        let planned = claim.owned.len() + claim.adopt.len();
        let Claimed { objects, errors } =
            self.control_of(job).claim(&job.owner(), &PODS, claim, &[JOB_TRACKING_FINALIZER]).await;
        aggregate(errors)?;
        // The plan counts on every adoption.
        ensure!(objects.len() == planned, "a pod went away while it was adopted");
        Ok(())
    }

    fn control_of<'a>(&'a self, job: &'a Job) -> KeyControl<'a> {
        self.ctx.for_key(&job.metadata.key, job.metadata.uid)
    }

    /// Posts the event of a plan that creates and deletes no pods.
    fn leave(&self, job: &Job, reason: Reason) -> Outcome {
        let key = &job.metadata.key;
        match reason {
            Reason::InvalidTemplate { error } => return self.invalid_template(job, error),
            Reason::Finished { condition: _, reason: _ } => self.forget(key),
            Reason::UnknownCompletionMode { mode: _ } => {
                let message = "Skipped Job sync because completion mode is unknown".to_owned();
                self.warn(job, events::UNKNOWN_COMPLETION_MODE, message);
            }
            // No retry: only an edit can fix it.
            Reason::InvalidSelector { error } => tracing::warn!(%key, %error, "invalid selector"),
            Reason::ManagedBy { controller: _ }
            | Reason::Ends { condition: _, reason: _, cause: _, active: _, terminating: _ }
            | Reason::Suspended { active: _ }
            | Reason::Parallelism(_)
            | Reason::WaitingForTerminating(_)
            | Reason::NoIndexLeft(_)
            | Reason::Backoff(_)
            | Reason::Waiting(_)
            | Reason::BeingDeleted => {}
        }
        Outcome::default()
    }

    async fn create_pods(&self, job: &Job, new: &[NewPod]) -> Outcome {
        let pods = match NewPods::of(job) {
            Ok(pods) => pods,
            Err(invalid) => return self.invalid_template(job, invalid),
        };
        let key = &job.metadata.key;
        self.expectations.expect(key, new.len(), []);
        let about = job.reference();
        let create = async |at: usize| self.create_pod(job, &about, pods.body(new[at])).await;
        let started = slow_start(new.len(), job.spec.template.bytes(), create).await;
        self.expectations.creations_observed(key, started.skipped);
        let created = started.succeeded.iter().filter(|created| **created).count();
        let failure = started.failed.into_iter().next().map(Into::into);
        Outcome { executed: Executed { created, ..Executed::default() }, failure, ..Outcome::default() }
    }

    fn invalid_template(&self, job: &Job, invalid: InvalidTemplate) -> Outcome {
        self.warn(job, FAILED_CREATE, format!("Error creating: {invalid}"));
        Outcome { failure: Some(invalid.into()), ..Outcome::default() }
    }

    async fn create_pod(&self, job: &Job, about: &ObjectReference, body: Bytes) -> Result<bool, ApiError> {
        let key = &job.metadata.key;
        match self.pods.create(about, body).await {
            Ok(pod) => {
                self.stop_expecting_unwatched(job, &pod);
                Ok(true)
            }
            // No failure: nothing can be created in this namespace any more.
            Err(error) if error.is_namespace_terminating() => {
                self.expectations.creations_observed(key, 1);
                Ok(false)
            }
            Err(error) => {
                self.expectations.creations_observed(key, 1);
                Err(error)
            }
        }
    }

    /// If a webhook removed the label, no watch shows the pod. Its own queue releases it, as any pod that does not
    /// match.
    fn stop_expecting_unwatched(&self, job: &Job, Written { metadata: pod }: &Written) {
        if job.selects_unlabelled() || pod.labels.get(CONTROLLER_UID).is_some() {
            return;
        }
        self.expectations.creations_observed(&job.metadata.key, 1);
        self.orphans_queue.add(&pod.key, Cause::Event);
    }

    /// Deletes pods of a running Job, first their finalizers, so that they do not count as failed.
    ///
    /// Upstream: `deleteJobPods`.
    async fn delete_surplus(&self, job: &Job, surplus: Vec<Surplus>) -> Outcome {
        let (key, about) = (&job.metadata.key, job.reference());
        self.expectations.expect(key, 0, surplus.iter().map(|surplus| surplus.pod.uid));
        let delete = async |Surplus { pod, why: _ }: Surplus| {
            let deleted = match self.release(job, &pod).await {
                Ok(()) => self.pods.delete(&about, &pod.key, pod.uid).await,
                Err(error) => Err(error),
            };
            if !matches!(deleted, Ok(true)) {
                // No watch event will follow.
                self.expectations.deletion_observed(key, pod.uid);
            }
            (pod.uid, deleted)
        };
        deleted(together(surplus.into_iter().map(delete)).await)
    }

    /// Deletes all pods of an ending Job with their finalizers, because their ends are counted.
    ///
    /// Upstream: `deleteActivePods`.
    async fn delete_all(&self, job: &Job, pods: Vec<PodRef>) -> Outcome {
        let about = job.reference();
        let delete = async |pod: &PodRef| (pod.uid, self.pods.delete(&about, &pod.key, pod.uid).await);
        deleted(together(pods.iter().map(delete)).await)
    }

    async fn release(&self, job: &Job, pod: &PodRef) -> Result<(), ApiError> {
        if !pod.is_tracked {
            return Ok(());
        }
        let key = &job.metadata.key;
        self.memory.begin_release(key, job.metadata.uid, pod.uid);
        let released = release_pod(self.control_of(job), &pod.key, pod.uid).await;
        if released.is_err() && !self.memory.cancel_release(key, pod.uid) {
            // The pod vanished meanwhile, and the failed removal does not explain it.
            self.orphans_queue.add(&pod.key, Cause::Event);
        }
        released
    }

    /// Writes the status that names the pods to count, then removes their finalizers.
    ///
    /// Upstream: `flushUncountedAndRemoveFinalizers`, up to the second status.
    pub(crate) async fn apply_tracking(&self, observed: &Observed, tracking: Tracking) -> Tracked {
        let Tracking { status, is_news, release, end, suspension, backoff, policy_actions, tracked } = tracking;
        let job = &*observed.job;
        let (key, uid, version) = (&job.metadata.key, job.metadata.uid, job.metadata.resource_version);
        let mut outcome = Tracked { version, status, tracked, end, failure: None, error: None };
        if is_news {
            match self.patch_status(job, version, &outcome.status).await {
                Ok(version) => outcome.version = version,
                Err(error) => {
                    let error = anyhow::Error::from(error).context("adding uncounted pods to status");
                    return Tracked { error: Some(error), ..outcome };
                }
            }
            self.memory.set_backoff(key, uid, backoff);
            self.metrics.count_status(job, &job.status, &outcome.status);
        }
        self.post_suspension(job, suspension);
        self.metrics.count_policy_actions(&policy_actions);
        self.memory.expect_released(key, uid, release.iter().map(|pod| pod.uid));
        let release_one = async |pod: PodRef| (pod.uid, self.release(job, &pod).await);
        for (pod, released) in together(release.into_iter().map(release_one)).await {
            match released {
                Ok(()) => drop(outcome.tracked.remove(&pod)),
                Err(error) => {
                    self.memory.release_observed(key, pod);
                    outcome.failure.get_or_insert(error);
                }
            }
        }
        outcome
    }

    /// Writes the last status, and posts the event of the Job's end.
    ///
    /// Upstream: the end of `flushUncountedAndRemoveFinalizers` and `trackJobStatusAndRemoveFinalizers`.
    pub(crate) async fn write_status(
        &self,
        observed: &Observed,
        tracked: &Tracked,
        status: &JobStatus,
        ended: Option<&Ending>,
    ) -> anyhow::Result<()> {
        let job = &*observed.job;
        self.patch_status(job, tracked.version, status).await.context("removing uncounted pods from status")?;
        self.metrics.count_status(job, &tracked.status, status);
        if let Some(ended) = ended {
            self.post_end(job, status, ended);
            self.metrics.count_finished(job, ended);
        }
        Ok(())
    }

    async fn patch_status(
        &self,
        job: &Job,
        resource_version: ResourceVersion,
        status: &JobStatus,
    ) -> Result<ResourceVersion, ApiError> {
        let preconditions = Preconditions { uid: job.metadata.uid, resource_version: Some(resource_version) };
        let written = self.control_of(job).patch_status(&JOBS, &job.metadata.key, preconditions, status).await?;
        Ok(written.metadata.resource_version)
    }

    fn post_suspension(&self, job: &Job, suspension: Option<Suspension>) {
        let (reason, message) = match suspension {
            None => return,
            Some(Suspension::Suspended) => (events::SUSPENDED, "Job suspended"),
            Some(Suspension::Resumed) => (events::RESUMED, "Job resumed"),
        };
        self.ctx.event(PlannedEvent::normal(job.reference(), reason, message.to_owned()));
    }

    /// Upstream: `recordJobFinished`.
    fn post_end(&self, job: &Job, status: &JobStatus, ended: &Ending) {
        let Ending { result, condition_reason, message, cause: _, is_announced: _ } = ended;
        match result {
            JobResult::Succeeded => {
                if job.spec.completions.is_some_and(|completions| status.succeeded > completions) {
                    let message = "Too many succeeded pods running after completion count reached".to_owned();
                    self.warn(job, events::TOO_MANY_SUCCEEDED_PODS, message);
                }
                self.ctx.event(PlannedEvent::normal(job.reference(), events::COMPLETED, "Job completed".to_owned()));
            }
            // The condition's reason is no constant, which a planned event needs.
            JobResult::Failed => {
                let (recorder, about) = (self.ctx.recorder(), job.reference());
                recorder.event(&about, EventType::Warning, condition_reason, message.to_string());
            }
        }
    }

    fn warn(&self, job: &Job, reason: &'static str, message: String) {
        self.ctx.event(PlannedEvent::warning(job.reference(), reason, message));
    }

    pub(crate) fn forget(&self, key: &Key) {
        self.expectations.forget(key);
        self.memory.forget(key);
        self.ctx.forget(key, None);
    }
}

/// Removes the tracking finalizer of a pod.
///
/// Upstream: `removeTrackingFinalizerPatch`, `pkg/controller/job/job_controller.go`.
async fn release_pod(control: KeyControl<'_>, pod: &Key, uid: Uid) -> Result<(), ApiError> {
    #[derive(Serialize)]
    struct Body {
        metadata: Metadata,
    }
    #[derive(Serialize)]
    struct Metadata {
        #[serde(rename = "$deleteFromPrimitiveList/finalizers")]
        finalizers: [&'static str; 1],
    }
    let patch = Patch::strategic(&Body { metadata: Metadata { finalizers: [JOB_TRACKING_FINALIZER] } });
    control.patch(&PODS, pod, uid, patch).await.unless_gone().map(drop)
}

/// Sums up deletions; a pod that was gone already counts as deleted.
fn deleted(deletions: Vec<(Uid, Result<bool, ApiError>)>) -> Outcome {
    let mut outcome = Outcome::default();
    for (uid, deleted) in deletions {
        match deleted {
            Ok(_) => {
                outcome.executed.deleted.insert(uid);
            }
            Err(error) => {
                outcome.failure.get_or_insert_with(|| anyhow::Error::from(error).context("unable to delete pods"));
            }
        }
    }
    outcome
}
