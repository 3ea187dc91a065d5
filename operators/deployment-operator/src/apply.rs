//! Carries out a plan, and writes the status that came of it.
//!
//! Views are lean, so nothing is ever written back whole: a patch names what changes, and the state it was decided on.
//! Left out: deciding anything. The first failure ends a plan; the queue tries again.

mod bodies;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use shared::api::json;
use shared::api::object::{Kind, Meta, ResourceVersion, Uid};
use shared::api::owner::Claim;
use shared::api::resource::{DEPLOYMENTS, REPLICA_SETS};
use shared::controllers::status_writer::{NewStatus, StatusWrite, StatusWriter};
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::{Claimed, DeleteOptions, KeyControl, Patch, Preconditions, Written, aggregate};

use self::bodies::{CreateBody, UpdateBody, rollback_patch};
use crate::objects::{Deployment, ReplicaSet, ReplicaSetSpec, ReplicaSetStatus, StatusPatch};
use crate::observe::Observed;
use crate::plan::new_replica_set::Creation;
use crate::plan::{NewReplicaSet, Plan, ReplicaSetDeletion, ReplicaSetUpdate, Rollback, StatusScope, Step};

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
    pub(crate) statuses: StatusWriter,
}

#[derive(Debug)]
pub struct Outcome {
    /// The state of the Deployment that is known: as observed, or as written since.
    pub version: ResourceVersion,
    /// How the creation of the new ReplicaSet went, if one was planned and tried.
    pub creation: Option<(Box<NewReplicaSet>, Creation)>,
    /// The part of the status that the plan writes.
    pub scope: StatusScope,
    pub failure: Option<Failure>,
}

/// Why a plan ended early.
#[derive(Debug)]
pub struct Failure {
    pub error: anyhow::Error,
    /// Whether the status has to wait until this works.
    pub before_status: bool,
}

impl Failure {
    fn of(error: impl Into<anyhow::Error>) -> Self {
        Self { error: error.into(), before_status: true }
    }
}

impl Writer {
    /// Adopts and releases; gives what is the Deployment's own then.
    pub(crate) async fn claim(
        &self,
        observed: &Observed,
        claim: Claim<ReplicaSet>,
    ) -> anyhow::Result<Vec<Arc<ReplicaSet>>> {
        let deployment = &*observed.deployment;
        let Claimed { objects, errors } =
            self.control_of(deployment).claim(&deployment.owner(), &REPLICA_SETS, claim, &[]).await;
        aggregate(errors)?;
        Ok(objects)
    }

    fn control_of<'a>(&'a self, deployment: &'a Deployment) -> KeyControl<'a> {
        self.ctx.for_key(&deployment.metadata.key, deployment.metadata.uid)
    }

    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let Plan { reason: _, revision: _, progressing: _, steps, status: scope } = plan;
        let deployment = &*observed.deployment;
        let version = deployment.metadata.resource_version;
        let mut outcome = Outcome { version, creation: None, scope, failure: None };
        // Of several updates of one ReplicaSet the next one rests on the one before.
        let mut written: BTreeMap<Uid, ResourceVersion> = BTreeMap::new();
        for step in steps {
            let done = match step {
                Step::CreateReplicaSet(new) => {
                    let (creation, failed) = self.create(deployment, &new).await;
                    outcome.creation = Some((new, creation));
                    failed.map_or(Ok(()), |error| Err(Failure::of(error)))
                }
                Step::UpdateReplicaSet(mut update) => {
                    update.resource_version = written.get(&update.uid).copied().unwrap_or(update.resource_version);
                    let uid = update.uid;
                    self.update(deployment, update).await.map(|version| {
                        written.insert(uid, version);
                    })
                }
                Step::DeleteReplicaSet(deletion) => self.delete(deployment, deletion).await.map_err(Failure::of),
                Step::RollBack(rollback) => self.roll_back(deployment, *rollback).await.map(|version| {
                    outcome.version = version;
                }),
                Step::Event(event) => {
                    self.ctx.event(event);
                    Ok(())
                }
                Step::Fail(message) => Err(Failure::of(anyhow!(message))),
            };
            if let Err(failure) = done {
                outcome.failure = Some(failure);
                break;
            }
        }
        outcome
    }

    /// Gives the error too, where the sync ends with it unless the ReplicaSet turns out to be there.
    async fn create(&self, deployment: &Deployment, new: &NewReplicaSet) -> (Creation, Option<anyhow::Error>) {
        let body = json(&CreateBody::new(&deployment.owner(), new));
        match self.control_of(deployment).create(&REPLICA_SETS, deployment.metadata.namespace(), body).await {
            Ok(written) => (Creation::Created(Arc::new(as_created(new, written))), None),
            Err(error) if error.is_already_exists() => (Creation::AlreadyExists(None), Some(error.into())),
            Err(error) if error.is_namespace_terminating() => (Creation::NamespaceTerminating, None),
            Err(error) => (Creation::Failed(error.to_string()), Some(error.into())),
        }
    }

    async fn update(&self, deployment: &Deployment, update: ReplicaSetUpdate) -> Result<ResourceVersion, Failure> {
        let patch = Patch::strategic(&UpdateBody::new(&update));
        let ReplicaSetUpdate {
            key,
            uid,
            resource_version,
            event,
            before_status,
            // In the body.
            annotations: _,
            min_ready_seconds: _,
            scale: _,
            // Recorded with the plan.
            why: _,
        } = update;
        let preconditions = Preconditions { uid, resource_version: Some(resource_version) };
        let written = self
            .control_of(deployment)
            .patch(&REPLICA_SETS, &key, preconditions, patch)
            .await
            .with_context(|| format!("cannot update replica set {key}"))
            .map_err(|error| Failure { error, before_status })?;
        if let Some(event) = event {
            self.ctx.event(event);
        }
        Ok(written.metadata.resource_version)
    }

    async fn delete(&self, deployment: &Deployment, deletion: ReplicaSetDeletion) -> anyhow::Result<()> {
        let ReplicaSetDeletion { key, uid, resource_version, why: _ } = deletion;
        let preconditions = Preconditions { uid, resource_version: Some(resource_version) };
        let options = DeleteOptions::of(preconditions);
        let deleted = self.control_of(deployment).delete(&REPLICA_SETS, &key, &options).await;
        deleted.unless_gone().map(drop).with_context(|| format!("cannot delete replica set {key}"))
    }

    async fn roll_back(&self, deployment: &Deployment, rollback: Rollback) -> Result<ResourceVersion, Failure> {
        let patch = Patch::operations(&rollback_patch(&rollback));
        let Rollback { to: _, event } = rollback;
        let meta = &deployment.metadata;
        let preconditions = Preconditions::of(meta);
        let written = self
            .control_of(deployment)
            .patch(&DEPLOYMENTS, &meta.key, preconditions, patch)
            .await
            .context("cannot roll back")
            .map_err(|error| Failure { error, before_status: true })?;
        if let Some(event) = event {
            self.ctx.event(event);
        }
        Ok(written.metadata.resource_version)
    }

    /// Writes the status, unless it can wait and has to. `version` is the state of the Deployment that this sync knows:
    /// the one that it observed, or the one that it made.
    pub(crate) async fn write_status(
        &self,
        observed: &Observed,
        version: ResourceVersion,
        patch: &StatusPatch,
        can_wait: bool,
    ) -> anyhow::Result<StatusWrite> {
        let meta = &observed.deployment.metadata;
        let patch = Patch::status(patch);
        self.statuses.write(NewStatus { key: &meta.key, uid: meta.uid, version, patch, can_wait }).await
    }
}

/// The new ReplicaSet as it is known before the cache has it.
fn as_created(new: &NewReplicaSet, written: Written) -> ReplicaSet {
    let NewReplicaSet { name: _, annotations, replicas, min_ready_seconds, selector: _, template } = new;
    let Written { metadata } = written;
    ReplicaSet {
        metadata: Meta {
            key: metadata.key,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            generation: metadata.generation,
            creation: metadata.creation,
            deletion: metadata.deletion,
            deletion_grace_seconds: metadata.deletion_grace_seconds,
            labels: metadata.labels,
            annotations: annotations.clone(),
            controller: metadata.controller,
            finalizers: metadata.finalizers,
        },
        spec: ReplicaSetSpec { replicas: *replicas, min_ready_seconds: *min_ready_seconds, template: template.clone() },
        status: ReplicaSetStatus::default(),
    }
}
