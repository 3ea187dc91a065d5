//! Executes a plan. Every write names the uid, and where it matters the version, that it was decided on: if the object
//! has changed, the write fails, and the next attempt decides again.

pub mod orphan;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use shared::api::object::Key;
use shared::api::resource::Resource;
use shared::transport::api_error::{ApiError, ResultExt};
use shared::working::context::ControllerContext;
use shared::working::control::{Control, DeleteOptions, KeyControl, Patch, Preconditions, Written};

use crate::graph::Event;
use crate::objects::{Identity, LiveMeta};
use crate::observe::{Caches, Followed, Got, Observed, key_in, live_object};
use crate::plan::patches::{self, remove_finalizer};
use crate::plan::{Action, Conflict, Delete, Plan, Retry, judge_conflict};

/// client-go's `DefaultBackoff`: four tries in all.
const CONFLICT_WAITS: [Duration; 3] =
    [Duration::from_millis(10), Duration::from_millis(50), Duration::from_millis(250)];

pub(crate) struct Writer {
    pub(crate) caches: Arc<Caches>,
    pub(crate) ctx: ControllerContext,
}

impl Writer {
    pub(crate) async fn apply(&self, key: &Key, observed: &Observed, plan: Plan) -> anyhow::Result<Retry> {
        let uid = observed.identity.object.uid;
        self.caches.remember(uid, &observed.learned);
        write(&self.caches, self.ctx.for_key(key, uid), plan).await
    }
}

async fn write(caches: &Caches, control: KeyControl<'_>, plan: Plan) -> anyhow::Result<Retry> {
    let Plan { identity, action, reason: _, retry } = plan;
    match action {
        Action::Nothing => {}
        Action::ReportAbsent => return Ok(report_absent(caches, &identity)),
        Action::Attempt(uids) => caches.attempt(&uids),
        Action::RemoveFinalizer(resource, finalizer) => {
            without_finalizer(caches, control, &resource, &identity, finalizer).await?;
        }
        Action::Patch(resource, patch) => {
            let key = key_in(&resource, &identity.namespace, &identity.object.name);
            patch_either(control, &resource, &key, &patch)
                .await
                .with_context(|| format!("cannot drop owners of {identity}"))?;
        }
        Action::Delete(planned) => {
            if delete(caches, control, &identity, *planned).await? == Deleted::WasAbsent {
                return Ok(report_absent(caches, &identity));
            }
        }
    }
    Ok(retry)
}

/// Reports to the graph that the object does not exist. Retries if another identity of its uid has to be checked.
fn report_absent(caches: &Caches, identity: &Identity) -> Retry {
    match caches.update(Event::Absent(identity)) {
        Followed::Enqueued => Retry::No,
        Followed::Retry => Retry::Later,
    }
}

#[derive(PartialEq, Eq)]
enum Deleted {
    Done,
    WasAbsent,
}

async fn delete(
    caches: &Caches,
    control: KeyControl<'_>,
    identity: &Identity,
    planned: Delete,
) -> anyhow::Result<Deleted> {
    let Delete { resource, live, policy, unblock, is_explained: _ } = planned;
    let key = key_in(&resource, &identity.namespace, &identity.object.name);
    if let Some(patch) = unblock {
        patch_either(control, &resource, &key, &patch)
            .await
            .with_context(|| format!("cannot unblock owners of {identity}"))?;
    }
    let delete = async |resource_version| {
        let preconditions = Preconditions { uid: live.uid.as_str(), resource_version };
        control.delete(&resource, &key, &DeleteOptions::of(preconditions).with_dependents(policy)).await
    };
    let outcome = delete(Some(live.resource_version.as_str())).await;
    let outcome = match outcome {
        Err(conflict) if conflict.is_conflict() => match read(caches, &control, &resource, &key).await {
            Got::Absent => return Ok(Deleted::WasAbsent),
            Got::Object(now) => match judge_conflict(&live, &now.metadata) {
                Conflict::Absent => return Ok(Deleted::WasAbsent),
                Conflict::SameOwners => delete(None).await,
                Conflict::Open => Err(conflict),
            },
            Got::Unserved | Got::Failed(_) => Err(conflict),
        },
        other => other,
    };
    let deleted = outcome.unless_absent().with_context(|| format!("cannot delete {identity}"))?;
    if deleted.is_none() {
        return Ok(Deleted::WasAbsent);
    }
    tracing::info!(object = %identity, uid = live.uid, ?policy, "deleted object");
    Ok(Deleted::Done)
}

/// Upstream: `patch`, `pkg/controller/garbagecollector/patch.go`.
async fn patch_either(
    control: KeyControl<'_>,
    resource: &Resource,
    key: &Key,
    patch: &patches::Patch,
) -> Result<Written, ApiError> {
    let patches::Patch { uid, resource_version, strategic, merge } = patch;
    let (uid, version) = (uid.as_str(), resource_version.as_str());
    match control.patch(resource, key, uid, Patch::strategic(strategic)).await {
        Err(error) if error.code() == Some(UNSUPPORTED_MEDIA_TYPE) => {
            let as_read = Preconditions { uid, resource_version: Some(version) };
            control.patch(resource, key, as_read, Patch::merge(merge)).await
        }
        outcome => outcome,
    }
}

/// Reads one object's metadata, and notes whether that failed.
pub(crate) async fn read(caches: &Caches, control: &Control, resource: &Resource, key: &Key) -> Got {
    let got = live_object(control, resource, key).await;
    caches.kinds.note_read(resource, got.failure());
    got
}

pub(crate) fn as_read(live: &LiveMeta) -> Preconditions<&str, &str> {
    Preconditions { uid: live.uid.as_str(), resource_version: Some(live.resource_version.as_str()) }
}

pub(crate) const UNSUPPORTED_MEDIA_TYPE: u16 = 415;

/// Removes one finalizer of the object of this uid; finalizers that others add meanwhile stay.
///
/// Upstream: `removeFinalizer`, `pkg/controller/garbagecollector/operations.go`.
pub(crate) async fn without_finalizer(
    caches: &Caches,
    control: KeyControl<'_>,
    resource: &Resource,
    identity: &Identity,
    finalizer: &str,
) -> anyhow::Result<()> {
    let key = key_in(resource, &identity.namespace, &identity.object.name);
    let mut waits = CONFLICT_WAITS.into_iter();
    loop {
        let live = match read(caches, &control, resource, &key).await {
            Got::Object(live) if live.uid() == identity.object.uid => live,
            Got::Object(_) | Got::Absent => return Ok(()),
            Got::Unserved => bail!("{resource} is not served"),
            Got::Failed(error) => bail!(error),
        };
        let Some(patch) = remove_finalizer(&live.metadata, finalizer) else { return Ok(()) };
        let patched = control.patch(resource, &key, as_read(&live.metadata), Patch::merge(&patch)).await;
        match patched.unless_absent() {
            Ok(_) => return Ok(()),
            Err(error) => {
                let wait = waits.next().filter(|_| error.is_conflict());
                let Some(wait) = wait else {
                    return Err(
                        anyhow::Error::new(error).context(format!("cannot remove finalizer {finalizer} of {identity}"))
                    );
                };
                tokio::time::sleep(wait).await;
            }
        }
    }
}
