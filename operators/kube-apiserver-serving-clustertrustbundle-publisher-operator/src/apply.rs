//! Executes a plan: at most one creation or update, and then deletions.

use anyhow::Context;
use serde_json::Value;
use shared::api::json;
use shared::api::object::Key;
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::{DeleteOptions, KeyControl, Preconditions, aggregate};

use crate::objects::CLUSTER_TRUST_BUNDLES;
use crate::plan::{Deletion, Plan, Publish};

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Published {
    Yes,
    NotSeen,
}

impl Writer {
    pub(crate) async fn apply(&self, key: &Key, plan: Plan) -> anyhow::Result<()> {
        let Plan { publish, delete, reason: _ } = plan;
        let control = self.ctx.for_name(key);
        match write(control, publish).await? {
            Published::Yes => delete_all(control, delete).await,
            Published::NotSeen => Ok(()),
        }
    }
}

async fn write(control: KeyControl<'_>, publish: Publish) -> anyhow::Result<Published> {
    match publish {
        Publish::Nothing => Ok(Published::Yes),
        Publish::Create(body) => create(control, &body).await,
        Publish::Update { key, body } => {
            let read = Preconditions::of_read(&body);
            let replaced = control.replace(&CLUSTER_TRUST_BUNDLES, &key, "", read, &body).await;
            replaced.context("cannot update the ClusterTrustBundle")?;
            tracing::info!(bundle = %key, "replaced published CA");
            Ok(Published::Yes)
        }
    }
}

async fn create(control: KeyControl<'_>, body: &Value) -> anyhow::Result<Published> {
    match control.create(&CLUSTER_TRUST_BUNDLES, "", json(body)).await {
        Ok(created) => {
            tracing::info!(bundle = %created.metadata.key, "published CA");
            Ok(Published::Yes)
        }
        // The watch will show the bundle that another client created.
        Err(error) if error.is_already_exists() => Ok(Published::NotSeen),
        Err(error) => Err(error).context("cannot create the ClusterTrustBundle"),
    }
}

/// Deletes each bundle, even if the deletion of another fails.
async fn delete_all(control: KeyControl<'_>, deletions: Vec<Deletion>) -> anyhow::Result<()> {
    let mut errors = Vec::new();
    for Deletion { key, uid } in deletions {
        // Not `unless_gone`: bundles may not be served any more.
        match control.delete(&CLUSTER_TRUST_BUNDLES, &key, &DeleteOptions::of(uid)).await.unless_absent() {
            Ok(Some(())) => tracing::info!(bundle = %key, "deleted outdated bundle"),
            Ok(None) => {}
            Err(error) => errors.push(anyhow::Error::from(error).context(format!("cannot delete {key}"))),
        }
    }
    aggregate(errors)
}
