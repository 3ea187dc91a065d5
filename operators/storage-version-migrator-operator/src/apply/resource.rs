//! Executes the plan of a resource: at most one write of its definition's status, and then one of a migration's.

use anyhow::Context;
use serde_json::json;
use shared::api::object::Key;
use shared::api::time::Time;
use shared::working::context::ControllerContext;
use shared::working::control::{KeyControl, Patch};
use shared::working::worker::Requeue;

use super::{Writer, write_status};
use crate::objects::Migration;
use crate::objects::condition::ConditionPatch;
use crate::objects::definition::{CUSTOM_RESOURCE_DEFINITIONS, STORAGE_MIGRATING};
use crate::plan::resource::{DefinitionChange, Plan};

/// Upstream: `MigrationRunnerControllerName`, `pkg/controller/storageversionmigrator/migrationrunner.go`.
const FIELD_MANAGER: &str = "migration-runner-controller";

pub(crate) struct ResourceWriter {
    pub(crate) ctx: ControllerContext,
    pub(crate) migrations: Writer,
}

impl ResourceWriter {
    pub(crate) async fn apply(&self, key: &Key, plan: Plan) -> anyhow::Result<Requeue> {
        let (control, now) = (self.ctx.for_name(key), self.ctx.now());
        match plan {
            Plan::Keep(_) => {}
            Plan::Start { migration, waiting: _, definition } => {
                self.change(control, definition).await?;
                if write(control, &migration, &ConditionPatch::running(now)).await? {
                    tracing::info!(migration = %migration.metadata.key, resource = %migration.target, "migration started");
                }
            }
            Plan::Finish { migration, definition } => {
                self.change(control, definition).await?;
                write(control, &migration, &ConditionPatch::completed(migration.metadata.generation, now)).await?;
            }
            Plan::SetVersion { migration, version } => {
                let status = json!({ "status": { "resourceVersion": version } });
                write_status(control, &migration, &status).await.context("cannot write the version")?;
            }
            Plan::Wait { migration: _, left } => return Ok(Requeue::After(left, "a resource that is not served yet")),
            Plan::Fail { migration, message, why: _ } => {
                self.migrations.end(control, &migration, &ConditionPatch::failed(&message, now)).await?;
            }
        }
        Ok(Requeue::Done)
    }

    /// Applies the condition and the stored versions in the state that was read: a definition that has changed since may
    /// store another version.
    async fn change(&self, control: KeyControl<'_>, change: Option<DefinitionChange>) -> anyhow::Result<()> {
        let Some(change) = change else { return Ok(()) };
        let DefinitionChange { key, preconditions, generation, condition, stored_versions } = change;
        let (status, reason, message) = condition.texts();
        let condition = json!({
            "type": STORAGE_MIGRATING, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": Time::of(self.ctx.now()), "observedGeneration": generation,
        });
        let definition = json!({
            "metadata": { "name": key.name() },
            "status": { "conditions": [condition], "storedVersions": stored_versions },
        });
        let patch = Patch::apply(FIELD_MANAGER, &definition).on_status();
        let applied = control.patch(&CUSTOM_RESOURCE_DEFINITIONS, &key, preconditions, patch).await;
        applied.context("cannot apply the condition StorageMigrating").map(drop)
    }
}

/// Returns whether the migration still exists.
async fn write(control: KeyControl<'_>, migration: &Migration, condition: &ConditionPatch<'_>) -> anyhow::Result<bool> {
    write_status(control, migration, condition).await.context("cannot write the condition")
}
