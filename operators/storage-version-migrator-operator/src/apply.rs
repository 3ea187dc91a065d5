//! Executes the plan of a migration: rewrites the objects of one page.
//!
//! The writes of resources are in [`resource`].

pub mod resource;

use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use serde_json::json;
use shared::api::object::Kind;
use shared::api::resource::Resource;
use shared::transport::api_error::{ApiError, ResultExt};
use shared::working::context::ControllerContext;
use shared::working::control::{KeyControl, Patch, Preconditions, together};
use shared::working::events::PlannedEvent;

use crate::metrics::MigratorMetrics;
use crate::objects::condition::{ConditionPatch, FAILED_REASON, IN_PROGRESS_REASON, SUCCEEDED_REASON};
use crate::objects::progress::{PROGRESS, Progress};
use crate::objects::{Migration, STORAGE_VERSION_MIGRATIONS};
use crate::observe::Observed;
use crate::observe::live::{Target, is_final};
use crate::plan::{Plan, Then, failure_message};

/// How many objects are rewritten at the same time. A conversion webhook may be slow, and is not to be flooded.
const AT_ONCE: usize = 20;

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
    pub(crate) metrics: MigratorMetrics,
}

/// The result of a sync of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The migration goes on at its next event.
    GoesOn,
    /// The apiserver is asked again after this time.
    Waits(Duration),
    Succeeded,
    /// With the message of its condition.
    Failed(String),
}

impl Writer {
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<Outcome> {
        let Observed { migration, served: _, page: _ } = observed;
        Ok(match plan {
            Plan::Nothing(_) => Outcome::GoesOn,
            Plan::Wait { left } => Outcome::Waits(left),
            Plan::Restart => {
                self.note(migration, &Progress::new(migration.metadata.uid)).await?;
                Outcome::GoesOn
            }
            Plan::Rewrite { resource, objects, then } => {
                if let Some(error) = self.rewrite(migration, &resource, &objects).await? {
                    return Ok(Outcome::Failed(failure_message(&error)));
                }
                self.metrics.page(&migration.target, objects.len(), then.left);
                self.go_on(migration, then).await?
            }
            Plan::Fail { message, why: _ } => Outcome::Failed(message),
        })
    }

    /// Returns the message of a refusal that no further try would change. A patch without a change makes the apiserver
    /// store the object again.
    ///
    /// Upstream: `runMigration`, `pkg/controller/storageversionmigrator/storageversionmigrator.go`, by server-side apply,
    /// which needs the right to create every kind.
    async fn rewrite(
        &self,
        migration: &Migration,
        resource: &Resource,
        objects: &[Target],
    ) -> anyhow::Result<Option<String>> {
        let metadata = &migration.metadata;
        let control = self.ctx.for_key(&metadata.key, metadata.uid);
        let nothing = Patch::merge(&json!({}));
        for some in objects.chunks(AT_ONCE) {
            let patches =
                some.iter().map(|one| control.patch(resource, &one.key, one.preconditions(), nothing.clone()));
            for (target, patched) in some.iter().zip(together(patches).await) {
                match patched {
                    Ok(_) => {}
                    // It was written or deleted since, so the old version of it is gone.
                    Err(error) if error.is_conflict() || error.is_object_not_found() => {}
                    Err(error) if is_final(&error) => {
                        tracing::warn!(%resource, object = %target.key, %error, "cannot rewrite the object; the migration fails");
                        return Ok(Some(error.to_string()));
                    }
                    Err(error) => return Err(error).with_context(|| format!("cannot rewrite {}", target.key)),
                }
            }
        }
        Ok(None)
    }

    async fn go_on(&self, migration: &Migration, then: Then) -> anyhow::Result<Outcome> {
        let Then { progress, left, is_last, is_milestone } = then;
        if is_last {
            return Ok(Outcome::Succeeded);
        }
        if is_milestone {
            let (objects, left) = (progress.objects, left.map(|left| format!(", {left} left")));
            let message = format!("Objects of {} so far: {objects}{}", migration.target, left.unwrap_or_default());
            self.ctx.event(PlannedEvent::normal(migration.reference(), IN_PROGRESS_REASON, message));
        }
        self.note(migration, &progress).await?;
        Ok(Outcome::GoesOn)
    }

    /// Keeps the progress over a restart.
    async fn note(&self, migration: &Migration, progress: &Progress) -> anyhow::Result<()> {
        let metadata = &migration.metadata;
        let text = serde_json::to_string(progress).context("cannot print the progress")?;
        let patch = Patch::merge(&json!({ "metadata": { "annotations": { PROGRESS: text } } }));
        let control = self.ctx.for_key(&metadata.key, metadata.uid);
        let noted = control.patch(&STORAGE_VERSION_MIGRATIONS, &metadata.key, Preconditions::of(metadata), patch).await;
        noted.unless_gone().context("cannot note the progress").map(drop)
    }

    /// Records that the migration has ended.
    pub(crate) async fn end(
        &self,
        control: KeyControl<'_>,
        migration: &Migration,
        condition: &ConditionPatch<'_>,
    ) -> anyhow::Result<()> {
        let written = write_status(control, migration, condition).await.context("cannot write the condition")?;
        if !written {
            return Ok(());
        }
        let target = &migration.target;
        tracing::info!(migration = %migration.metadata.key, resource = %target, reason = condition.reason, "migration ended");
        let about = migration.reference();
        let event = if condition.reason == FAILED_REASON {
            PlannedEvent::warning(about, FAILED_REASON, condition.message.to_owned())
        } else {
            PlannedEvent::normal(about, SUCCEEDED_REASON, format!("All objects of {target} are in the storage version"))
        };
        self.ctx.event(event);
        self.metrics.ended(target, condition.type_);
        Ok(())
    }
}

/// Merges a condition into the status of a migration in the state that was observed. Returns whether it still exists.
pub(crate) async fn write_status(
    control: KeyControl<'_>,
    migration: &Migration,
    status: &impl Serialize,
) -> Result<bool, ApiError> {
    let (metadata, patch) = (&migration.metadata, Patch::strategic(status).on_status());
    let written = control.patch(&STORAGE_VERSION_MIGRATIONS, &metadata.key, Preconditions::of(metadata), patch).await;
    Ok(written.unless_gone()?.is_some())
}
