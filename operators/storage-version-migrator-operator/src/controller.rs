//! The operator as a process, and one sync of a migration on one screen. `resources` starts and ends migrations.

mod changes;
mod resources;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::resource::ResourceWriter;
use crate::apply::{Outcome, Writer};
use crate::facts::{FACTS, MIGRATIONS, RESOURCES};
use crate::flags::Flags;
use crate::metrics::MigratorMetrics;
use crate::objects::STORAGE_VERSION_MIGRATIONS;
use crate::observe::{Caches, Observed, live};
use crate::plan::{Next, plan};
use crate::status::next_condition;
use changes::{migration_changed, resource_of_migration};
use resources::ResourceController;

/// Upstream's.
const WORKERS: usize = 5;

pub struct StorageVersionMigratorOperator;

impl Operator for StorageVersionMigratorOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let migrations = setup.queue(MIGRATIONS.name, Backoff::default());
        let resources = setup.queue(RESOURCES.name, Backoff::default());
        let metrics = MigratorMetrics::register(setup.metrics());
        let (caches, mut storage_version_migrations) = Caches::new();
        let caches = Arc::new(caches);
        storage_version_migrations.on_change(setup.effects(&resources).with(resource_of_migration));
        storage_version_migrations.on_change(setup.effects(&migrations).with(migration_changed));
        setup.watch_while_served(storage_version_migrations);
        let ctx = setup.context(&migrations);
        let writer = Writer { ctx: ctx.clone(), metrics: metrics.clone() };
        let controller = MigrationController { caches: Arc::clone(&caches), writer, ctx };
        setup.work(Arc::new(controller), &migrations, WORKERS);
        let ctx = setup.context(&resources);
        let writer = ResourceWriter { ctx: ctx.clone(), migrations: Writer { ctx: ctx.clone(), metrics } };
        let controller = ResourceController { caches, writer, ctx };
        setup.work(Arc::new(controller), &resources, 1);
    }
}

struct MigrationController {
    caches: Arc<Caches>,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for MigrationController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        let plan = |observed: &Observed| plan(observed, self.ctx.now());
        let read = |observed| live::read(self.ctx.control(), observed);
        let (observed, plan) = self.ctx.decide_in_stages(key, observed, plan, read).await?;
        let outcome = self.writer.apply(&observed, plan).await?;
        if let Some(condition) = next_condition(&outcome, self.ctx.now()) {
            let control = self.ctx.for_key(key, observed.migration.metadata.uid);
            self.writer.end(control, &observed.migration, &condition).await?;
        }
        Ok(match outcome {
            Outcome::Waits(left) => Requeue::After(left, "a resource that is not served yet"),
            Outcome::GoesOn | Outcome::Succeeded | Outcome::Failed(_) => Requeue::Done,
        })
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&STORAGE_VERSION_MIGRATIONS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let next = self.caches.observe(key).map(|observed| plan(&observed, self.ctx.now()));
        next.iter().map(Next::stage).collect()
    }
}
