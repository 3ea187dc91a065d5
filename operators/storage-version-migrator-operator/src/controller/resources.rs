//! The controller of resources: one sync starts or ends a migration, or gives it its version.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::working::context::ControllerContext;
use shared::working::worker::{Controller, Requeue};

use crate::apply::resource::ResourceWriter;
use crate::objects::{GroupResource, STORAGE_VERSION_MIGRATIONS};
use crate::observe::live::{definition, version};
use crate::observe::{Caches, ObservedResource};
use crate::plan::resource::{Next, Unknown, plan};

pub(super) struct ResourceController {
    pub(super) caches: Arc<Caches>,
    pub(super) writer: ResourceWriter,
    pub(super) ctx: ControllerContext,
}

impl ResourceController {
    async fn read(&self, why: &Unknown, observed: ObservedResource) -> anyhow::Result<ObservedResource> {
        let Some(target) = target(&observed) else { return Ok(observed) };
        match why {
            Unknown::Definition { migration: _ } => definition(self.ctx.control(), &target, observed).await,
            Unknown::Version { migration: _ } => version(self.ctx.control(), &target, observed).await,
        }
    }
}

fn target(observed: &ObservedResource) -> Option<GroupResource> {
    observed.migrations.first().map(|migration| migration.target.clone())
}

impl Controller for ResourceController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let mut observed = self.caches.observe_resource(key);
        loop {
            match plan(&observed, self.ctx.now()) {
                Next::Ask(live_read) => {
                    self.ctx.decide(key, &live_read);
                    observed = self.read(&live_read.reason, observed).await?;
                }
                Next::Execute(plan) => {
                    self.ctx.decide(key, &plan);
                    return self.writer.apply(key, plan).await;
                }
            }
        }
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        let migration = self.caches.migrations.get(&object.key_of(&STORAGE_VERSION_MIGRATIONS)?)?;
        Some(migration.target.key())
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        vec![plan(&self.caches.observe_resource(key), self.ctx.now()).stage()]
    }
}
