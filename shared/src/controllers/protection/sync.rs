//! One sync of a protected object, the same for each kind.

use std::sync::Arc;

use super::Protected;
use super::observe::{Observed, UserCaches};
use super::plan::{Next, plan};
use crate::api::explain::{Stage, Subject};
use crate::api::object::{Key, Kind};
use crate::working::context::ControllerContext;
use crate::working::worker::{Controller, Requeue};

/// The controller of a kind whose users are watched while an object of it is being deleted.
pub struct ProtectionController<C> {
    pub caches: Arc<C>,
    pub ctx: ControllerContext,
}

impl<C: UserCaches> Controller for ProtectionController<C> {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        let read = async |Observed { object, cached, live: _ }| {
            let live = Some(self.caches.live_users(self.ctx.control(), &object).await?);
            Ok(Observed { object, cached, live })
        };
        let (_, plan) = self.ctx.decide_in_stages(key, observed, plan, read).await?;
        C::Object::PROTECTION.apply(&self.ctx, key, plan).await
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&C::Object::RESOURCE)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let next = self.caches.observe(key).map(|observed| plan(&observed));
        next.iter().map(Next::stage).collect()
    }
}
