//! Carries out what was decided, stage by stage: claims and pods; the status that counts, and the finalizers; the
//! status after that.
//!
//! Left out: deciding anything. What fails is told by events, by the outcome, or as an error; the queue tries again.

pub mod memory;
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
use shared::runtime::api_error::ApiError;
use shared::runtime::clock::Clock;
use shared::runtime::control::{
    Claimed, Control, KeyControl, Patch, Preconditions, Written, aggregate, slow_start, together,
};
use shared::runtime::events::{EventType, Recorder};
use shared::runtime::expectations::Expectations;
use shared::runtime::queue::{Cause, Queue};

use crate::metrics::JobMetrics;
use crate::objects::pod::Pod;
use crate::objects::status::{JobStatus, events};
use crate::objects::{CONTROLLER_UID, JOB_TRACKING_FINALIZER, Job};
use crate::observe::Observed;
use crate::plan::counts::Counts;
use crate::plan::ending::{Ending, JobResult};
use crate::plan::new_pod::{InvalidTemplate, NewPods};
use crate::plan::reason::Reason;
use crate::plan::scale::{NewPod, PodRef, Surplus};
use crate::plan::tracking::{End, Suspension, Tracking};
use crate::plan::{Plan, Pods};
use crate::status::LastStatus;
use memory::Memory;

/// Writes for Jobs.
pub(crate) struct Writer {
    /// The writes of this controller.
    pub(crate) control: Control,
    /// Pods, and the events about them.
    pub(crate) pods: PodControl,
    /// Events about Jobs.
    pub(crate) recorder: Recorder,
    /// The creations and deletions that are not seen yet.
    pub(crate) expectations: Arc<Expectations>,
    /// The memory of each Job.
    pub(crate) memory: Arc<Memory>,
    /// Where pods are looked at that no watch shows.
    pub(crate) orphans_queue: Queue,
    /// The metrics.
    pub(crate) metrics: JobMetrics,
    /// For how long to expect something.
    pub(crate) clock: Clock,
}

/// The result of executing a plan.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The numbers that were planned with; none if there is nothing to do about the Job at all, or a claim failed.
    pub counts: Option<Counts>,
    /// Whether and why the Job is to end, as planned.
    pub ending: Option<Ending>,
    /// How many pods were made.
    pub created: usize,
    /// Pods that were deleted, or had been by somebody else.
    pub deleted: BTreeSet<Uid>,
    /// When to look again, should nothing happen before, and what for.
    pub wake: Option<(Duration, &'static str)>,
    /// The first failure of a creation or deletion. What has ended is counted all the same.
    pub failure: Option<String>,
    /// Why a claim failed. Nothing more was done then.
    pub error: Option<anyhow::Error>,
}

impl Outcome {
    /// Of a plan that writes nothing.
    pub(crate) fn without_writes(plan: Plan) -> Self {
        let Plan { claim: _, pods: _, reason: _, ending, outstanding: _, wake, counts } = plan;
        Self { counts, ending, wake, ..Self::default() }
    }
}

/// How far counting came.
#[derive(Debug)]
pub struct Tracked {
    /// The newest state of the Job that is known.
    pub version: ResourceVersion,
    /// Its status as it was decided before the finalizers went.
    pub status: JobStatus,
    /// Pods that still have the finalizer.
    pub tracked: BTreeSet<Uid>,
    /// How the Job ends once nothing is left to count.
    pub end: Option<End>,
    /// Why the finalizer of a pod could not be taken away.
    pub failure: Option<ApiError>,
    /// Why the status could not be written. Nothing more was done then.
    pub error: Option<anyhow::Error>,
}

impl Writer {
    /// Carries out a plan: first the claims, and only if none of them fails, the rest.
    ///
    /// Upstream: `getPodsForJob`, `manageJob` and `deleteActivePods`, `pkg/controller/job/job_controller.go`.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let Plan { claim, pods, reason, ending, outstanding: _, wake, counts } = plan;
        let job = &*observed.job;
        if let Err(error) = self.claim(job, claim).await {
            return Outcome { error: Some(error), ..Outcome::default() };
        }
        let done = match pods {
            Pods::Leave => self.leave(job, reason),
            Pods::Create(new) => self.create_pods(job, &new).await,
            Pods::Delete(surplus) => self.delete_surplus(job, surplus).await,
            Pods::End(pods) => self.delete_all(job, pods).await,
        };
        Outcome { counts, ending, wake, ..done }
    }

    async fn claim(&self, job: &Job, claim: Claim<Pod>) -> anyhow::Result<()> {
        let planned = claim.owned.len() + claim.adopt.len();
        let Claimed { objects, errors } =
            self.control_of(job).claim(&job.owner(), &PODS, claim, &[JOB_TRACKING_FINALIZER]).await;
        aggregate(errors)?;
        // The numbers were decided with every orphan in.
        ensure!(objects.len() == planned, "a pod went away while it was adopted");
        Ok(())
    }

    fn control_of<'a>(&'a self, job: &'a Job) -> KeyControl<'a> {
        self.control.for_key(&job.metadata.key, job.metadata.uid)
    }

    /// No pod is made or deleted; where that is news, it is told.
    fn leave(&self, job: &Job, reason: Reason) -> Outcome {
        let key = &job.metadata.key;
        match reason {
            Reason::InvalidTemplate { error } => return self.tell_invalid_template(job, &error),
            Reason::Finished { condition: _, reason: _ } => self.forget(key),
            Reason::UnknownCompletionMode { mode: _ } => self.tell_unknown_completion_mode(job),
            // An edit brings it back; until then there is nothing to say of it.
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
            Err(invalid) => return self.tell_invalid_template(job, &invalid),
        };
        let key = &job.metadata.key;
        self.expectations.expect(key, new.len(), [], self.clock.now());
        let about = job.reference();
        let started = slow_start(new.len(), |at| self.create_pod(job, &about, pods.body(new[at]))).await;
        self.expectations.creations_observed(key, started.skipped);
        let created = started.succeeded.iter().filter(|created| **created).count();
        let failure = started.failed.first().map(ToString::to_string);
        Outcome { created, failure, ..Outcome::default() }
    }

    /// Tells that pods are missing which the template cannot make; that is the sync's failure.
    fn tell_invalid_template(&self, job: &Job, invalid: &InvalidTemplate) -> Outcome {
        let message = format!("Error creating: {invalid}");
        self.recorder.event(&job.reference(), EventType::Warning, FAILED_CREATE, message);
        Outcome { failure: Some(invalid.to_string()), ..Outcome::default() }
    }

    /// Gives whether there is a pod now.
    async fn create_pod(&self, job: &Job, about: &ObjectReference, body: Bytes) -> Result<bool, ApiError> {
        let key = &job.metadata.key;
        match self.pods.create(about, body).await {
            Ok(pod) => {
                self.look_for(job, &pod);
                Ok(true)
            }
            // Nothing can be created in this namespace ever again, and that is no failure.
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

    /// A pod from which a webhook took the label is never seen: it is not waited for, and released as any own pod that
    /// does not match.
    fn look_for(&self, job: &Job, Written { metadata: pod }: &Written) {
        if job.selects_unlabelled() || pod.labels.get(CONTROLLER_UID).is_some() {
            return;
        }
        self.expectations.creations_observed(&job.metadata.key, 1);
        self.orphans_queue.add(&pod.key, Cause::Event);
    }

    /// Pods that go although the Job goes on: without their finalizer, so that they are not counted as failed.
    ///
    /// Upstream: `deleteJobPods`.
    async fn delete_surplus(&self, job: &Job, surplus: Vec<Surplus>) -> Outcome {
        let (key, about) = (&job.metadata.key, job.reference());
        self.expectations.expect(key, 0, surplus.iter().map(|surplus| surplus.pod.uid), self.clock.now());
        let delete = async |Surplus { pod, why: _ }: Surplus| {
            let deleted = match self.release(job, &pod).await {
                Ok(()) => self.pods.delete(&about, &pod.key, pod.uid).await,
                Err(error) => Err(error),
            };
            if !matches!(deleted, Ok(true)) {
                // No event will tell of it.
                self.expectations.deletion_observed(key, pod.uid);
            }
            (pod.uid, deleted)
        };
        deleted(together(surplus.into_iter().map(delete)).await)
    }

    /// All pods of a Job that ends: with their finalizer, for how they end is counted.
    ///
    /// Upstream: `deleteActivePods`.
    async fn delete_all(&self, job: &Job, pods: Vec<PodRef>) -> Outcome {
        let about = job.reference();
        let delete = async |pod: &PodRef| (pod.uid, self.pods.delete(&about, &pod.key, pod.uid).await);
        deleted(together(pods.iter().map(delete)).await)
    }

    /// Takes the tracking finalizer from a pod that has it; one that is gone has none.
    async fn release(&self, job: &Job, pod: &PodRef) -> Result<(), ApiError> {
        if !pod.is_tracked {
            return Ok(());
        }
        let key = &job.metadata.key;
        self.memory.lets_go(key, job.metadata.uid, pod.uid);
        let released = release_pod(self.control_of(job), &pod.key, pod.uid).await;
        if released.is_err() && !self.memory.keeps(key, pod.uid) {
            // It has vanished in that moment, which this write seemed to explain.
            self.orphans_queue.add(&pod.key, Cause::Event);
        }
        released
    }

    /// Says which pods are counted, then lets them go.
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
        self.tell_suspension(job, suspension);
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

    /// Says what was counted, and whether the Job is over.
    ///
    /// Upstream: the end of `flushUncountedAndRemoveFinalizers` and `trackJobStatusAndRemoveFinalizers`.
    pub(crate) async fn write_status(
        &self,
        observed: &Observed,
        tracked: &Tracked,
        last: &LastStatus,
    ) -> anyhow::Result<()> {
        let LastStatus { status, ended } = last;
        let job = &*observed.job;
        self.patch_status(job, tracked.version, status).await.context("removing uncounted pods from status")?;
        self.metrics.count_status(job, &tracked.status, status);
        if let Some(ended) = ended {
            self.tell_end(job, status, ended);
            self.metrics.count_finished(job, ended);
        }
        Ok(())
    }

    /// Writes the status on this very state of the Job: what it was computed from must not have changed.
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

    fn tell_suspension(&self, job: &Job, suspension: Option<Suspension>) {
        let (reason, message) = match suspension {
            None => return,
            Some(Suspension::Suspended) => (events::SUSPENDED, "Job suspended"),
            Some(Suspension::Resumed) => (events::RESUMED, "Job resumed"),
        };
        self.recorder.event(&job.reference(), EventType::Normal, reason, message.to_owned());
    }

    /// Upstream: `recordJobFinished`.
    fn tell_end(&self, job: &Job, status: &JobStatus, ended: &Ending) {
        let about = job.reference();
        let Ending { result, condition_reason, message, cause: _, is_announced: _ } = ended;
        match result {
            JobResult::Succeeded => {
                if job.spec.completions.is_some_and(|completions| status.succeeded > completions) {
                    let message = "Too many succeeded pods running after completion count reached".to_owned();
                    self.recorder.event(&about, EventType::Warning, events::TOO_MANY_SUCCEEDED_PODS, message);
                }
                self.recorder.event(&about, EventType::Normal, events::COMPLETED, "Job completed".to_owned());
            }
            JobResult::Failed => {
                self.recorder.event(&about, EventType::Warning, condition_reason, message.to_string());
            }
        }
    }

    /// Tells that nobody knows what the Job asks for.
    fn tell_unknown_completion_mode(&self, job: &Job) {
        let message = "Skipped Job sync because completion mode is unknown".to_owned();
        self.recorder.event(&job.reference(), EventType::Warning, events::UNKNOWN_COMPLETION_MODE, message);
    }

    /// Forgets a key whose Job is over, or gone.
    pub(crate) fn forget(&self, key: &Key) {
        self.expectations.forget(key);
        self.memory.forget(key);
        self.control.forget(key, None);
    }
}

/// Takes the tracking finalizer from this very pod; one that is gone has none.
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
    match control.patch(&PODS, pod, uid, patch).await {
        Err(error) if !error.is_not_found() => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// A pod that was gone already counts as deleted.
fn deleted(deletions: Vec<(Uid, Result<bool, ApiError>)>) -> Outcome {
    let mut outcome = Outcome::default();
    for (uid, deleted) in deletions {
        match deleted {
            Ok(_) => {
                outcome.deleted.insert(uid);
            }
            Err(error) => {
                outcome.failure.get_or_insert_with(|| format!("unable to delete pods: {error}"));
            }
        }
    }
    outcome
}
