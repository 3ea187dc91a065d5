//! Executes one deletion that orphans: every dependent loses its reference, then the owner its finalizer.
//!
//! Upstream: `processAttemptToOrphanWorker`, `pkg/controller/garbagecollector/garbagecollector.go`.

use std::sync::Arc;

use anyhow::{anyhow, bail};
use futures::{StreamExt, stream};
use shared::api::object::Key;
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::{KeyControl, Patch, aggregate};

use crate::apply::{UNSUPPORTED_MEDIA_TYPE, as_read, read, without_finalizer};
use crate::objects::ORPHAN;
use crate::observe::{Caches, Got, key_in};
use crate::plan::orphan::{Plan, Release};
use crate::plan::patches::{drop_owners_of, keep_other_owners};

/// How many dependents are released at a time.
const AT_ONCE: usize = 20;

pub(crate) struct Writer {
    pub(crate) caches: Arc<Caches>,
    pub(crate) ctx: ControllerContext,
}

impl Writer {
    pub(crate) async fn apply(&self, key: &Key, plan: Plan) -> anyhow::Result<()> {
        let (caches, control) = (&self.caches, self.ctx.for_name(key));
        let Plan { owner, releases } = plan;
        let count = releases.len();
        let releases = releases.into_iter().map(|release| apply_release(caches, control, release));
        let released: Vec<anyhow::Result<()>> = stream::iter(releases).buffer_unordered(AT_ONCE).collect().await;
        aggregate(released.into_iter().filter_map(Result::err).collect())?;
        let Some(resource) = caches.kinds.resource_of(&owner.object.kind) else {
            bail!("{} of {owner} is not served", owner.object.kind.api_version)
        };
        without_finalizer(caches, control, &resource, &owner, ORPHAN).await?;
        tracing::info!(%key, %owner, dependents = count, "orphaned dependents");
        Ok(())
    }
}

async fn apply_release(caches: &Caches, control: KeyControl<'_>, release: Release) -> anyhow::Result<()> {
    let Release { dependent, owners } = release;
    let failed = |error| anyhow::Error::new(error).context(format!("cannot orphan {dependent}"));
    let Some(resource) = caches.kinds.resource_of(&dependent.object.kind) else {
        bail!("cannot orphan {dependent}: {} is not served", dependent.object.kind.api_version)
    };
    let key = key_in(&resource, &dependent.namespace, &dependent.object.name);
    let strategic = Patch::strategic(&drop_owners_of(&owners));
    match control.patch(&resource, &key, dependent.object.uid, strategic).await.unless_absent() {
        Ok(_) => return Ok(()),
        Err(error) if error.code() == Some(UNSUPPORTED_MEDIA_TYPE) => {}
        // Another object has the name, or an aggregated apiserver has uids that only a read shows as they are written.
        Err(error) if error.is_conflict() => {}
        Err(error) => return Err(failed(error)),
    }
    let live = match read(caches, &control, &resource, &key).await {
        Got::Object(live) if live.uid() == dependent.object.uid => live,
        Got::Object(_) | Got::Absent => return Ok(()),
        Got::Unserved => return Err(anyhow!("cannot orphan {dependent}: {resource} is not served")),
        Got::Failed(error) => return Err(anyhow!("cannot orphan {dependent}: {error}")),
    };
    let patch = Patch::merge(&keep_other_owners(&live.metadata, &owners));
    let patched = control.patch(&resource, &key, as_read(&live.metadata), patch).await;
    patched.unless_absent().map(drop).map_err(failed)
}
