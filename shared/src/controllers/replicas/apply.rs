//! Execution of a plan, and the write of the status that follows.
//!
//! Failures are reported by events, by the outcome, or as an error; the queue retries.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::ensure;
use bytes::Bytes;

use super::ReplicaOwner;
use super::memory::{Ended, EndedPod};
use super::observe::Observed;
use super::plan::{Deletion, Plan};
use super::pod::Pod;
use super::stored::{ReplicaStatus, drops_terminating, is_in_between, is_news};
use crate::api::intern::Text;
use crate::api::object::Key;
use crate::api::object::ObjectReference;
use crate::api::owner::Claim;
use crate::api::pod::creation::pod_body;
use crate::api::resource::PODS;
use crate::controllers::pod_control::PodControl;
use crate::controllers::rejections::Rejection;
use crate::controllers::status_writer::{NewStatus, StatusWrite, StatusWriter};
use crate::transport::api_error::ApiError;
use crate::working::context::ControllerContext;
use crate::working::control::{Claimed, KeyControl, Patch, aggregate, slow_start, together};
use crate::working::expectations::Expectations;

pub struct Writer {
    pub ctx: ControllerContext,
    pub pods: PodControl,
    /// The creations and deletions that are not seen yet.
    pub expectations: Arc<Expectations>,
    pub statuses: StatusWriter,
    /// Whether writes have shown that the server drops terminatingReplicas.
    pub drops_terminating: AtomicBool,
}

#[derive(Debug, Default)]
pub struct Outcome {
    /// The pods that count: those that were owned, and those that were adopted. What was created or deleted in the same
    /// sync has not been seen yet and changes nothing here.
    pub claimed: Vec<Arc<Pod>>,
    /// The first error of a creation or deletion, which the status tells.
    pub failure: Option<anyhow::Error>,
    /// Why a claim failed. Nothing more was done then, and there is nothing to count.
    pub error: Option<anyhow::Error>,
}

impl Writer {
    /// Reads pods that have ended, and gives the rejected ones among them. One that cannot be read counts as none:
    /// nothing waits for what is not known.
    pub async fn read_rejections(&self, ended: &[Ended]) -> Vec<Rejection> {
        together(ended.iter().map(|pod| self.read_rejection(pod))).await.into_iter().flatten().collect()
    }

    async fn read_rejection(&self, ended: &Ended) -> Option<Rejection> {
        let Ended { key, uid, seen: _ } = ended;
        match self.ctx.get::<EndedPod>(&PODS, key).await {
            Ok(EndedPod { metadata, rejection }) if metadata.uid == *uid => {
                let (template, created) = (Text::default(), metadata.creation);
                rejection.map(|reason| Rejection { template, reason, created })
            }
            Ok(_) => None,
            Err(error) => {
                tracing::debug!(pod = %key, %error, "not known how the pod has ended");
                None
            }
        }
    }

    /// Carries out a plan: first the claims, and only if none of them fails, the rest.
    ///
    /// Upstream: `claimPods` and `manageReplicas`, `pkg/controller/replicaset/replica_set.go`.
    pub async fn apply<T: ReplicaOwner>(&self, observed: &Observed<T>, plan: Plan) -> Outcome {
        let Plan { claim, create, delete, reason: _ } = plan;
        let owner = &*observed.owner;
        let claimed = match self.claim(owner, claim).await {
            Ok(claimed) => claimed,
            Err(error) => return Outcome { error: Some(error), ..Outcome::default() },
        };
        let failure = self.create_pods(owner, create).await.or(self.delete_pods(owner, delete).await);
        Outcome { claimed, failure, error: None }
    }

    async fn claim<T: ReplicaOwner>(&self, owner: &T, claim: Claim<Pod>) -> anyhow::Result<Vec<Arc<Pod>>> {
        let planned = claim.owned.len() + claim.adopt.len();
        let Claimed { objects, errors } = self.control_of(owner).claim(&owner.owner(), &PODS, claim, &[]).await;
        aggregate(errors)?;
        // The counts were decided with every orphan in.
        ensure!(objects.len() == planned, "a pod went away while it was adopted");
        Ok(objects)
    }

    fn control_of<'a, T: ReplicaOwner>(&'a self, owner: &'a T) -> KeyControl<'a> {
        self.ctx.for_key(&owner.meta().key, owner.meta().uid)
    }

    /// Gives the first error.
    async fn create_pods<T: ReplicaOwner>(&self, owner: &T, count: usize) -> Option<anyhow::Error> {
        if count == 0 {
            return None;
        }
        let body = match pod_body(&owner.owner(), &owner.spec().template) {
            Ok(body) => body,
            Err(no_labels) => return Some(no_labels.into()),
        };
        let key = &owner.meta().key;
        self.expectations.expect(key, count, []);
        let about = owner.reference();
        // All have the same body in common.
        let started = slow_start(count, 0, |_| self.create_pod(owner, &about, body.clone())).await;
        self.expectations.creations_observed(key, started.skipped);
        started.failed.into_iter().next().map(Into::into)
    }

    async fn create_pod<T: ReplicaOwner>(
        &self,
        owner: &T,
        about: &ObjectReference,
        body: Bytes,
    ) -> Result<(), ApiError> {
        let key = &owner.meta().key;
        match self.pods.create(about, body).await {
            Ok(_) => {}
            // Nothing can be created in this namespace ever again, and that is no failure.
            Err(error) if error.is_namespace_terminating() => self.expectations.creations_observed(key, 1),
            Err(error) => {
                self.expectations.creations_observed(key, 1);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Gives the first error.
    async fn delete_pods<T: ReplicaOwner>(&self, owner: &T, deletions: Vec<Deletion>) -> Option<anyhow::Error> {
        if deletions.is_empty() {
            return None;
        }
        let key = &owner.meta().key;
        self.expectations.expect(key, 0, deletions.iter().map(|deletion| deletion.uid));
        let about = owner.reference();
        let delete = async |Deletion { key: pod, uid, rule: _ }: Deletion| {
            let deleted = self.pods.delete(&about, &pod, uid).await;
            if !matches!(deleted, Ok(true)) {
                // No event will tell of it.
                self.expectations.deletion_observed(key, uid);
            }
            deleted.err()
        };
        let failed = together(deletions.into_iter().map(delete)).await;
        failed.into_iter().flatten().next().map(|error| anyhow::Error::from(error).context("unable to delete pods"))
    }

    /// Write the status if it has anything new that the server would keep. One with nothing new but counts on the way
    /// can wait, unless the sync `has_failed`.
    ///
    /// Upstream: `updateReplicaSetStatus`, `pkg/controller/replicaset/replica_set_utils.go`.
    pub async fn write_status<T: ReplicaOwner>(
        &self,
        observed: &Observed<T>,
        status: &ReplicaStatus,
        has_failed: bool,
    ) -> anyhow::Result<Option<StatusWrite>> {
        let (owner, known) = (&*observed.owner, self.drops_terminating.load(Ordering::Relaxed));
        let (meta, stored) = (owner.meta(), owner.status());
        if !is_news(stored, status, known) {
            return Ok(None);
        }
        let can_wait = !has_failed && is_in_between(stored, status, owner.spec().wanted());
        let patch = Patch::status(&BTreeMap::from([("status", status)]));
        let (version, uid) = (meta.resource_version, meta.uid);
        let write = self.statuses.write(NewStatus { key: &meta.key, uid, version, patch, can_wait }).await?;
        if let StatusWrite::Stored(after) = write {
            let drops = drops_terminating(known, (version, stored), (after, status));
            self.drops_terminating.store(drops, Ordering::Relaxed);
        }
        Ok(Some(write))
    }

    pub fn forget(&self, key: &Key) {
        self.expectations.forget(key);
        self.ctx.forget(key, None);
    }
}

#[cfg(test)]
mod tests;
