//! Executes a plan: events, patches of a claim and of its volume, and the end of a volume.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use shared::api::json;
use shared::api::object::{Key, ObjectReference};
use shared::api::resource::{PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, Resource};
use shared::transport::api_error::{ApiError, ResultExt};
use shared::working::context::ControllerContext;
use shared::working::control::{DeleteOptions, Patch, Written};
use shared::working::events::PlannedEvent;
use shared::working::queue::{Cause, Queue};
use shared::working::worker::Requeue;
use tokio::time::Instant;

use crate::metrics::BinderMetrics;
use crate::objects::recycler::PodId;
use crate::objects::volume::HOST_PATH;
use crate::observe::Caches;
use crate::plan::edits::{ClaimEdit, Folder, NewRecycler, Operation, VolumeEdit};
use crate::plan::reclaim::VOLUME_FAILED_DELETE;
use crate::plan::recycle::VOLUME_FAILED_RECYCLE;
use crate::plan::{Again, Plan, Step, Target};
use crate::status::{Phase, VolumeStatus};

const PROVISIONING_FAILED: &str = "ProvisioningFailed";

/// Writes of the syncs of one queue.
pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
    pub(crate) caches: Arc<Caches>,
    pub(crate) claims: Queue,
    pub(crate) sync_period: Duration,
    pub(crate) metrics: BinderMetrics,
}

impl Writer {
    pub(crate) async fn apply(&self, key: &Key, plan: Plan) -> anyhow::Result<Requeue> {
        let Plan { steps, mut claim, mut volume, again, reason } = plan;
        for step in steps {
            match step {
                Step::Tell(event) => self.ctx.event(event),
                Step::Claim(edit) => self.edit_claim(key, target(&mut claim)?, &edit).await?,
                Step::Volume(edit) => {
                    let edited = self.edit_volume(key, target(&mut volume)?, &edit).await;
                    // The finalizer goes with the folder.
                    let is_deletion = matches!(edit, VolumeEdit::Finalizers(_));
                    if is_deletion { self.of_deletion(edited) } else { edited }?;
                }
                Step::RemoveFolder(folder) => {
                    let removed = self.remove_folder(key, target(&mut volume)?, folder).await;
                    self.of_deletion(removed)?;
                }
                Step::DeleteVolume => {
                    let deleted = self.delete_volume(key, target(&mut volume)?).await;
                    self.of_deletion(deleted)?;
                }
                Step::CountFailure(operation) => self.metrics.failed(HOST_PATH, operation),
                Step::CreateRecycler(pod) => self.create_recycler(key, target(&mut volume)?, pod).await?,
                Step::EndRecycler(pod) => self.end_recycler(key, &pod).await?,
                Step::Relay { event, tell } => {
                    self.caches.memory.relayed(key, event);
                    self.ctx.event(tell);
                }
                Step::SyncClaim(claim) => self.claims.add(&claim, Cause::Event),
            }
        }
        match again {
            Again::Never => Ok(Requeue::Done),
            Again::Later => Ok(Requeue::After(self.sync_period, "the next look for what is missing")),
            Again::Retry => Err(anyhow!("{reason}")),
        }
    }

    async fn edit_claim(&self, key: &Key, target: &mut Target, edit: &ClaimEdit) -> anyhow::Result<()> {
        let patch = if edit.is_status() { Patch::merge(&edit.body()).on_status() } else { Patch::merge(&edit.body()) };
        let patched = self.patch(key, &PERSISTENT_VOLUME_CLAIMS, target, patch).await;
        if let ClaimEdit::Class(_) = edit {
            self.metrics.gave_class(patched.is_ok());
        }
        if let (ClaimEdit::Provisioner { name, migrated_to: _ }, Err(error)) = (edit, &patched) {
            self.metrics.failed(name, Operation::Provision);
            let Target { key, uid, version } = target.clone();
            let about = ObjectReference { resource: PERSISTENT_VOLUME_CLAIMS, key, uid, resource_version: version };
            let message = format!("Error saving claim: {error}");
            self.ctx.event(PlannedEvent::warning(about, PROVISIONING_FAILED, message));
        }
        patched.with_context(|| format!("cannot write the claim: {edit}"))?;
        tracing::info!(claim = %target.key, %edit, "wrote a claim");
        Ok(())
    }

    async fn edit_volume(&self, key: &Key, target: &mut Target, edit: &VolumeEdit) -> anyhow::Result<()> {
        let patch = if edit.is_status() { Patch::merge(&edit.body()).on_status() } else { Patch::merge(&edit.body()) };
        let patched = self.patch(key, &PERSISTENT_VOLUMES, target, patch).await;
        patched.with_context(|| format!("cannot write volume {}: {edit}", target.key))?;
        if let VolumeEdit::Bind(_) = edit {
            self.caches.memory.remember(&target.key, target.uid, target.version);
        }
        tracing::info!(volume = %target.key, %edit, "wrote a volume");
        Ok(())
    }

    /// The next write is decided on the state that this one makes.
    async fn patch(&self, key: &Key, resource: &Resource, target: &mut Target, patch: Patch) -> Result<(), ApiError> {
        let control = self.ctx.for_name(key);
        let written = control.patch(resource, &target.key, target.preconditions(), patch).await?;
        target.version = written.metadata.resource_version;
        Ok(())
    }

    async fn remove_folder(&self, key: &Key, volume: &mut Target, folder: Folder) -> anyhow::Result<()> {
        let Folder { path, has_failed } = folder;
        let begun = Instant::now();
        let removed = remove_all(&path).await;
        self.metrics.removed_folder(removed.is_ok(), begun.elapsed());
        let Err(error) = removed else { return Ok(()) };
        if !has_failed {
            self.fail(key, volume, VOLUME_FAILED_DELETE, error.to_string()).await?;
        }
        Err(anyhow!(error).context(format!("cannot delete {path}")))
    }

    fn of_deletion(&self, done: anyhow::Result<()>) -> anyhow::Result<()> {
        done.inspect_err(|_| self.metrics.failed(HOST_PATH, Operation::Delete))
    }

    async fn fail(&self, key: &Key, volume: &mut Target, event: &'static str, message: String) -> anyhow::Result<()> {
        let status = VolumeEdit::Status(VolumeStatus { phase: Phase::Failed, message: message.clone() });
        self.edit_volume(key, volume, &status).await?;
        let Target { key, uid, version } = volume.clone();
        let about = ObjectReference { resource: PERSISTENT_VOLUMES, key, uid, resource_version: version };
        self.ctx.event(PlannedEvent::warning(about, event, message));
        Ok(())
    }

    async fn create_recycler(&self, key: &Key, volume: &mut Target, pod: NewRecycler) -> anyhow::Result<()> {
        let NewRecycler { key: pod, body, has_failed } = pod;
        match self.ctx.for_name(key).create(&PODS, pod.namespace(), json(&body)).await {
            Ok(Written { metadata }) => {
                self.caches.memory.remember_recycler(key, PodId { key: metadata.key.clone(), uid: metadata.uid });
                tracing::info!(volume = %key, %pod, "created a pod that empties a volume");
                Ok(())
            }
            Err(error) => {
                // Another pod of its name is seen soon, and ended.
                let is_refused = error.code().is_some() && !error.is_already_exists() && !error.is_outcome_unknown();
                if is_refused && !has_failed {
                    let message = format!("Recycle failed: unexpected error creating recycler pod:  {error}");
                    self.fail(key, volume, VOLUME_FAILED_RECYCLE, message).await?;
                }
                Err(error).with_context(|| format!("cannot create pod {pod}"))
            }
        }
    }

    async fn end_recycler(&self, key: &Key, pod: &PodId) -> anyhow::Result<()> {
        let deleted = self.ctx.for_name(key).delete(&PODS, &pod.key, &DeleteOptions::of(pod.uid)).await;
        match deleted.unless_gone() {
            // A conflict means that the pod of this name is another one.
            Err(error) if !error.is_conflict() => {
                return Err(error).with_context(|| format!("cannot delete pod {}", pod.key));
            }
            Ok(_) | Err(_) => {}
        }
        self.caches.memory.forget_recycler(key);
        tracing::info!(volume = %key, pod = %pod.key, "deleted a pod that was to empty a volume");
        Ok(())
    }

    async fn delete_volume(&self, key: &Key, volume: &Target) -> anyhow::Result<()> {
        let options = DeleteOptions::of(volume.preconditions());
        let deleted = self.ctx.for_name(key).delete(&PERSISTENT_VOLUMES, &volume.key, &options).await;
        deleted.unless_gone().context("cannot delete the volume")?;
        tracing::info!(volume = %volume.key, "deleted a volume");
        Ok(())
    }
}

/// A plan has the state of each object that it writes to.
fn target(target: &mut Option<Target>) -> anyhow::Result<&mut Target> {
    target.as_mut().context("the plan does not say which object it writes to")
}

/// Upstream: `os.RemoveAll`.
async fn remove_all(path: &str) -> std::io::Result<()> {
    let removed = match tokio::fs::symlink_metadata(path).await {
        Ok(metadata) if metadata.is_dir() => tokio::fs::remove_dir_all(path).await,
        Ok(_) => tokio::fs::remove_file(path).await,
        Err(error) => Err(error),
    };
    removed.or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
}
