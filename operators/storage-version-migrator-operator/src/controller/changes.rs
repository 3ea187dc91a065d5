//! Every change of a migration leads to a sync of its resource; while it runs and has a version, to one of itself too.

use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::Migration;

/// Upstream: `enqueue`, `pkg/controller/storageversionmigrator/migrationrunner.go`.
pub(super) fn resource_of_migration(change: Change<'_, Migration>) -> Vec<Effect> {
    vec![Effect::Enqueue(change.latest().target.key(), Cause::Event)]
}

/// Upstream: `enqueue`, `pkg/controller/storageversionmigrator/storageversionmigrator.go`.
pub(super) fn migration_changed(change: Change<'_, Migration>) -> Vec<Effect> {
    let due = change.existing().filter(|migration| !migration.is_finished() && !migration.version.is_empty());
    due.map(|migration| Effect::Enqueue(migration.metadata.key.clone(), Cause::Event)).into_iter().collect()
}
